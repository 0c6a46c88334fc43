"""Progress bars."""

from collections.abc import Iterable
from typing import Any

from tqdm.auto import tqdm

SECONDS_BEFORE_PROGRESS = 3


def progress_bar(
    items: Iterable[Any] | None = None,
    *,
    desc: str,
    unit: str,
    total: int | None = None,
    initial: int = 0,
    unit_scale: int = 1,
    show_progress: bool = True,
) -> Any:
    """Returns a tqdm bar that appears only if the work lasts longer than a few seconds.

    Args:
        items: What to iterate over; by default the bar is moved by `update`.
        desc: What is being done.
        unit: What is counted.
        total: How many there are; by default the length of `items`.
        initial: How many are done already.
        unit_scale: How many units an item stands for.
        show_progress: Whether there is a bar at all.

    Example:
        >>> [word.upper() for word in progress_bar(["a", "b"], desc="Reading", unit="word")]
        ['A', 'B']
    """
    return tqdm(
        items,
        desc=desc,
        unit=unit,
        total=total,
        initial=initial,
        unit_scale=unit_scale if unit_scale > 1 else False,
        delay=SECONDS_BEFORE_PROGRESS,
        disable=not show_progress,
    )
