"""Checkpoints without the frozen encoder, which they name."""

import hashlib
import os
from typing import Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import AutoModel, PreTrainedModel
from transformers.utils import cached_file

from .configuration_bertram import BertramConfig
from .modeling_context import build_encoder

HUB_ARGUMENTS = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")


class SlimPreTrainedModel(PreTrainedModel):
    """A model around a frozen encoder, without which it can be saved."""

    config: BertramConfig
    encoder: PreTrainedModel

    def embedding_fingerprint(self) -> str | None:
        """Returns the fingerprint of the input embedding space; None if the model has never seen its encoder."""
        recorded = self.config.embedding_fingerprint
        if not self.config.has_context or (self.config.freeze_encoder and recorded is not None):
            return recorded
        weight = self.get_input_embeddings().weight
        return recorded if weight.is_meta else embedding_fingerprint(weight)  # an offloaded one has not changed

    def freeze_parts(self) -> None:
        """Freezes what `config.freeze_encoder` and `config.freeze_form` name, and unfreezes the rest of the two."""
        if self.config.has_context:
            self.encoder.requires_grad_(not self.config.freeze_encoder)
        if self.config.has_form:
            self.form_encoder.requires_grad_(not self.config.freeze_form)

    def save_pretrained(
        self,
        save_directory: str | os.PathLike,
        *args: Any,
        include_encoder: bool | Literal["layers"] = True,
        **kwargs: Any,
    ) -> None:
        """Saves the model; with `include_encoder=False` without the encoder's weights (slim).

        A slim checkpoint records the encoder's name and the fingerprint of its embeddings. `from_pretrained` then loads
        the encoder from that name, or takes one given as `encoder=`, and refuses one with another fingerprint. With
        `"layers"` all but the input embeddings is saved: for an encoder that was trained from the named one, but not in
        its embeddings. To upload a slim checkpoint, pass `push_to_hub=True` and `repo_id` here.
        """
        if include_encoder not in (True, False, "layers"):
            raise ValueError(f'include_encoder must be True, False or "layers"; got {include_encoder!r}.')
        self.config.embedding_fingerprint = self.embedding_fingerprint()
        is_whole = include_encoder is True or not self.config.has_context
        if not is_whole:
            state_dict = kwargs.pop("state_dict", None) or self.state_dict()
            left_out = {f"encoder.{name}" for name in self.encoder.state_dict()}
            if include_encoder == "layers":
                left_out = {f"encoder.{name}" for name in input_embedding_names(self.encoder)}
            kwargs["state_dict"] = {key: value for key, value in state_dict.items() if key not in left_out}
        self.config.encoder_included = is_whole
        try:
            super().save_pretrained(save_directory, *args, **kwargs)
        finally:
            self.config.encoder_included = True

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike | None,
        *model_args: Any,
        encoder: str | os.PathLike | PreTrainedModel | None = None,
        **kwargs: Any,
    ) -> Any:
        """Loads a model, self-contained or slim.

        Args:
            pretrained_model_name_or_path: Folder or Hub name.
            encoder: For a slim checkpoint: the encoder, if it is not to be loaded from the recorded name.

        Raises:
            ValueError: If the weights are not finite, or a slim checkpoint is given an encoder with other embeddings.
        """
        config = kwargs.get("config")
        if config is None and pretrained_model_name_or_path is not None:
            hub_arguments = {name: kwargs[name] for name in HUB_ARGUMENTS if name in kwargs}
            config = cls.config_class.from_pretrained(pretrained_model_name_or_path, **hub_arguments)
        if config is not None and not config.encoder_included:
            kwargs["state_dict"] = join_slim_checkpoint(pretrained_model_name_or_path, config, encoder, kwargs)
            config.encoder_included = True
            kwargs["config"] = config
            pretrained_model_name_or_path = None
        try:
            loaded = super().from_pretrained(pretrained_model_name_or_path, *model_args, **kwargs)
        except SafetensorError as error:
            raise ValueError(f"model.safetensors is damaged or was not written to the end: {error}") from error
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        model.freeze_parts()  # loading builds parameters anew
        model.eval()
        for name, parameter in model.named_parameters():
            if not parameter.is_meta and not parameter.isfinite().all():
                raise ValueError(f"The weight {name} of this checkpoint holds NaN or infinity; the file is damaged.")
        return loaded


