"""Helpers around the Trainer."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

from transformers.trainer_utils import get_last_checkpoint

logger = logging.getLogger(__name__)


def only_item(items: list[Any]) -> Any:
    """Returns the batch that a dataset of whole batches gives.

    Raises:
        ValueError: If the Trainer asks for several at once.
    """
    if len(items) != 1:
        raise ValueError(
            f"Expected one item, which is a whole batch; the Trainer asked for {len(items)} at once. Leave "
            "per_device_train_batch_size at 1, and start one process for each GPU with torchrun."
        )
    return items[0]


def last_whole_checkpoint(folder: Path) -> str | None:
    """Returns the newest checkpoint that was written to its end; a kill may have come in the middle of one."""
    while (path := get_last_checkpoint(str(folder))) is not None:
        try:
            json.loads((Path(path) / "trainer_state.json").read_text(encoding="utf-8"))  # the Trainer writes it last
            return path
        except (OSError, ValueError):
            pass
        logger.warning("%s is not whole and is left out.", path)
        shutil.rmtree(path)
    return None
