"""A name for the weights of a network, so that what was computed with others is never taken for theirs."""

import hashlib
import json

import torch
from torch import nn
from transformers import PreTrainedModel

# What a configuration says beside how the network computes.
NOT_COMPUTED = ("_name_or_path", "architectures", "transformers_version", "dtype", "id2label", "label2id")


def hash_weights(module: nn.Module) -> str:
    """Returns a hash of all weights of a module."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def hash_model(model: PreTrainedModel) -> str:
    """Returns a hash of a model's weights and of its configuration, which says what is done with them."""
    config = {name: value for name, value in model.config.to_dict().items() if name not in NOT_COMPUTED}
    return hashlib.sha256((hash_weights(model) + json.dumps(config, sort_keys=True, default=str)).encode()).hexdigest()
