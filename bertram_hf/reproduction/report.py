"""What `bertram reproduce` writes for people: a README with all tables, and the numbers behind them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..utils.files import read_json, write_json, write_whole

README_NAME, SUMMARY_NAME = "README.md", "summary.json"
MARK = re.compile(r"^<!-- task: (.+) -->\n", re.MULTILINE)  # begins the section of a task
INTRODUCTION = f"""\
Written by `bertram reproduce`. Each task has a JSONL file with one row for each system and seed: its scores, its
command, versions, and the content of the files it was made from. `{SUMMARY_NAME}` holds what the tables leave out.
"""


class Report:
    """The sections of a README, one a task, and what stands behind them.

    Args:
        folder: Where both files are.
        title: Of the README.
        tasks: The order of the sections.

    Example:
        >>> report = Report(Path("results"), "Results", ["recovery", "similarity"])
        >>> report.write("similarity", "## Similarity")
    """

    def __init__(self, folder: Path, title: str, tasks: Sequence[str]) -> None:
        self.folder, self.title, self.tasks = folder, title, tasks

    def write(self, task: str, section: str, summary: Mapping[str, Any] | None = None) -> None:
        """Writes the section of a task and its summary, in place of those that are there; others stay."""
        path, summary_path = self.folder / README_NAME, self.folder / SUMMARY_NAME
        _, *found = MARK.split(path.read_text(encoding="utf-8")) if path.is_file() else [""]
        sections = dict(zip(found[::2], found[1::2], strict=True)) | {task: section}
        text = "\n".join(f"<!-- task: {name} -->\n{sections[name].strip()}\n" for name in self._sort(sections))
        with write_whole(path) as (unfinished,):
            unfinished.write_text(f"# {self.title}\n\n{INTRODUCTION}\n{text}", encoding="utf-8")
        if summary is not None:
            content = (read_json(summary_path) if summary_path.is_file() else {}) | {task: summary}
            write_json(summary_path, {name: content[name] for name in self._sort(content)})

    def _sort(self, names: Mapping[str, Any]) -> list[str]:
        """Returns names in the order of tasks, those that are no task of the recipe last."""
        return [*(name for name in self.tasks if name in names), *(name for name in names if name not in self.tasks)]
