import sys
from pathlib import Path

import pytest

from bertram_hf.utils.memory import release_free_memory


def resident_memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_free_memory_between_used_blocks_is_given_back():
    blocks = [bytearray(b"x" * 100_000) for _ in range(1_000)]  # each below the size that is mapped on its own
    blocks = blocks[::10]
    before = resident_memory()
    release_free_memory()
    assert resident_memory() < before - 50_000_000
    assert all(block[0] == ord("x") for block in blocks)
