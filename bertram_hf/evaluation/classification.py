"""Classification of natural texts: does injection help, or harm, where nobody has made rare words decide?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import torch

from ..induction.word_vectors import WordVectors
from ..utils.names import Mode
from .embedding import SentenceEmbedder
from .statistics import bootstrap_interval

MAX_ITERATIONS = 1000


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
        >>> task.answer(vectors, "slash").shape
        (1,)
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

    def answer(self, vectors: WordVectors | None = None, mode: Mode = "auto") -> np.ndarray:
        """Returns (N,) whether each text is classified correctly.

        Args:
            vectors: Vectors that are injected, when learning and when classifying. By default none.
            mode: How they are injected.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        train, test = (
            self.embedder.embed(texts, vectors, mode).double().numpy() for texts in (self.train_texts, self.test_texts)
        )
        # Embeddings have hardly any outliers, so that standardised ones need a strong penalty only.
        classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=MAX_ITERATIONS))
        return classifier.fit(train, self._train_labels).predict(test) == self._test_labels

    @cached_property
    def plain(self) -> np.ndarray:
        """(N,), what `answer` gives without injection."""
        return self.answer()

    def find_touched(self, vectors: WordVectors, mode: Mode = "auto") -> np.ndarray:
        """Returns (N,) which of the texts to classify hold an injected word."""
        injected, plain = (self.embedder.embed(self.test_texts, each, mode) for each in (vectors, None))
        return torch.ne(injected, plain).any(dim=1).numpy()

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
