"""Checkpoints without the frozen encoder, which they name."""

import copy
import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import transformers  # AutoModel is looked up at its use: its import imports modeling_bertram, and that this file.
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from transformers import PreTrainedModel
from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file

from .configuration_bertram import FIX, REQUIRED_FIELDS, BertramConfig, read_json_file

HUB_ARGUMENTS = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")
MAX_NAMES_SHOWN = 5


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
        """Freezes the input embeddings and, if the configuration says so, the encoder and the form part."""
        if self.config.has_context:
            self.encoder.requires_grad_(not self.config.freeze_encoder)
            self.get_input_embeddings().requires_grad_(False)
        if self.config.has_form_encoder:
            self.form_encoder.requires_grad_(not self.config.freeze_form)

    @property
    def trained_encoder(self) -> Literal[False, "layers"]:
        """What of the encoder a checkpoint must hold, as `include_encoder`: its layers if they are trained."""
        return False if self.config.freeze_encoder else "layers"

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
            ValueError: If a file is damaged, a weight is missing, does not fit the configuration or is not finite, the
                configuration does not describe a weight outside the encoder, or a slim checkpoint is given an encoder
                with other embeddings. With `output_loading_info=True` missing and surplus weights are not refused but
                returned, as in Transformers.
        """
        config: Any = kwargs.get("config")
        hub_arguments = {name: kwargs[name] for name in HUB_ARGUMENTS if name in kwargs}
        if pretrained_model_name_or_path is not None:
            optional = {"_raise_exceptions_for_missing_entries": config is None}
            config_path = cached_file(pretrained_model_name_or_path, CONFIG_NAME, **hub_arguments, **optional)
            if config_path is not None:  # which AutoModel has read without these checks
                read_json_file(config_path, required=REQUIRED_FIELDS)
            if config is None:
                config = cls.config_class.from_pretrained(pretrained_model_name_or_path, **hub_arguments)
        # Transformers fills gaps with random numbers; only who passes a state_dict may want that.
        is_checkpoint = pretrained_model_name_or_path is not None and kwargs.get("state_dict") is None
        if is_checkpoint:
            expected = cls._build_on_meta(config).state_dict()
            found: Mapping[str, Any] = read_weight_headers(pretrained_model_name_or_path, hub_arguments)
            if not config.encoder_included:
                kwargs["state_dict"] = join_slim_checkpoint(
                    pretrained_model_name_or_path, config, encoder, kwargs, expected=expected
                )
                found = kwargs["state_dict"] | found
                config.encoder_included = True
                kwargs["config"] = config
                pretrained_model_name_or_path = None
            if getattr(config, "quantization_config", None) is None:
                check_weights(found, expected, check_shapes=not kwargs.get("ignore_mismatched_sizes"))
        with_loading_info = kwargs.pop("output_loading_info", False)
        model, loading_info = super().from_pretrained(
            pretrained_model_name_or_path, *model_args, output_loading_info=True, **kwargs
        )
        if is_checkpoint and not with_loading_info:
            surplus = {name for name in loading_info["unexpected_keys"] if not name.startswith("encoder.")}
            for names, problem in ((loading_info["missing_keys"], "lacks"), (surplus, "has also")):
                if names:
                    raise ValueError(
                        f"{SAFE_WEIGHTS_NAME} must hold the weights that config.json describes; it {problem} "
                        f"{_name_some(names)}. {FIX}"
                    )
        model.freeze_parts()  # loading builds parameters anew
        model.eval()
        for name, weight in model.state_dict().items():
            if not weight.is_meta and not weight.isfinite().all():
                raise ValueError(
                    f"The weight {name} of this checkpoint holds NaN or infinity; {SAFE_WEIGHTS_NAME} is damaged. {FIX}"
                )
        return (model, loading_info) if with_loading_info else model

    @classmethod
    def _build_on_meta(cls, config: BertramConfig) -> "SlimPreTrainedModel":
        """Builds the network without memory for weights, to see that it can be built and which weights it has."""
        try:
            with torch.device("meta"):
                return cls(copy.deepcopy(config))
        except (ValueError, TypeError, RuntimeError, ArithmeticError, LookupError, AttributeError) as error:
            raise ValueError(
                f"{CONFIG_NAME} must describe a network that can be built; this one cannot: {error} {FIX}"
            ) from error


def read_weight_headers(path: Any, hub_arguments: Mapping[str, Any]) -> dict[str, "WeightHeader"]:
    """Returns shape and type of each weight in a checkpoint's .safetensors files; nothing if it has none.

    Raises:
        ValueError: If a file is damaged or of another format.
    """
    access = {**hub_arguments, "_raise_exceptions_for_missing_entries": False}
    file_names = [SAFE_WEIGHTS_NAME]
    if cached_file(path, SAFE_WEIGHTS_NAME, **access) is None:
        index_path = cached_file(path, SAFE_WEIGHTS_INDEX_NAME, **access)
        if index_path is None:
            return {}
        weight_map = read_json_file(index_path, required=("weight_map",))["weight_map"]
        if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
            raise ValueError(f"{index_path} must name a file for each weight in weight_map. {FIX}")
        file_names = sorted(set(weight_map.values()))
    headers: dict[str, WeightHeader] = {}
    for file_name in file_names:
        file_path = cached_file(path, file_name, **hub_arguments)
        try:
            with safe_open(file_path, framework="pt") as file:
                file_format = (file.metadata() or {}).get("format", "pt")
                for name in file.keys():  # noqa: SIM118 (no mapping)
                    weight = file.get_slice(name)
                    headers[name] = WeightHeader(torch.Size(weight.get_shape()), weight.get_dtype())
        except SafetensorError as error:
            raise ValueError(f"{file_path} is damaged or was not written to the end: {error}. {FIX}") from error
        if file_format != "pt":
            raise ValueError(f"{file_path} must hold PyTorch weights (format pt); got format {file_format!r}. {FIX}")
    return headers


@dataclass(frozen=True)
class WeightHeader:
    """What the header of a .safetensors file says of a weight: its shape, and its type, such as BF16 or I64."""

    shape: torch.Size
    type_name: str

    def is_floating_point(self) -> bool:
        """Whether it is a weight that can be loaded, as `torch.Tensor.is_floating_point`."""
        return self.type_name.startswith(("F", "BF"))


def check_weights(
    found: Mapping[str, torch.Tensor | WeightHeader], expected: Mapping[str, torch.Tensor], *, check_shapes: bool
) -> None:
    """Checks shape and type of the weights that a network and its checkpoint have in common.

    Raises:
        ValueError: If some are of another shape, or whole numbers.
    """
    common = [name for name in found if name in expected]
    whole = [name for name in common if expected[name].is_floating_point() and not found[name].is_floating_point()]
    if whole:
        raise ValueError(
            f"{SAFE_WEIGHTS_NAME} must hold floating-point weights; these are whole numbers: {_name_some(whole)}. {FIX}"
        )
    for name in common if check_shapes else ():
        if found[name].shape != expected[name].shape:
            raise ValueError(
                f"The weight {name} in {SAFE_WEIGHTS_NAME} must have the shape {list(expected[name].shape)} that "
                f"config.json describes; got {list(found[name].shape)}. {FIX}"
            )


def _name_some(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:MAX_NAMES_SHOWN])
    return f"{shown} and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else shown


def join_slim_checkpoint(
    path: Any,
    config: BertramConfig,
    encoder: Any,
    loading_arguments: Mapping[str, Any],
    *,
    expected: Collection[str],
) -> dict[str, torch.Tensor]:
    """Joins the weights of a slim checkpoint with those of its encoder.

    Args:
        path: Folder or Hub name of the checkpoint.
        config: Its configuration.
        encoder: The encoder, its folder or Hub name; None for the one that the configuration names.
        loading_arguments: The arguments of `from_pretrained`, of which those about the Hub are used.
        expected: Names of the network's weights.

    Raises:
        ValueError: If no encoder is known, it has other embeddings than the checkpoint was trained for, or its own
            checkpoint lacks weights.
        OSError: If the encoder cannot be loaded.
    """
    hub_arguments = {name: loading_arguments[name] for name in HUB_ARGUMENTS if name in loading_arguments}
    slim = load_file(cached_file(path, SAFE_WEIGHTS_NAME, **hub_arguments))
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
            name, (encoder, loading_info) = (
                encoder,
                transformers.AutoModel.from_pretrained(encoder, output_loading_info=True, **access),
            )
        except OSError as error:
            raise OSError(
                f"This checkpoint is slim: it was saved without its encoder, and {encoder} could not be loaded. Give "
                f"the encoder's folder, or the loaded encoder, as encoder= (on the command line --encoder). {error}"
            ) from error
        missing = {f"encoder.{key}" for key in loading_info["missing_keys"]} & set(expected) - slim.keys()
        if missing:
            raise ValueError(f"The encoder {name} must have all its weights; it lacks {_name_some(missing)}. {FIX}")
    encoder = encoder.base_model
    found = embedding_fingerprint(encoder.get_input_embeddings().weight)
    if found != config.embedding_fingerprint:
        raise ValueError(
            f"This checkpoint belongs to an encoder with embeddings {config.embedding_fingerprint} "
            f"({config.encoder_name_or_path}); {encoder.name_or_path or type(encoder).__name__} has {found}. "
            "Give the encoder that it was trained for."
        )
    named = {f"encoder.{key}": value for key, value in encoder.state_dict().items()}
    # Without the pooler, which is not expected; the checkpoint may have layers of its own.
    return {key: value.clone() for key, value in named.items() if key in expected} | slim


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
