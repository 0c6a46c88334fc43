"""A masked-LM head for an encoder that has none."""

from .train import train_masked_lm_head

__all__ = ["train_masked_lm_head"]
