"""Counts where a program would wait for a GPU, on any machine."""

import traceback

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# What must know numbers that are on the device: `.item()`, `int()`, `if tensor`; and sizes that depend on numbers.
WAITING = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten.bincount.default,
    torch.ops.aten.repeat_interleave.Tensor,
    torch.ops.aten._unique2.default,
    torch.ops.aten.is_nonzero.default,
}
MOVING = {torch.Tensor.cpu, torch.Tensor.tolist, torch.Tensor.numpy}


class DeviceWaits(TorchDispatchMode):
    """Inside this block, lists the places in bertram_hf that wait; `repeat_interleave` with a known size does not."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []
        self._moves = _Moves(self)

    def __enter__(self):
        self._moves.__enter__()
        return super().__enter__()

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        self._moves.__exit__(*arguments)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        indexes = func in (torch.ops.aten.index.Tensor, torch.ops.aten.index_put.default)
        if (func in WAITING and "output_size" not in kwargs) or (indexes and any(map(_is_mask, args[1]))):
            self.note()
        return func(*args, **kwargs)

    def note(self):
        frames = [frame for frame in traceback.extract_stack() if "/bertram_hf/" in frame.filename]
        self.places.append(f"{frames[-1].name}: {frames[-1].line}" if frames else "elsewhere")


class _Moves(TorchFunctionMode):
    def __init__(self, waits):
        super().__init__()
        self.waits = waits

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in MOVING:
            self.waits.note()
        return func(*args, **(kwargs or {}))


def _is_mask(index):
    return index is not None and index.dtype == torch.bool
