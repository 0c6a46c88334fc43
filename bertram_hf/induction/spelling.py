"""What unknown words are misspellings of: words that a model has a token for, or words of a user's texts."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch

from ..configuration_bertram import NUM_LENGTHS, TWO_ERRORS
from ..modeling_bertram import BertramModel
from ..modeling_look_alikes import compare_with
from ..processing_bertram import BertramProcessor
from ..processing_context import is_uncased
from ..processing_look_alikes import LookAlikes
from ..words.families import word_family
from ..words.splitting import normalize_spelling
from .induce import induce_vectors

SHORTEST = 4  # letters; shorter words look like many others
# Of `LetterModel`.
CONTEXT = 4  # letters
SMOOTHING = 3.0
NUM_LETTERS = 30
# Of `SpellingJudge.describe`: how much each column counts, and a constant; by examples/spelling_odds.py.
ODDS, CONSTANT = (0.676, 0.0624, -0.621, -0.0325, -13.2, -1.09), 4.2


class Spelling(NamedTuple):
    """A word that an unknown one probably stands for."""

    word: str
    probability: float


class SpellingJudge:
    """Finds the words that unknown ones are misspellings of, by their letters and by what a BERTRAM model says of them.

    Beside what the model says it counts how much less usual a word's letters are than those of the word that it would
    stand for, how frequent that word is, and whether it may be another form of it.

    Args:
        model: A BERTRAM model that has learnt to tell misspellings (`config.look_alikes`).
        processor: Its processor.
        known: Words that are right, the most frequent first or with their counts, such as those of the texts that are
            searched. None of them is a misspelling, and each may be what one stands for. Without them, only words that
            the encoder has a token for are.

    Raises:
        ValueError: If the model has not learnt that.

    Example:
        >>> judge = SpellingJudge(shipped_bertram, shipped_processor, ["dasatinib", "kumquat"])
        >>> judge(["resigntaion", "dasatnib", "zorilla"])["dasatnib"].word
        'dasatinib'
    """

    def __init__(
        self, model: BertramModel, processor: BertramProcessor, known: Mapping[str, int] | Iterable[str] = ()
    ) -> None:
        if processor.look_alikes is None or not model.config.look_alikes:
            raise ValueError(
                "Expected a BERTRAM model that has learnt to tell misspellings; this one has not. Train it with "
                "`look_alikes: {}` in its recipe."
            )
        self.model, self.processor = model, processor
        self.lower_case = is_uncased(processor.tokenizer)
        self._tokens = processor.look_alikes
        self._first = model.get_input_embeddings().num_embeddings  # stands for the most frequent of the known words
        self._known: dict[str, None] = {}
        self.learn(sorted(known, key=lambda word: -known[word]) if isinstance(known, Mapping) else known)

    def learn(self, words: Iterable[str]) -> None:
        """Takes further words for right."""
        spelled = (normalize_spelling(word, self.lower_case) for word in words)
        self._known |= dict.fromkeys(word for word in spelled if word.isalpha())
        self._words = [word for word in self._known if len(word) >= SHORTEST and word not in self._tokens]
        everything = self._known | dict.fromkeys(self._tokens.words)
        self._ranks = {word: rank for rank, word in enumerate(everything)}
        self._letters = LetterModel(everything)
        ids = range(self._first, self._first + len(self._words))
        self._look_alikes = LookAlikes([*self._tokens.words, *self._words], [*self._tokens.token_ids.tolist(), *ids])

    def is_known(self, word: str) -> bool:
        """Whether a word is right."""
        return word in self._known or word in self._tokens

    def __call__(self, words: Sequence[str]) -> dict[str, Spelling]:
        """Returns what words probably stand for; those that stand for nothing known are missing."""
        found, features = self.describe(words)
        probabilities = (features @ torch.tensor(ODDS) + CONSTANT).sigmoid().tolist()
        return {word: Spelling(found[word], value) for word, value in zip(found, probabilities, strict=True)}

    @torch.inference_mode()
    def describe(self, words: Sequence[str]) -> tuple[dict[str, str], torch.Tensor]:
        """Returns which known word each of some words (W) may stand for, and what speaks for and against that.

        Words that look like nothing known are missing.

        Returns:
            The known words, and features (W, 6): the log-odds by the model; the length; the logarithm of the known
            word's rank; the log-ratio of how probable the letters of both are, times the length; whether there is more
            than one error; and whether both may be forms of one word.
        """
        words = list(dict.fromkeys(word for word in words if len(word) >= SHORTEST and not self.is_known(word)))
        if not words:
            return {}, torch.empty(0, len(ODDS))
        token_ids, kinds = (torch.from_numpy(found) for found in self._look_alikes(words))
        own, weight = self._embed(words), self.model.get_input_embeddings().weight
        found = weight[token_ids.where(token_ids < self._first, 0).to(weight.device)].float().cpu()
        others = token_ids[token_ids >= self._first].unique()
        if len(others):
            embedded = self._embed([self._words[index] for index in (others - self._first).tolist()])
            is_other = token_ids >= self._first
            found[is_other] = embedded[torch.searchsorted(others, token_ids[is_other])]
        device = self.model.device
        logits = self.model.look_alike_mixture(
            compare_with(own, found, self.model.vocabulary_mean.float().cpu()).to(device),
            token_ids.to(device),
            kinds.to(device),
            torch.zeros(len(words), device=device),
        )
        best = logits[:, 1:].float().cpu().argmax(dim=1)
        probabilities = logits.double().softmax(dim=1)[:, 1:].cpu().gather(1, best[:, None])[:, 0]
        ids, best_kinds = (found.gather(1, best[:, None])[:, 0] for found in (token_ids, kinds))
        is_far = torch.div(best_kinds - 1, NUM_LENGTHS, rounding_mode="floor") == TWO_ERRORS
        kept = (best_kinds > 0).nonzero()[:, 0].tolist()
        found_words = {words[row]: self._look_alikes.name(int(ids[row])) for row in kept}
        counted = [
            [
                len(word),
                math.log1p(self._ranks[right]),
                len(word) * (self._letters.score(word) - self._letters.score(right)),
                is_far[row],
                word_family(word) == word_family(right),
            ]
            for row, (word, right) in zip(kept, found_words.items(), strict=True)
        ]
        features = torch.tensor(counted, dtype=torch.double).view(-1, len(ODDS) - 1)
        return found_words, torch.cat([probabilities[kept].logit()[:, None], features], dim=1).float()

    def _embed(self, words: Sequence[str]) -> torch.Tensor:
        """Returns the vectors (W, H) of words by their spelling alone."""
        contexts: dict[str, list[str]] = {word: [] for word in words}
        vectors = induce_vectors(
            self.model, self.processor, contexts, look_alikes=False, show_progress=False, warn=False
        )
        return vectors.embeddings.float()


class LetterModel:
    """How probable the letters of a word are, each after those behind it; shorter contexts smooth longer ones (MacKay &
    Peto, 1995).

    Read from the end, letters tell misspellings from right words better than from the start.

    Args:
        words: Right words.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._counts = Counter(
            framed[start:end]
            for framed in map(_frame, words)
            for start in range(len(framed))
            for end in range(start, min(len(framed), start + CONTEXT + 1) + 1)
        )

    def score(self, word: str) -> float:
        """Returns the logarithm of the probability of a word's letters."""
        framed, total = _frame(word), 0.0
        for place in range(1, len(framed)):
            probability = 1 / NUM_LETTERS
            for start in range(place, max(0, place - CONTEXT) - 1, -1):
                context = self._counts[framed[start:place]] + SMOOTHING
                probability = (self._counts[framed[start : place + 1]] + SMOOTHING * probability) / context
            total += math.log(probability)
        return total


def _frame(word: str) -> str:
    return f"^{word[::-1]}$"
