"""Classification of natural texts with the rare words of the training texts injected."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from datasets import Dataset

from ..evaluation.classification import TextClassification
from ..evaluation.embedding import SentenceEmbedder
from ..induction.word_vectors import WordVectors
from ..rarification.datasets import load_labelled_texts
from ..utils.tables import format_rows
from ..words.rare import find_rare_words
from ..words.splitting import split_words
from .recipe import EvaluatedSystem, NaturalTask
from .resources import Resources
from .sentences import keep_usable
from .systems import PLAIN


class NaturalBenchmark:
    """The work on one classification set, whose training texts are all that is known of its words.

    Args:
        resources: The encoder and the systems.
        task: The classification set.
    """

    def __init__(self, resources: Resources, task: NaturalTask) -> None:
        self.resources, self.task = resources, task
        self._induced: dict[tuple[str, int], WordVectors] = {}  # systems that differ in the mode share them

    @cached_property
    def parts(self) -> tuple[Dataset, Dataset]:
        """The texts to learn from and those to classify."""
        task = self.task
        texts = load_labelled_texts(
            [*task.inputs, *task.test_inputs], dataset=task.dataset, label_column=task.label_column
        )
        if task.test_inputs:
            num_train = len(load_labelled_texts(task.inputs, label_column=task.label_column))
            train, test = texts.select(range(num_train)), texts.select(range(num_train, len(texts)))
        else:
            halves = texts.train_test_split(test_size=0.5, seed=0)
            train, test = halves["train"], halves["test"]
        most = task.max_texts
        return tuple(  # type: ignore[return-value]
            part if most is None or len(part) <= most else part.shuffle(seed=0).select(range(most))
            for part in (train, test)
        )

    @cached_property
    def classification(self) -> TextClassification:
        """The texts with their labels."""
        resources, columns = self.resources, (self.task.text_column, self.task.label_column)
        embedder = SentenceEmbedder(
            resources.encoder,
            resources.tokenizer,
            max_length=self.task.max_length,
            show_progress=resources.show_progress,
        )
        return TextClassification(embedder, *(part[column][:] for part in self.parts for column in columns))

    @cached_property
    def contexts(self) -> dict[str, list[str]]:
        """The rare words of the training texts, with texts that hold them.

        Raises:
            ValueError: If there are none.
        """
        texts = self.classification.train_texts
        rare = find_rare_words(texts, self.resources.tokenizer, show_progress=self.resources.show_progress)
        words = keep_usable([entry.word for entry in rare if entry.num_texts >= self.task.min_texts], self.resources)
        if not words:
            raise ValueError(
                f"natural: expected words of several pieces in {self.task.min_texts} or more of the {len(texts)} "
                f"training texts of {self.task.name}; there are none. Lower min_texts."
            )
        found: dict[str, list[str]] = {word: [] for word in words}
        for text in texts:
            for word in dict.fromkeys(split_words(text.lower() if self.resources.lower_case else text)):
                if word in found and len(found[word]) < self.resources.recipe.max_contexts:
                    found[word].append(text)
        return found

    def evaluate(self, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
        """Scores one system."""
        task = self.classification
        facts: dict[str, Any] = {"num_words": len(self.contexts), "num_training_texts": len(task.train_texts)}
        if system.model == PLAIN:
            return facts | {"score": task.score(task.plain).to_dict()}
        key = (system.model, seed)
        if key not in self._induced:
            source = self.resources.vectors_of(system, seed)
            self._induced[key] = source.induce(self.contexts, show_progress=self.resources.show_progress)
        score, touched = task.evaluate(self._induced[key], system.mode)
        return facts | {"score": score.to_dict()} | ({} if touched is None else {"touched": touched.to_dict()})

    def report(self, results: Mapping[str, Sequence[dict[str, Any]]], command: str | None) -> str:
        """Returns the section of a README with all results."""
        first = next(iter(results.values()))[0]
        rows = []
        for system, found in results.items():
            score, touched = found[0]["score"], found[0].get("touched")
            cells = {"system": system, "accuracy": f"{100 * score['accuracy']:.1f}"}
            if touched is not None:
                cells |= {"gain": _gain(score), "texts with an injected word": f"{touched['num_texts']:,}"}
                cells["gain on these"] = _gain(touched)
            rows.append(cells)
        return (
            f"## {self.task.name}, natural texts\n\nLogistic regression on sentence embeddings; "
            f"{first['num_training_texts']:,} texts to learn from, {first['score']['num_texts']:,} to classify. "
            f"Injected are the {first['num_words']:,} words of several pieces that {self.task.min_texts} or more "
            "training texts hold, which are their contexts. Points; 95% intervals by paired bootstrap.\n"
            f"Command: `{command}`\n\n{format_rows(rows)}\n"
        )


def _gain(score: Mapping[str, float]) -> str:
    return f"{100 * score['gain']:+.1f} [{100 * score['gain_low']:+.1f}, {100 * score['gain_high']:+.1f}]"
