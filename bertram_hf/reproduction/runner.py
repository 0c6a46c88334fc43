"""The evaluation of the paper, from a recipe to tables and figures."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from .curves import collect_rows, write_curves
from .intrinsic import rate_similarity, recover_misspelt, recover_words
from .rarified import RarifiedBenchmark
from .rarified_tables import write_accuracies
from .recipe import EvaluatedSystem, EvaluationRecipe, RarifiedTask
from .resources import Resources
from .rows import ResultRows, file_name
from .systems import ORIGINAL, PIECES, PLAIN, name_model
from .wnlampro import WnlamproBenchmark

logger = logging.getLogger(__name__)
TASKS = ("recovery", "misspellings", "similarity", "wnlampro", "rarified")
# Models that take no part in a task.
WITHOUT = {
    "recovery": (PLAIN, ORIGINAL, PIECES),
    "misspellings": (PLAIN, ORIGINAL),
    "similarity": (PLAIN, ORIGINAL),
    "wnlampro": (ORIGINAL,),
}


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

    def run(self, only: Sequence[str] = ()) -> None:
        """Runs all tasks of the recipe, or some, and writes their tables and figures.

        Args:
            only: Names of tasks, or of single rarified sets; by default all.

        Raises:
            ValueError: If there is no such task.
        """
        rarified = {task.name: task for task in self.recipe.rarified}
        tasks = [name for name in TASKS if getattr(self.recipe, name)]
        unknown = [name for name in only if name not in (*tasks, *rarified)]
        if unknown:
            raise ValueError(f"There is no task {unknown[0]!r} in the recipe. Tasks: {', '.join((*tasks, *rarified))}.")
        for name in only or tasks:
            if not only and all(system.model in WITHOUT.get(name, ()) for system in self.resources.systems):
                logger.warning("None of the chosen systems takes part in %s; it is left out.", name)
            elif name in tasks:
                getattr(self, f"run_{name}")()
            else:
                self.run_rarified([rarified[name]])

    def run_recovery(self) -> None:
        """Recovery of held-out words, for systems that are models."""
        task = self.recipe.recovery
        assert task is not None  # as run has checked
        results = self._make_rows("recovery", task, partial(recover_words, self.resources, task))
        number = next(iter(results.values()))[0]["num_words"]
        title = f"Recovery of {number} held-out words"
        self._write_curves("recovery", results, "mrr", title=title, y_label="mean reciprocal rank")

    def run_misspellings(self) -> None:
        """Recovery of known words from their misspellings, for every system."""
        task = self.recipe.misspellings
        assert task is not None  # as run has checked
        compute = partial(recover_misspelt, self.resources, task)
        results = self._make_rows("misspellings", task, compute)
        title = f"Recovery of {next(iter(results.values()))[0]['num_words']} words from their misspellings"
        self._write_curves("misspellings", results, "mrr", title=title, y_label="mean reciprocal rank")

    def run_similarity(self) -> None:
        """Similarity as people rate it, for every system."""
        task = self.recipe.similarity
        assert task is not None  # as run has checked
        compute = partial(rate_similarity, self.resources, task)
        results = self._make_rows("similarity", task, compute)
        for row in (row for rows in results.values() for row in rows if not row["reads_contexts"]):
            row["scores"] = [row["scores"][0] | {"contexts": 0}]  # the same whatever the number of contexts
        first = next(iter(results.values()))[0]
        title = f"Similarity of {first['num_words']} rare words, {first['num_pairs']} pairs"
        self._write_curves("similarity", results, "spearman", title=title, y_label="Spearman's rank correlation")

    def run_wnlampro(self) -> None:
        """Clozes about rare words, for every system."""
        task = self.recipe.wnlampro
        assert task is not None  # as run has checked
        evaluation = WnlamproBenchmark(self.resources, task)
        rows = ResultRows(self.output / "wnlampro", command=self.resources.command_of("wnlampro"))
        evaluation.write(self.output / "wnlampro", evaluation.evaluate(rows), command=rows.command)

    def run_rarified(self, tasks: Sequence[RarifiedTask] = ()) -> None:
        """Classification of rarified sets, by default of all, for every system."""
        for task in tasks or self.recipe.rarified:
            evaluation = RarifiedBenchmark(self.resources, task)
            path = self.output / "rarified" / file_name(task.name)
            rows = ResultRows(path, command=self.resources.command_of(task.name))
            evaluation.evaluate(rows)
            systems = self.recipe.systems
            answers = evaluation.find_answers(rows, systems, self.resources.recipe_seeds)
            if not answers:  # no seed has them all
                systems = evaluation.list_answered(rows, self.resources.seeds)
                answers = evaluation.find_answers(rows, systems, self.resources.seeds)
            write_accuracies(
                path, f"Rarified {task.name}", systems, answers, max_count=task.max_count, command=rows.command
            )

    def _write_curves(
        self, task: str, results: dict[str, list[dict[str, Any]]], key: str, *, title: str, y_label: str
    ) -> None:
        """Writes the table and the figure of a task whose scores depend on the number of contexts."""
        write_curves(
            self.output / task,
            results,
            key,
            systems=[system.name for system in self.recipe.systems],
            title=title,
            y_label=y_label,
            command=self.resources.command_of(task),
        )

    def _make_rows(
        self,
        name: str,
        task: Any,
        compute: Callable[[EvaluatedSystem, int], dict[str, Any]],
    ) -> dict[str, list[dict[str, Any]]]:
        """Makes the rows of the chosen systems and seeds, as far as they are not there and up to date.

        Args:
            name: The task's name.
            task: The task.
            compute: Computes a row.

        Returns:
            All such rows that there are, by system.

        Raises:
            ValueError: If there are none.
        """
        rows = ResultRows(self.output / name, command=self.resources.command_of(name))

        def depends_on(system: EvaluatedSystem, seed: int) -> dict[str, Any]:
            encoder, model = name_model(self.recipe.encoder), self.resources.describe_model(system, seed)
            return {"task": asdict(task), "encoder": encoder, "model": model}

        def make(system: EvaluatedSystem, seed: int) -> dict[str, Any]:
            return rows.make(system.name, seed, depends_on(system, seed), partial(compute, system, seed))

        def find(system: EvaluatedSystem, seed: int) -> dict[str, Any] | None:
            return rows.find(system.name, seed, depends_on(system, seed))

        collect_rows(self.resources.runs(), make, without=WITHOUT[name])
        results = collect_rows(self.resources.recipe_runs(), find, without=WITHOUT[name])
        if not results:
            raise ValueError(f"{name}: expected a system with vectors of its own; the plain model has none.")
        return results
