"""Classification of natural texts: does injection help, or harm, where nobody has made rare words decide?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from ..induction.word_vectors import WordVectors
from ..utils.names import Mode
from .embedding import SentenceEmbedder
from .statistics import bootstrap_interval

# Of the regression: standardised embeddings have many directions of little meaning.
INVERSE_PENALTY, MAX_ITERATIONS = 0.01, 1000


@dataclass(frozen=True)
class ClassificationScore:
    """How many texts are classified correctly.

    Attributes:
        accuracy: Share of correct answers.
        gain: By how much it is above that of embeddings without injection.
        gain_low: Lower end of its 95% confidence interval, by paired bootstrap over the texts.
        gain_high: Upper end.
        num_texts: Of how many texts.
    """

    accuracy: float
    gain: float
    gain_low: float
    gain_high: float
    num_texts: int

    def to_dict(self) -> dict[str, float]:
        """Returns the fields, rounded for reading."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


class TextClassification:
    """Texts with labels, classified by logistic regression on their sentence embeddings.

    Args:
        embedder: Embeds the texts.
        train_texts: Texts to learn from.
        train_labels: The label of each.
        test_texts: N texts to classify.
        test_labels: The label of each.

    Raises:
        ValueError: If there is no text to classify, or less than two labels to learn.

    Example:
        >>> from bertram_hf.evaluation import SentenceEmbedder
        >>> texts, labels = ["A kumquat.", "A quokka.", "A fruit.", "A tree."], [0, 1, 0, 1]
        >>> task = TextClassification(SentenceEmbedder(encoder, tokenizer), texts, labels, ["The kumquat."], [0])
        >>> everything, touched = task.evaluate(vectors, "slash")
        >>> everything.num_texts, touched.num_texts
        (1, 1)
    """

    def __init__(
        self,
        embedder: SentenceEmbedder,
        train_texts: Sequence[str],
        train_labels: Sequence[int],
        test_texts: Sequence[str],
        test_labels: Sequence[int],
    ) -> None:
        self.embedder = embedder
        self.train_texts, self.test_texts = list(train_texts), list(test_texts)
        self._train_labels, self._test_labels = np.asarray(train_labels), np.asarray(test_labels)
        if not self.test_texts or len(set(self._train_labels.tolist())) < 2:
            raise ValueError(
                f"Expected texts to classify, and at least two labels to learn; got {len(self.test_texts)} and "
                f"{len(set(self._train_labels.tolist()))}."
            )

    def evaluate(
        self, vectors: WordVectors, mode: Mode = "auto"
    ) -> tuple[ClassificationScore, ClassificationScore | None]:
        """Scores embeddings with injected vectors, when learning and when classifying.

        Args:
            vectors: Vectors that are injected.
            mode: How they are injected.

        Returns:
            The score on all texts, and that on the texts that hold an injected word; None if none does.
        """
        train, test = self._embed(vectors, mode)
        correct = self._classify(train, test)
        is_touched = (test != self._embed()[1]).any(axis=1)  # others are read as before, bit for bit
        return self.score(correct), self.score(correct, is_touched) if is_touched.any() else None

    @cached_property
    def plain(self) -> np.ndarray:
        """(N,), whether each text is classified correctly without injection."""
        return self._classify(*self._embed())

    def _embed(self, vectors: WordVectors | None = None, mode: Mode = "auto") -> tuple[np.ndarray, np.ndarray]:
        """Returns the embeddings of the texts to learn from, and of those to classify."""
        train, test = (
            self.embedder.embed(texts, vectors, mode).double().numpy() for texts in (self.train_texts, self.test_texts)
        )
        return train, test

    def _classify(self, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Learns from embeddings and returns (N,) whether each text is classified correctly."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        classifier = make_pipeline(StandardScaler(), LogisticRegression(C=INVERSE_PENALTY, max_iter=MAX_ITERATIONS))
        return classifier.fit(train, self._train_labels).predict(test) == self._test_labels

    def score(self, correct: np.ndarray, chosen: np.ndarray | None = None) -> ClassificationScore:
        """Scores answers (N,) on all texts, or on the chosen ones (N,)."""
        kept = slice(None) if chosen is None else chosen
        gains = correct[kept].astype(float) - self.plain[kept]
        return ClassificationScore(
            float(correct[kept].mean()),
            float(gains.mean()),
            *bootstrap_interval(len(gains), lambda items: gains[items].mean()),
            num_texts=len(gains),
        )
