"""The processes that `torchrun` starts."""

from datetime import timedelta

import torch
from accelerate import PartialState

# The main process builds corpora and targets while the others wait.
TIMEOUT = timedelta(days=7)


def join_processes() -> PartialState:
    """Returns this process among those of the run: alone, or one of those that `torchrun` has started."""
    # Without a GPU, accelerate joins processes only if it is told that there is none.
    return PartialState(cpu=not (torch.cuda.is_available() or torch.backends.mps.is_available()), timeout=TIMEOUT)
