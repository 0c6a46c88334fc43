"""Small helpers for models and their tensors."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from .names import Precision


def longest_input(model: PreTrainedModel) -> int | None:
    """Returns how many tokens a model can read; None if that is not known."""
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is None or positions <= 0:
        return None
    # RoBERTa and its like count positions from the padding token's id on.
    embeddings = getattr(model.base_model, "embeddings", None)
    padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
    return positions if padding is None else positions - padding - 1


@contextmanager
def in_eval_mode(model: nn.Module) -> Iterator[None]:
    """Runs the block with the model in eval mode, and puts it back into the mode it was in."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def unit_rows(vectors: torch.Tensor) -> torch.Tensor:
    """Scales rows (..., H) to length one."""
    return nn.functional.normalize(vectors, dim=-1)


def mean_over_tokens(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Returns the mean (N, H) of states (N, T, H) over the tokens that a mask (N, T) keeps.

    Example:
        >>> mean_over_tokens(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([[1, 1, 0]]))
        tensor([[2.]])
    """
    weights = mask.to(states.dtype)
    return torch.einsum("nt,nth->nh", weights, states) / weights.sum(dim=1, keepdim=True)


def run_in(dtype: torch.dtype | None, device: torch.device) -> AbstractContextManager[Any]:
    """Returns a context in which models are run in a lower precision, in their own if `dtype` is None."""
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype)


def half_precision(precision: Precision, device: torch.device) -> torch.dtype | None:
    """Returns the dtype for `run_in`: None if a model is to be run in its own.

    Example:
        >>> half_precision("bfloat16", torch.device("cpu"))
        torch.bfloat16
    """
    is_half = precision == "bfloat16" or (precision == "auto" and is_fast_at_bfloat16(device))
    return torch.bfloat16 if is_half else None


def is_fast_at_bfloat16(device: torch.device) -> bool:
    """Whether a device multiplies faster in bfloat16 than in single precision."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # older PyTorch does not tell
    return device.type == "cpu" and any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
