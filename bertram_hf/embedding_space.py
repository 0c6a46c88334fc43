"""Which embedding space a vector belongs to."""

import hashlib

import numpy as np
import torch


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
