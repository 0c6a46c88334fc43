"""A name for the weights of a network, so that what was computed with others is never taken for theirs."""

import hashlib

import torch
from torch import nn


def hash_weights(module: nn.Module) -> str:
    """Returns a hash of all weights of a module."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
