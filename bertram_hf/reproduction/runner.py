"""The evaluation of the paper, from a recipe to tables and figures."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from ..utils.files import read_json, write_json, write_whole
from .curves import collect_rows, draw_curves
from .intrinsic import rate_similarity, recover_misspelt, recover_words
from .natural import NaturalBenchmark
from .rarified import RarifiedBenchmark
from .rarified_tables import draw_accuracies, report_accuracies
from .recipe import EvaluatedSystem, EvaluationRecipe, NaturalTask, RarifiedTask
from .resources import TASKS, Resources
from .rows import ResultRows
from .sentences import DefinitionBenchmark, TermBenchmark
from .systems import ORIGINAL, PIECES, PLAIN, name_model
from .wnlampro import WnlamproBenchmark

logger = logging.getLogger(__name__)
README_NAME, SUMMARY_NAME = "README.md", "summary.json"
MARK = re.compile(r"^<!-- task: (.+) -->\n", re.MULTILINE)  # begins the section of a task
INTRODUCTION = f"""\
Written by `bertram reproduce`. Each task has a JSONL file with one row for each system and seed: its scores, its
command, versions, and the content of the files it was made from. `{SUMMARY_NAME}` holds what the tables leave out.
"""
# Models that take no part in a task.
WITHOUT = {
    "recovery": (PLAIN, ORIGINAL, PIECES),
    "misspellings": (PLAIN, ORIGINAL),
    "similarity": (PLAIN, ORIGINAL),
    "definitions": (ORIGINAL,),
    "terms": (ORIGINAL,),
    "wnlampro": (ORIGINAL,),
    "natural": (ORIGINAL,),
}


def natural_name(task: NaturalTask) -> str:
    """Returns what a set of natural texts is called, as it may be rarified, too."""
    return f"natural {task.name}"


class Reproduction:
    """The work on one evaluation recipe. What is finished is not done again.

    Args:
        recipe: The recipe.
        systems: Names of the systems to evaluate; by default all of the recipe. Tables and figures show all of the
            recipe whose results are there and up to date.
        seeds: Seeds to run; by default all of the recipe.
        command: The command that runs the whole recipe, for the record.
        show_progress: Whether to show progress bars.

    Raises:
        ValueError: If the recipe has no system of such a name, or a system is a preset and no training recipe is given.

    Example:
        >>> Reproduction(EvaluationRecipe.load("recipe.yaml")).run()  # doctest: +SKIP
    """

    def __init__(
        self,
        recipe: EvaluationRecipe,
        *,
        systems: Sequence[str] = (),
        seeds: Sequence[int] = (),
        command: str | None = None,
        show_progress: bool = True,
    ) -> None:
        self.recipe = recipe
        self.resources = Resources(recipe, systems=systems, seeds=seeds, command=command, show_progress=show_progress)
        self.output = self.resources.output
        sections = [*TASKS[:-2], *(task.name for task in recipe.rarified), *map(natural_name, recipe.natural)]
        self.report = Report(self.output, f"Results for {self.output.name}", sections)

    def run(self, only: Sequence[str] = ()) -> None:
        """Runs all tasks of the recipe, or some, and writes their tables and figures.

        Args:
            only: Names of tasks, or of single rarified sets; by default all.

        Raises:
            ValueError: If there is no such task.
        """
        rarified = {task.name: task for task in self.recipe.rarified}
        natural = {natural_name(task): task for task in self.recipe.natural}
        tasks = [name for name in TASKS if getattr(self.recipe, name)]
        known = [*tasks, *rarified, *natural]
        unknown = [name for name in only if name not in known]
        if unknown:
            raise ValueError(f"There is no task {unknown[0]!r} in the recipe. Tasks: {', '.join(known)}.")
        for name in only or tasks:
            if not only and all(system.model in WITHOUT.get(name, ()) for system in self.resources.systems):
                logger.warning("None of the chosen systems takes part in %s; it is left out.", name)
            elif name in tasks:
                getattr(self, f"run_{name}")()
            elif name in rarified:
                self.run_rarified([rarified[name]])
            else:
                self.run_natural([natural[name]])

    def run_recovery(self) -> None:
        """Recovery of held-out words, for systems that are models."""
        self._run_recovery("recovery", recover_words, "Recovery of {} held-out words")

    def run_misspellings(self) -> None:
        """Recovery of known words from their misspellings, for every system."""
        self._run_recovery("misspellings", recover_misspelt, "Recovery of {} words from their misspellings")

    def _run_recovery(self, name: str, compute: Callable[..., dict[str, Any]], title: str) -> None:
        task = getattr(self.recipe, name)
        rows = self.resources.rows_of(name)
        results = self._make_rows(rows, name, task, partial(compute, self.resources, task))
        title = title.format(next(iter(results.values()))[0]["num_words"])
        self._report_curves(rows, name, results, "mrr", title=title, y_label="mean reciprocal rank")

    def run_similarity(self) -> None:
        """Similarity as people rate it, for every system."""
        task = self.recipe.similarity
        assert task is not None  # as run has checked
        rows = self.resources.rows_of("similarity")
        results = self._make_rows(rows, "similarity", task, partial(rate_similarity, self.resources, task))
        first = next(iter(results.values()))[0]
        title = f"Similarity of {first['num_words']} rare words, {first['num_pairs']} pairs"
        # Without contexts the score is the same whatever their number.
        shown = {
            system: [
                row if row["reads_contexts"] else row | {"scores": [row["scores"][0] | {"contexts": 0}]}
                for row in found
            ]
            for system, found in results.items()
        }
        y_label = "Spearman's rank correlation"
        self._report_curves(rows, "similarity", shown, "spearman", title=title, y_label=y_label)

    def run_definitions(self) -> None:
        """Retrieval of the definitions of rare words, for every system and mode."""
        task = self.recipe.definitions
        assert task is not None  # as run has checked
        self._run_sentences(
            "definitions",
            DefinitionBenchmark(self.resources, task),
            "mrr",
            title="Definitions of {num_words} rare words among {num_definitions}",
            y_label="mean reciprocal rank",
        )

    def run_terms(self) -> None:
        """Similarity of terms as people rate it, for every system and mode."""
        task = self.recipe.terms
        assert task is not None  # as run has checked
        self._run_sentences(
            "terms",
            TermBenchmark(self.resources, task),
            "spearman",
            title="Similarity of terms, {num_pairs} pairs",
            y_label="Spearman's rank correlation",
        )

    def _run_sentences(
        self, name: str, benchmark: DefinitionBenchmark | TermBenchmark, key: str, *, title: str, y_label: str
    ) -> None:
        rows = self.resources.rows_of(name)
        results = self._make_rows(rows, name, benchmark.task, benchmark.evaluate, by_mode=True)
        first = next(iter(results.values()))[0]
        note = benchmark.describe(first)
        title = title.format(**first)
        self._report_curves(rows, name, results, key, title=title, y_label=y_label, note=note, gains=True)

    def run_wnlampro(self) -> None:
        """Clozes about rare words, for every system."""
        assert self.recipe.wnlampro is not None  # as run has checked
        benchmark = WnlamproBenchmark(self.resources, self.recipe.wnlampro)
        self.report.write("wnlampro", *benchmark.report(benchmark.evaluate()))
        benchmark.rows.publish()

    def run_rarified(self, tasks: Sequence[RarifiedTask] = ()) -> None:
        """Classification of rarified sets, by default of all, for every system."""
        for task in tasks or self.recipe.rarified:
            benchmark, title = RarifiedBenchmark(self.resources, task), f"Rarified {task.name}"
            benchmark.evaluate()
            systems = self.recipe.systems
            answers = benchmark.find_answers(systems, self.resources.recipe_seeds)
            if not answers:  # no seed has them all
                systems = benchmark.list_answered(self.resources.seeds)
                answers = benchmark.find_answers(systems, self.resources.seeds)
            report = report_accuracies(
                title, systems, answers, max_count=task.max_count, command=benchmark.rows.command
            )
            draw_accuracies(benchmark.folder, title, systems, report)
            self.report.write(task.name, report.section, report.summary)
            benchmark.rows.publish()

    def run_natural(self, tasks: Sequence[NaturalTask] = ()) -> None:
        """Classification of natural texts, by default of all sets, for every system."""
        for task in tasks or self.recipe.natural:
            name, benchmark = natural_name(task), NaturalBenchmark(self.resources, task)
            rows = self.resources.rows_of(name)
            results = self._make_rows(rows, "natural", task, benchmark.evaluate, by_mode=True)
            self.report.write(name, benchmark.report(results, rows.command))
            rows.publish()

    def _report_curves(
        self,
        rows: ResultRows,
        task: str,
        results: dict[str, list[dict[str, Any]]],
        key: str,
        *,
        title: str,
        y_label: str,
        note: str = "",
        gains: bool = False,
    ) -> None:
        """Writes table, figure and rows of a task whose scores depend on the number of contexts."""
        section = draw_curves(
            self.output / f"{task}.png",
            results,
            key,
            systems=[system.name for system in self.recipe.systems],
            title=title,
            y_label=y_label,
            command=rows.command,
            note=note,
            gains=gains,
        )
        self.report.write(task, section)
        rows.publish()

    def _make_rows(
        self,
        rows: ResultRows,
        name: str,
        task: Any,
        compute: Callable[[EvaluatedSystem, int], dict[str, Any]],
        *,
        by_mode: bool = False,
    ) -> dict[str, list[dict[str, Any]]]:
        """Makes the rows of the chosen systems and seeds, as far as they are not there and up to date.

        Args:
            rows: Where they are.
            name: The task's name.
            task: The task.
            compute: Computes a row.
            by_mode: Whether how vectors are injected changes it.

        Returns:
            All such rows that there are, by system.

        Raises:
            ValueError: If there are none.
        """

        def depends_on(system: EvaluatedSystem, seed: int) -> dict[str, Any]:
            encoder, model = name_model(self.recipe.encoder), self.resources.describe_model(system, seed)
            settings = {"task": asdict(task), "encoder": encoder, "model": model}
            return settings | {"mode": system.mode} if by_mode and system.model != PLAIN else settings

        def make(system: EvaluatedSystem, seed: int) -> dict[str, Any]:
            return rows.make(system.name, seed, depends_on(system, seed), partial(compute, system, seed))

        def find(system: EvaluatedSystem, seed: int) -> dict[str, Any] | None:
            return rows.find(system.name, seed, depends_on(system, seed))

        collect_rows(self.resources.runs(), make, without=WITHOUT[name], by_mode=by_mode)
        results = collect_rows(self.resources.recipe_runs(), find, without=WITHOUT[name], by_mode=by_mode)
        if not results:
            raise ValueError(f"{name}: expected a system with vectors of its own; the plain model has none.")
        return results


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
