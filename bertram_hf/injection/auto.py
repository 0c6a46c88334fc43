"""What the Auto classes of Transformers call to load a saved injector.

It is imported when Transformers' Auto classes are, and so imports the rest when it is called.
"""

import os
from typing import TYPE_CHECKING, Any

from .configuration import InjectedConfig

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from .injector import BertramEmbeddingInjector


class InjectedTokenizer:
    """Loads the tokenizer of a saved injector; what comes back is of the class that the plain tokenizer has.

    Example:
        >>> injector.save_pretrained("my-classifier")
        >>> tokenizer = InjectedTokenizer.from_pretrained("my-classifier")
        >>> tokenizer("a kumquat").input_ids == injector.tokenizer("a kumquat").input_ids
        True
    """

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | os.PathLike, *inputs: Any, **kwargs: Any
    ) -> "PreTrainedTokenizerBase":
        """Loads the tokenizer, from a folder or the Hub; `AutoTokenizer` calls this.

        Raises:
            ValueError: If there is no injector beside the tokenizer.
        """
        from .saving import find_folder, load_tokenizer

        return load_tokenizer(find_folder(pretrained_model_name_or_path, kwargs), *inputs, **kwargs)

    @classmethod
    def register_for_auto_class(cls, auto_class: str = "AutoTokenizer") -> None:
        """Does nothing; `AutoTokenizer` calls it, so that what is saved next has its code. Saved injectors have."""


def make_loader(auto_class: Any) -> type:
    """Returns what one of the `AutoModel*` classes calls to load an injected model with its kind of head.

    It has the injector's name, by which pipelines ask whether they support a model.
    """

    def from_pretrained(
        pretrained_model_name_or_path: str | os.PathLike, *model_args: Any, config: InjectedConfig, **kwargs: Any
    ) -> "BertramEmbeddingInjector":
        from .injector import inject_saved
        from .saving import find_folder, load_plain_tokenizer

        folder = find_folder(pretrained_model_name_or_path, kwargs)
        model = auto_class.from_pretrained(folder, *model_args, config=config.wrapped(), **kwargs)
        return inject_saved(folder, model, load_plain_tokenizer(folder))

    members = {"from_pretrained": staticmethod(from_pretrained), "__module__": __name__}
    return type("BertramEmbeddingInjector", (), members)
