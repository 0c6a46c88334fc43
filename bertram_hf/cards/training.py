"""What a card says of a training run, from the file that the run wrote."""

from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult
from huggingface_hub.utils import yaml_dump

from ..utils.files import read_json
from ..utils.names import MASKED_LM_NAME, TRAINING_NAME
from ..utils.paths import hide_paths
from ..utils.tables import format_facts, format_rows, format_title

CONDITIONS = ("contexts", "model")  # what scores are of
BOUNDS = ("_low", "_high")  # of a score's confidence interval


def read_training(folder: Path) -> dict[str, Any]:
    """Returns the record of the training without paths of the machine; it is empty if there is none."""
    path = folder / TRAINING_NAME
    return hide_paths(read_json(path)) if path.is_file() else {}


def read_masked_lm_training(folder: Path) -> dict[str, Any]:
    """Returns the record of a masked-LM head in the form of `read_training`."""
    record = hide_paths(read_json(folder / MASKED_LM_NAME))
    text, settings = record["text"], record["settings"]
    data = f"{text['num_texts']:,} texts, {text['num_tokens']:,} tokens."
    unmasked = settings.pop("heldout_words", [])
    if unmasked:
        data += f" {len(unmasked):,} held-out words and their word families were never masked (see {MASKED_LM_NAME})."
    scores = {"before training": record["before"], "after training": record["after"]}
    return {
        "data": {"description": data},
        "versions": record.get("versions"),
        "seed": settings["seed"],
        "limits": record.get("limits"),
        "command": record.get("command"),
        "recipe": settings,
        "stages": [{"stage": "masked tokens", "steps": record["steps"], "seconds": record["seconds"]}],
        "evaluation": {
            "description": "Prediction of masked tokens in held-out text of the same kind.",
            "scores": [{"model": name, **score} for name, score in scores.items()],
        },
    }


def format_training(training: dict[str, Any]) -> str:
    """Returns data, versions, stages, command and recipe in Markdown; "" if nothing is known."""
    data = training.get("data") or {}
    counts = {"training words": data.get("training_words"), "contexts": data.get("contexts")}
    counts |= {f"targets from {source}": count for source, count in (data.get("sources") or {}).items()}
    counts |= training.get("versions") or {}
    if training.get("seed") is not None:
        counts["seed"] = str(training["seed"])  # a name rather than a number
    parts = [data.get("description"), format_facts(counts), format_rows(training.get("stages") or [])]
    if training.get("command"):
        parts.append(f"```bash\n{training['command']}\n```")
    if training.get("recipe"):
        parts.append(f"```yaml\n{yaml_dump(training['recipe'], sort_keys=False)}```")
    return "\n\n".join(part for part in parts if part)


def format_scores(training: dict[str, Any]) -> str:
    """Returns the scores in Markdown; "" if there are none."""
    evaluation = training.get("evaluation") or {}
    if not evaluation.get("scores"):
        return ""
    num_words = evaluation.get("num_words")
    parts = [evaluation.get("description"), num_words and f"{num_words:,} words.", format_rows(evaluation["scores"])]
    return "\n\n".join(part for part in parts if part)


def list_results(training: dict[str, Any], task_type: str | None) -> list[EvalResult]:
    """Returns each score, for each number of contexts or each model, for the card's `model-index`.

    The Hub's newer `.eval_results/*.yaml` take scores on benchmarks that are datasets on the Hub; ours are not.
    """
    evaluation = training.get("evaluation") or {}
    description = evaluation.get("description") or "held-out words"
    return [
        EvalResult(
            task_type=task_type or "feature-extraction",
            dataset_type="custom",  # the field wants an id on the Hub or such a word
            dataset_name=description.partition(":")[0].rstrip("."),
            metric_type=metric,
            metric_name=", ".join([format_title(metric), *_list_conditions(score)]),
            metric_value=float(f"{value:.4g}") if isinstance(value, float) else value,
        )
        for score in evaluation.get("scores") or []
        for metric, value in score.items()
        if metric not in (*CONDITIONS, "num_tokens") and not metric.endswith(BOUNDS) and isinstance(value, int | float)
    ]


def _list_conditions(score: dict[str, Any]) -> list[str]:
    return [f"{name}: {score[name]}" for name in CONDITIONS if name in score]


def uses_approximation(training: dict[str, Any]) -> bool:
    """Whether some targets came from one-token approximation."""
    return bool(((training.get("data") or {}).get("sources") or {}).get("approximation"))
