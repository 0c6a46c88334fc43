"""The processes that `torchrun` starts."""

import os
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch

from .imports import needs_extra

if TYPE_CHECKING:
    from accelerate import PartialState

# The main process builds corpora and targets while the others wait.
TIMEOUT = timedelta(days=7)


def join_processes() -> "PartialState":
    """Returns this process among those of the run: alone, or one of those that `torchrun` has started."""
    from accelerate import PartialState

    # Without a GPU, accelerate joins processes only if it is told that there is none.
    return PartialState(cpu=not (torch.cuda.is_available() or torch.backends.mps.is_available()), timeout=TIMEOUT)


class Processes:
    """The processes that `torchrun` has started, or this one alone, for which nothing is needed.

    Attributes:
        rank: Number of this process.
        number: How many there are.
        device: The device of this process; if it is alone, a GPU if there is one.

    Example:
        >>> processes = Processes()
        >>> processes.rank, processes.number, processes.is_main
        (0, 1, True)
    """

    def __init__(self) -> None:
        self._state: Any = None
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            with needs_extra("train", "Work with several processes"):
                self._state = join_processes()
        self.rank: int = self._state.process_index if self._state else 0
        self.number: int = self._state.num_processes if self._state else 1
        alone = "cuda" if torch.cuda.is_available() else "cpu"
        self.device: str = str(self._state.device) if self._state else alone

    @property
    def is_main(self) -> bool:
        """Whether this is the first process, which writes and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Waits for the others."""
        if self._state:
            self._state.wait_for_everyone()

    def main_first(self) -> AbstractContextManager[None]:
        """Runs a block in the first process, then in the others, which find its work done."""
        return self._state.main_process_first() if self._state else nullcontext()
