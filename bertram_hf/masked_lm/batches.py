"""Batches for masked language modelling, which depend on the seed and the step alone.

The Trainer's own sampling by length and the usual masking draw from PyTorch's random numbers as training goes on: a run
that is continued from a checkpoint would see other batches and masks than one that was never killed.
"""

from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerBase

BATCHES_SORTED_TOGETHER = 50
HELDOUT_SEED = 1  # the masks of the held-out text are the same for all seeds of training


class MaskedBatches(torch.utils.data.Dataset):
    """The batches of all steps: item i is the masked batch of step i.

    In each epoch the blocks are shuffled; blocks of similar length come into one batch, so that little is padded.

    Args:
        blocks: Blocks with `input_ids`, `special_tokens_mask` and `length`.
        tokenizer: For padding and masks.
        batch_size: Blocks in each batch; the last batch of an epoch may have fewer.
        num_batches: Steps of training.
        mask_probability: How likely a token is masked; of these, 80 % become the mask token, 10 % a random one.
        seed: Seed of order and masks.
    """

    def __init__(
        self,
        blocks: Dataset,
        tokenizer: PreTrainedTokenizerBase,
        *,
        batch_size: int,
        num_batches: int,
        mask_probability: float,
        seed: int,
    ) -> None:
        self.blocks, self.tokenizer = blocks, tokenizer
        self.batch_size, self.num_batches, self.mask_probability = batch_size, num_batches, mask_probability
        self.seed = seed
        self._lengths = np.array(blocks["length"])
        self._epoch = -1
        self._order: list[np.ndarray] = []

    def __len__(self) -> int:
        return self.num_batches

    def __getitem__(self, step: int) -> dict[str, torch.Tensor]:
        if not 0 <= step < self.num_batches:
            raise IndexError(f"There are {self.num_batches} batches; got {step}.")
        epoch, index = divmod(step, -(-len(self.blocks) // self.batch_size))
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._draw_order(epoch)
        rows = self.blocks[self._order[index]]
        blocks = [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
        mask_seed = int(np.random.SeedSequence([self.seed, step]).generate_state(1)[0])
        return mask_blocks(blocks, self.tokenizer, mask_probability=self.mask_probability, seed=mask_seed)

    def _draw_order(self, epoch: int) -> list[np.ndarray]:
        """Returns the rows of each batch of an epoch."""
        generator = np.random.default_rng([self.seed, epoch])
        rows = generator.permutation(len(self.blocks))
        batches = []
        for start in range(0, len(rows), BATCHES_SORTED_TOGETHER * self.batch_size):
            part = rows[start : start + BATCHES_SORTED_TOGETHER * self.batch_size]
            part = part[np.argsort(-self._lengths[part], kind="stable")]
            batches += [part[i : i + self.batch_size] for i in range(0, len(part), self.batch_size)]
        return [batches[i] for i in generator.permutation(len(batches))]


def mask_blocks(
    blocks: list[dict[str, Any]], tokenizer: PreTrainedTokenizerBase, *, mask_probability: float, seed: int
) -> dict[str, torch.Tensor]:
    """Returns a padded batch of blocks with random masks and labels."""
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=mask_probability, seed=seed)
    columns = ("input_ids", "special_tokens_mask")  # lengths are no input
    return dict(collator([{name: block[name] for name in columns} for block in blocks]))


def mask_heldout(
    blocks: Dataset, tokenizer: PreTrainedTokenizerBase, *, batch_size: int, mask_probability: float
) -> list[dict[str, torch.Tensor]]:
    """Returns batches of held-out blocks, sorted by length, with masks that are the same each time."""
    rows = sorted(blocks.to_list(), key=lambda block: block["length"])
    return [
        mask_blocks(
            rows[start : start + batch_size],
            tokenizer,
            mask_probability=mask_probability,
            seed=HELDOUT_SEED + start,
        )
        for start in range(0, len(rows), batch_size)
    ]
