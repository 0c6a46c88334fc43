"""How the files of a saved injector say that it is one, so that the Auto classes do not load the plain model.

config.json is that of the wrapped model under another `model_type`, and tokenizer_config.json names another class;
`import bertram_hf` registers both. Where that was not imported, Transformers refuses them, or with
`trust_remote_code=True` runs a file of the folder that imports it.
"""

from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from ..utils.files import read_json, write_json
from ..utils.names import CONFIG_NAME

CODE_NAME = "bertram_injected"
CODE = '''"""Loads this injected model. It needs bertram_hf: pip install bertram-hf"""

from bertram_hf.injection import InjectedConfig, InjectedTokenizer
'''
PREFIX = "Injected"  # of the wrapped model's class


class InjectedConfig(PreTrainedConfig):
    """The configuration of a wrapped model, under a `model_type` of its own.

    It is only a step of loading: an injector's `config` is the wrapped model's.

    Example:
        >>> injector.save_pretrained("my-classifier")
        >>> config = InjectedConfig.from_pretrained("my-classifier")
        >>> config.model_type, config.wrapped().model_type
        ('bertram-injected', 'bert')
    """

    model_type = "bertram-injected"
    wrapped_model_type: str | None = None

    def wrapped(self) -> PreTrainedConfig:
        """Returns the configuration of the wrapped model.

        Raises:
            ValueError: If it is of a type that Transformers does not know.
        """
        if self.wrapped_model_type not in CONFIG_MAPPING:
            raise ValueError(
                f"Expected an injected model of a type that Transformers knows; got {self.wrapped_model_type!r}. Load "
                "the model with its own class, then: bertram_hf.injection.inject_saved(folder, model, tokenizer)."
            )
        fields = self.to_dict() | {"model_type": self.wrapped_model_type}
        fields["architectures"] = [name.removeprefix(PREFIX) for name in self.architectures or []]
        for name in ("auto_map", "wrapped_model_type"):
            fields.pop(name, None)
        config_class = CONFIG_MAPPING[self.wrapped_model_type]
        config = config_class.from_dict(fields, attn_implementation=self._attn_implementation)
        config.name_or_path = self.name_or_path
        return config


def mark_config(folder: Path, model_class: str) -> None:
    """Turns the config.json of a wrapped model into that of an injected one."""
    model_type = read_json(folder / CONFIG_NAME)["model_type"]
    changes = {
        "model_type": InjectedConfig.model_type,
        "wrapped_model_type": model_type,
        # Not a class of Transformers: `pipeline` falls back to such a class, and so to the plain model.
        "architectures": [PREFIX + model_class],
        "auto_map": {"AutoConfig": f"{CODE_NAME}.InjectedConfig"},
    }
    _change(folder / CONFIG_NAME, changes)


def mark_tokenizer(path: Path) -> None:
    """Turns the tokenizer_config.json of a tokenizer into that of an injected one."""
    auto_map = {"AutoTokenizer": [None, f"{CODE_NAME}.InjectedTokenizer"]}
    _change(path, {"tokenizer_class": "InjectedTokenizer", "auto_map": auto_map})


def _change(path: Path, changes: dict[str, Any]) -> None:
    """Changes fields of a JSON file, and writes the file of code that they name beside it."""
    write_json(path, read_json(path) | changes)
    path.with_name(f"{CODE_NAME}.py").write_text(CODE, encoding="utf-8")
