"""Checkpoints without the frozen encoder, which they name."""

from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModel, PreTrainedModel
from transformers.utils import cached_file

from .configuration_bertram import BertramConfig
from .context_encoders import build_encoder
from .embedding_space import embedding_fingerprint

HUB_ARGUMENTS = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")


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