def join_slim_checkpoint(
    path: Any, config: BertramConfig, encoder: Any, loading_arguments: dict[str, Any]
) -> dict[str, torch.Tensor]:
    """Joins the weights of a slim checkpoint with those of its encoder.

    Args:
        path: Folder or Hub name of the checkpoint.
        config: Its configuration.
        encoder: The encoder, its folder or Hub name; None for the one that the configuration names.
        loading_arguments: The arguments of `from_pretrained`, of which those about the Hub are used.

    Raises:
        ValueError: If no encoder is known, or it has other embeddings than the checkpoint was trained for.
        OSError: If the encoder cannot be loaded.
    """
    hub_arguments = {name: loading_arguments[name] for name in HUB_ARGUMENTS if name in loading_arguments}
    slim = load_file(cached_file(path, "model.safetensors", **hub_arguments))
    if encoder is None:
        encoder = config.encoder_name_or_path
        if encoder is None:
            raise ValueError("This checkpoint was saved without its encoder and names none: give encoder=.")
    if not isinstance(encoder, PreTrainedModel):
        # Another repository: how to reach the Hub holds for it too, which revision or subfolder does not.
        access = {
            name: hub_arguments[name] for name in ("cache_dir", "local_files_only", "token") if name in hub_arguments
        }
        try:
            encoder = AutoModel.from_pretrained(encoder, **access)
        except OSError as error:
            raise OSError(
                f"This checkpoint is slim: it was saved without its encoder, and {encoder} could not be loaded. Give "
                f"the encoder's folder, or the loaded encoder, as encoder= (on the command line --encoder). {error}"
            ) from error
    encoder = encoder.base_model
    found = embedding_fingerprint(encoder.get_input_embeddings().weight)
    if found != config.embedding_fingerprint:
        raise ValueError(
            f"This checkpoint belongs to an encoder with embeddings {config.embedding_fingerprint} "
            f"({config.encoder_name_or_path}); {encoder.name_or_path or type(encoder).__name__} has {found}. "
            "Give the encoder that it was trained for."
        )
    with torch.device("meta"):
        expected = set(build_encoder(config.text_config).state_dict())  # without the pooler
    named = {f"encoder.{key}": value.clone() for key, value in encoder.state_dict().items() if key in expected}
    return named | slim  # which may have layers of its own


def input_embedding_names(encoder: PreTrainedModel) -> list[str]:
    """Returns the names of the encoder's input embeddings among its weights."""
    weight = encoder.get_input_embeddings().weight
    return [name for name, value in encoder.named_parameters(remove_duplicate=False) if value is weight]


def embedding_fingerprint(embeddings: torch.Tensor) -> str:
    """Returns a short text that names an input embedding matrix (V, H).

    It is made of the shape, a hash of the signs of all weights, and their root mean square to two digits. Signs do not
    change when a model is stored in half precision, so that the same encoder has the same fingerprint in any dtype.

    Example:
        >>> embedding_fingerprint(torch.ones(3, 2))
        '3x2-6e340b9cffb37a98-1.0e+00'
    """
    weights = embeddings.detach()
    signs = np.packbits(torch.signbit(weights).cpu().numpy())
    root_mean_square = torch.linalg.vector_norm(weights, dtype=torch.float32).item() / weights.numel() ** 0.5
    digest = hashlib.sha256(signs.tobytes()).hexdigest()[:16]
    return f"{weights.shape[0]}x{weights.shape[1]}-{digest}-{root_mean_square:.1e}"
