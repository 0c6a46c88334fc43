"""Running the steps of a corpus with datatrove: on this machine, on a Ray cluster or as Slurm jobs."""

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from copy import copy, deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import multiprocess
from datatrove.executor import LocalPipelineExecutor, RayPipelineExecutor, SlurmPipelineExecutor
from datatrove.utils.logging import logger as loguru_logger
from datatrove.utils.logging import setup_default_logger
from tqdm.auto import tqdm

from .inputs import Source, count_tasks
from .readers import make_reader
from .settings import CorpusSettings
from .steps import CountWords, MergeContexts, MergeCounts, Publish, SampleSentences
from .storage import words_to_sample

Executor = Literal["local", "ray", "slurm"]


@dataclass(frozen=True)
class Phase:
    """Steps that run as a number of tasks."""

    name: str
    pipeline: list[Any]
    num_tasks: int


def plan_phases(source: Source, settings: CorpusSettings, described: dict[str, Any]) -> list[Phase]:
    """Returns the phases of a run; each needs the one before to be complete."""
    num_tasks = count_tasks(source)
    num_merges = min(num_tasks, settings.num_parts)
    return [
        Phase("count", [make_reader(source, settings, "count"), CountWords(settings)], num_tasks),
        Phase("merge-counts", [MergeCounts(settings)], num_merges),
        Phase("sample", [make_reader(source, settings, "sample"), SampleSentences(settings)], num_tasks),
        Phase("merge-contexts", [MergeContexts(settings)], num_merges),
        Phase("publish", [Publish(settings, described)], 1),
    ]


def run_phases(
    phases: list[Phase],
    settings: CorpusSettings,
    *,
    executor: Literal["local", "ray"],
    num_workers: int,
    options: Mapping[str, Any],
    show_progress: bool,
) -> None:
    """Runs one phase after the other, each only when the one before is complete."""
    if executor == "ray":
        _connect_to_ray()
    else:
        # One process imports this package, and the workers are copies of it.
        multiprocess.set_forkserver_preload([__name__])
    total = sum(phase.num_tasks for phase in phases)
    with tqdm(total=total, desc="Building the corpus", unit="task", disable=not show_progress) as bar, _quiet():
        for phase in phases:
            logs = Path(settings.work) / "logs" / phase.name
            arguments = {"pipeline": phase.pipeline, "tasks": phase.num_tasks, "logging_dir": str(logs)}
            workers = min(num_workers, phase.num_tasks)
            if executor == "ray" and phase.name != "publish":  # which takes less time than to start a worker
                runner: Any = RayPipelineExecutor(**arguments, workers=workers, **options)
            else:
                runner = QuietLocalExecutor(**arguments, workers=workers, **(options if executor == "local" else {}))
            bar.set_description(f"Building the corpus: {phase.name}")
            if phase.name == "sample" and runner.get_incomplete_ranks():
                words_to_sample(settings)  # so that an error about words comes at once, and once
            with _watch(bar, logs / "completions"):
                runner.run()
            if missing := runner.get_incomplete_ranks(skip_completed=True):
                raise OSError(
                    f"{len(missing)} of {phase.num_tasks} tasks of the step {phase.name!r} failed, such as task "
                    f"{missing[0]}: {_last_error(logs, missing[0])} See {logs / 'logs'}. The same command goes on."
                )


def slurm_executors(
    phases: list[Phase], settings: CorpusSettings, *, num_workers: int, options: Mapping[str, Any]
) -> list[SlurmPipelineExecutor]:
    """Returns the Slurm executors of the phases, each of which depends on the one before; run the last."""
    missing = {"partition", "time"} - options.keys()
    if missing:
        raise ValueError(
            f'executor="slurm" needs executor_options with "partition" and "time"; got {sorted(options)}. '
            'Give, for example, {"partition": "cpu", "time": "2:00:00"}.'
        )
    executors: list[SlurmPipelineExecutor] = []
    for phase in phases:
        executors.append(
            SlurmPipelineExecutor(
                pipeline=phase.pipeline,
                tasks=phase.num_tasks,
                workers=min(num_workers, phase.num_tasks),
                logging_dir=str(Path(settings.work) / "logs" / phase.name),
                depends=executors[-1] if executors else None,
                **{"job_name": f"bertram-{phase.name}", **options},
            )
        )
    return executors


class QuietLocalExecutor(LocalPipelineExecutor):
    """datatrove's local executor, whose tasks write to their log files only, and run right here if one runs at once."""

    pipeline: Any

    def run(self) -> Any:
        if self.workers > 1:
            return super().run()
        for rank in self.get_incomplete_ranks():
            task = copy(self)
            task.pipeline = deepcopy(self.pipeline)  # which gathers statistics of one task
            task._run_for_rank(rank)
        return None

    def _launch_run_for_rank(self, *args: Any, **options: Any) -> Any:
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):  # in the worker's process, too
            return super()._launch_run_for_rank(*args, **options)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps datatrove's log, which each task has in a file too, off the terminal."""
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        setup_default_logger()
        try:
            yield
        finally:
            loguru_logger.remove()
    setup_default_logger()


def _connect_to_ray() -> None:
    """Connects to the cluster of RAY_ADDRESS, else to a new one on this machine, unless there is a connection."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ValueError('executor="ray" needs Ray. Run: pip install ray') from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level=logging.ERROR)


@contextmanager
def _watch(bar: Any, completions: Path) -> Iterator[None]:
    """Moves the bar as tasks are completed, whichever process or machine they run on."""
    before, done = bar.n, threading.Event()

    def update() -> None:
        bar.update(before + (len(os.listdir(completions)) if completions.is_dir() else 0) - bar.n)

    def poll() -> None:
        while not done.wait(0.5):
            update()

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        update()


def _last_error(logs: Path, rank: int) -> str:
    """Returns the last line of a task's log."""
    path = logs / "logs" / f"task_{rank:05d}.log"
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines() if path.is_file() else []
    return lines[-1] if lines else "it left no log."
