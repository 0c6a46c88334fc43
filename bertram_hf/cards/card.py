"""Writes the model card of a saved folder from its files."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData
from huggingface_hub.utils import validate_repo_id

from ..utils.tables import format_facts
from .descriptions import describe_injected, describe_masked_lm, describe_model, describe_processor, describe_words
from .folders import find_kind, is_hub_name
from .training import (
    format_scores,
    format_training,
    list_results,
    read_masked_lm_training,
    read_training,
    uses_approximation,
)

CARD_NAME = "README.md"
LIBRARY = "bertram-hf"
TEMPLATES = Path(__file__).parent / "templates"  # one for each kind of folder, and what ends each card
READ_TRAINING = {"model": read_training, "masked-lm": read_masked_lm_training}
DESCRIBE = {
    "model": describe_model,
    "processor": describe_processor,
    "words": describe_words,
    "injected": describe_injected,
    "masked-lm": describe_masked_lm,
}


def write_card(
    folder: str | os.PathLike,
    *,
    name: str | None = None,
    license: str | None = None,
    language: Sequence[str] = (),
    datasets: Sequence[str] = (),
    base_model: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes README.md, a Hugging Face model card, into a folder that bertram_hf saved. No weights are loaded.

    If the folder holds `training.json` or `masked_lm.json`, the card has data, recipe, stages and scores of training. A
    list `limits` in `training.json` is added to the card's limitations.

    Args:
        folder: Saved BERTRAM model with its processor, processor alone, word vectors, injected model, or masked
            language model that `bertram masked-lm` trained.
        name: Name on the Hub, for title and examples; by default the folder's.
        license: Such as `"apache-2.0"`; left out if not given, like `language` and `datasets`.
        language: Codes such as `"en"`.
        datasets: The training data's names on the Hub.
        base_model: The encoder's name on the Hub; by default the one that the folder names, if it is no local path.
        overwrite: Whether a README.md may be overwritten.

    Returns:
        The path of the card.

    Raises:
        ValueError: If the folder is none of ours, or `base_model` is not a name on the Hub.
        FileExistsError: If there is a README.md and it may not be overwritten.

    Example:
        >>> write_card("my-bertram", name="user/my-bertram", license="apache-2.0", overwrite=True)
        PosixPath('my-bertram/README.md')
    """
    folder = Path(folder)
    kind = find_kind(folder)
    path = folder / CARD_NAME
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"Expected no {CARD_NAME} in {folder}; there is one. Pass overwrite=True (--force) to replace it."
        )
    if base_model is not None and not is_hub_name(base_model):
        raise ValueError(f"base_model must be a name on the Hub, such as bert-base-uncased; got {base_model!r}.")
    if name is None:
        name = folder.resolve().name
    else:
        validate_repo_id(name)
    training = READ_TRAINING[kind](folder) if kind in READ_TRAINING else {}
    described = DESCRIBE[kind](folder, name, base_model)
    title = name.split("/")[-1]
    results = list_results(training, described.metadata.get("pipeline_tag"))
    metadata: dict[str, Any] = {
        "license": license,
        "language": list(language) or None,
        "datasets": list(datasets) or None,
        "library_name": LIBRARY,
        "base_model": base_model,
        "tags": ["bertram", "rare-words", "word-embeddings"],
    }
    if results:
        metadata |= {"model_name": title, "eval_results": results}
    facts = described.facts | {
        "title": title,
        "details": format_facts(described.details),
        "limits": training.get("limits") or [],
        "training": format_training(training),
        "scores": format_scores(training),
        "citations": _list_citations(training),
    }
    template = "".join((TEMPLATES / file_name).read_text(encoding="utf-8") for file_name in (f"{kind}.md", "footer.md"))
    card = ModelCard.from_template(ModelCardData(**metadata | described.metadata), template_str=template, **facts)
    card.content += "\n"  # which Jinja drops
    card.save(path)
    return path


def _list_citations(training: dict[str, Any]) -> str:
    """Returns the papers to cite; the last one only if some targets came from one-token approximation."""
    papers = (TEMPLATES / "citations.bib").read_text(encoding="utf-8").strip().split("\n\n")
    return "\n\n".join(papers if uses_approximation(training) else papers[:-1])
