"""Tables and figures of a rarified set: accuracy of every system, by kind and by frequency of the rare words."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from pathlib import Path

import numpy as np

from .evaluated_systems import ORIGINAL, PLAIN, EvaluatedSystem
from .figures import draw_lines
from .json_files import write_json
from .markdown_table import format_rows
from .paired_scores import compare_pairs, compare_systems, format_comparison
from .rarified_counts import CountScores, score_bands, score_limits


@dataclass(frozen=True)
class RarifiedAnswers:
    """What the systems answered on the rarified set of one seed.

    Attributes:
        correct: For each system (N,), whether it is right on each text.
        subsets: For each subset (N,), which texts belong to it.
        counts: For each text, how often each of its rare words occurs in the corpora.
        originals: For each text, what it was before.
    """

    correct: Mapping[str, np.ndarray]
    subsets: Mapping[str, np.ndarray]
    counts: Sequence[Sequence[int]]
    originals: Sequence[Hashable]


def write_accuracies(
    path: Path,
    title: str,
    systems: Sequence[EvaluatedSystem],
    answers: Mapping[int, RarifiedAnswers],
    *,
    max_count: int,
    command: str | None = None,
) -> None:
    """Writes the table of accuracies and, as figures and data, how they depend on the frequency of the rare words.

    Args:
        path: The beginning of all file names.
        title: Above table and figures.
        systems: The rows of the table.
        answers: Of each seed.
        max_count: Rare words occur less often.
        command: The command that makes all this, for the record.
    """
    runs, record = list(answers.values()), {"command": command, "seeds": list(answers)}
    rivals = [system.name for system in systems if system.model != ORIGINAL]
    plain = next((system.name for system in systems if system.model == PLAIN), None)
    questions = {
        subset: (
            [{name: run.correct[name][run.subsets[subset]] for name in rivals} for run in runs],
            [list(compress(run.originals, run.subsets[subset])) for run in runs],
        )
        for subset in runs[0].subsets
    }
    compared = {subset: compare_systems(*asked) for subset, asked in questions.items()}
    p_values = compare_pairs(*questions["All"])
    sizes = {subset: round(np.mean([run.subsets[subset].sum() for run in runs])) for subset in compared}

    def format_accuracy(name: str, subset: str) -> str:
        if name in rivals:
            return format_comparison(compared[subset].get(name))
        accuracies = [run.correct[name][run.subsets[subset]].mean() for run in runs if run.subsets[subset].any()]
        return f"{100 * np.mean(accuracies):.1f}" if accuracies else ""

    rows = [
        {"model": system.name}
        | {f"{subset} ({sizes[subset]})": format_accuracy(system.name, subset) for subset in compared}
        | ({} if plain is None else {f"p against {plain}": _format_p(p_values.get(system.name, {}).get(plain))})
        for system in systems
    ]
    text = (
        f"# {title}\n\nAccuracy in percent, means over seeds {', '.join(map(str, answers))} "
        "(mean number of texts in brackets).\n"
        "Best underlined; bold: not surely worse, by a two-sided binomial test over all texts (p >= 0.05);\n"
        "the vectors of the original words take no part in that. All pairs of systems: the JSON file, p_values.\n"
        f"Command: `{command}`\n\n{format_rows(rows)}\n"
    )
    pooled = {system.name: np.concatenate([run.correct[system.name] for run in runs]) for system in systems}
    counts = [numbers for run in runs for numbers in run.counts]
    below = score_limits(pooled, counts, max_count)
    gains = None if plain is None else score_bands(pooled, counts, max_count, baseline=plain)
    if gains is not None and gains.scores and any(gains.num_texts):
        text += (
            f"\nGain in accuracy over {plain} in points, on the texts whose rare words all occur so often in the "
            f"corpora\n(number of texts over all seeds in brackets):\n\n{format_rows(gains.rows())}\n"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    subsets = {subset: {name: asdict(entry) for name, entry in found.items()} for subset, found in compared.items()}
    write_json(path.with_suffix(".json"), record | {"subsets": subsets, "p_values": {"All": p_values}})
    by_count = {"accuracy_below": below.to_dict(), "gain_by_band": None if gains is None else gains.to_dict()}
    write_json(path.with_name(f"{path.name}-by-count.json"), record | by_count)
    _draw(path.with_name(f"{path.name}-by-count.png"), below, systems, title=title, y_label="accuracy (%)", log_x=True)
    if gains is not None:
        y_label = f"gain in accuracy over {plain} (points)"
        _draw(path.with_name(f"{path.name}-gain.png"), gains, systems, title=title, y_label=y_label, zero_line=True)


def _format_p(p_value: float | None) -> str:
    return "" if p_value is None else f"{p_value:.2g}"


def _draw(
    path: Path,
    scores: CountScores,
    systems: Sequence[EvaluatedSystem],
    *,
    title: str,
    y_label: str,
    log_x: bool = False,
    zero_line: bool = False,
) -> None:
    """Draws scores by count, if there are any."""
    lines = {system.name: scores.points(system.name) for system in systems}
    if any(lines.values()):
        draw_lines(
            path,
            lines,
            x_label="how often each rare word occurs in the corpora (number of texts over all seeds)",
            y_label=y_label,
            title=title,
            log_x=log_x,
            x_ticks=scores.ticks(),
            zero_line=zero_line,
        )
