"""Memory that is free goes back to the system."""

import ctypes
import ctypes.util
import gc


def release_free_memory() -> None:
    """Gives back what the C library holds free, where it is glibc: between tensors of many sizes it keeps much."""
    gc.collect()
    name = ctypes.util.find_library("c")
    trim = getattr(ctypes.CDLL(name), "malloc_trim", None) if name else None
    if trim is not None:
        trim(0)
