"""The parts that a system is trained in: which configuration each has, and how trained parts become one model."""

from typing import Any

from ..configuration_bertram import BertramConfig
from ..modeling_bertram import BertramModel

NETWORK_FIELDS = (
    "mode",
    "context_encoder",
    "context_layers",
    "context_weighting",
    "form_encoder",
    "output_bias",
    "form_strength",
    "second_map",
    "output_norm",
    "character_embedding_size",
    "character_hidden_size",
    "ngram_dropout",
    "freeze_encoder",
    "freeze_form",
    "initializer_range",
)
# What a context part does not have, and
NO_SPELLING: dict[str, Any] = {"form_strength": None, "second_map": False}
# what a form part does not have, so that systems which differ in it share theirs.
NO_CONTEXT: dict[str, Any] = {
    "context_encoder": "transformer",
    "context_layers": "last",
    "context_weighting": "attentive",
    "output_bias": True,
    "output_norm": None,
    **NO_SPELLING,
}


def context_part(config: BertramConfig) -> BertramConfig:
    """Returns the configuration of a system's context part, which knows nothing of spelling."""
    return replace_fields(config, mode="context", form_encoder="ngram", freeze_form=False, **NO_SPELLING)


def form_part(config: BertramConfig) -> BertramConfig:
    """Returns the configuration of a system's form part."""
    return replace_fields(config, mode="form", freeze_form=False, **NO_CONTEXT)


def replace_fields(config: BertramConfig, **changes: Any) -> BertramConfig:
    """Returns a copy of a configuration with some fields changed."""
    return BertramConfig(**{name: getattr(config, name) for name in NETWORK_FIELDS} | changes)


def fuse(model: BertramModel, *parts: BertramModel) -> None:
    """Puts trained parts, such as a context model and a form model, into a model, which is changed in place."""
    for part in parts:
        state = {name: value for name, value in part.state_dict().items() if not name.startswith("encoder.")}
        _, unexpected = model.load_state_dict(state, strict=False)
        if unexpected:
            raise ValueError(f"A model of mode {model.config.mode!r} has no place for {', '.join(unexpected)}.")
