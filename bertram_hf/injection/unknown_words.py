"""Words that are met in texts and that nobody listed."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..induction.induce import induce_vectors
from ..induction.spelling import SHORTEST, SpellingJudge
from ..induction.word_vectors import WordVectors
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..words.pieces import PieceReader
from ..words.splitting import normalize_spelling, split_words
from .policy import MIN_RELIABILITY

SURE = 0.97  # that a word is a misspelling; by examples/spelling_odds.py
MAX_CONTEXTS = 16
Texts = Mapping[str, Sequence[str]] | Callable[[str], Sequence[str]]


class UnknownWords:
    """Says how words are read that are met in texts and stand in no pack, if the model breaks them into pieces.

    A word with a definition or with sentences gets a vector. A misspelling is read as the word that it stands for. Any
    other word is left as it is. Only words of letters are asked for, and each only once as long as it is remembered.

    Args:
        model: A BERTRAM model for the encoder.
        processor: Its processor.
        known: Words that are right, the most frequent first or with their counts, such as those of the texts that are
            searched (`known_words.txt` of `bertram adapt`). They are never taken for misspellings, which may stand for
            them.
        contexts: Sentences of words: a mapping, which may change, or a function.
        definitions: Definitions of words, in the same form: a glossary.
        min_probability: How probable a misspelling must be.
        max_words: So many words are remembered; those that were met least recently are forgotten.
        max_per_text: So many new words of one text are looked into; others wait until they are met again.

    Example:
        >>> unknown = UnknownWords(shipped_bertram, shipped_processor, known=["dasatinib"])
        >>> unknown.read(["the dasatnib resigntaion"])
        ({'dasatnib': 'dasatinib', 'resigntaion': 'resignation'}, None)
    """

    def __init__(
        self,
        model: BertramModel,
        processor: BertramProcessor,
        *,
        known: Mapping[str, int] | Iterable[str] = (),
        contexts: Texts | None = None,
        definitions: Texts | None = None,
        min_probability: float = SURE,
        max_words: int = 10_000,
        max_per_text: int = 8,
    ) -> None:
        if max_words < 1 or max_per_text < 1:
            raise ValueError(f"Expected limits of at least 1; got max_words={max_words}, max_per_text={max_per_text}.")
        self.model, self.processor = model, processor
        self.judge = SpellingJudge(model, processor, known)
        self.contexts, self.definitions = contexts, definitions
        self.min_probability = min_probability
        self.max_words, self.max_per_text = max_words, max_per_text
        self._reader = PieceReader(processor.tokenizer)

    def read(
        self, texts: Sequence[str], settled: OrderedDict[str, None] | None = None
    ) -> tuple[dict[str, str], WordVectors | None]:
        """Returns, of the unknown words of texts, what misspellings stand for, and the vectors of others.

        Args:
            texts: The texts.
            settled: Words that need not be looked into again; those of the texts are added.
        """
        new = self._find_new(texts, OrderedDict() if settled is None else settled)
        told = {word: own for word, own in new.items() if any(own)}
        spelled = self.judge([word for word in new if word not in told])
        right = {word: found.word for word, found in spelled.items() if found.probability > self.min_probability}
        return right, self._induce(told) if told else None

    def _find_new(
        self, texts: Sequence[str], settled: OrderedDict[str, None]
    ) -> dict[str, tuple[list[str], list[str]]]:
        """Returns the words that were not looked into yet, at most so many of each text, with their sentences and
        definitions."""
        found: dict[str, tuple[list[str], list[str]]] = {}
        lower_case = self.judge.lower_case
        for text in texts:
            asked = 0
            for word in split_words(text):
                word = normalize_spelling(word, lower_case)
                if word in settled or word in found or len(word) < SHORTEST:
                    continue
                own = self._look_up(self.contexts, word), self._look_up(self.definitions, word)
                if not word.isalpha() or (self.judge.is_known(word) and not any(own)):
                    settled[word] = None
                elif asked < self.max_per_text:
                    asked += 1
                    found[word] = own
        settled |= dict.fromkeys(found)
        while len(settled) > 10 * self.max_words:  # most words of a text are known
            settled.popitem(last=False)
        pieces = self._reader.split(list(found)) if found else []
        broken = [word for word, cut in zip(found, pieces, strict=True) if self._reader.breaks_up(cut, 2)]
        return {word: found[word] for word in broken}

    @staticmethod
    def _look_up(texts: Texts | None, word: str) -> list[str]:
        if texts is None:
            return []
        found = texts.get(word, ()) if isinstance(texts, Mapping) else texts(word)
        return [found] if isinstance(found, str) else list(found)

    def _induce(self, told: Mapping[str, tuple[list[str], list[str]]]) -> WordVectors:
        vectors = induce_vectors(
            self.model,
            self.processor,
            {word: contexts[:MAX_CONTEXTS] for word, (contexts, _) in told.items()},
            definitions={word: definitions for word, (_, definitions) in told.items() if definitions},
            errors="skip",
            look_alikes=False,
            show_progress=False,
            warn=False,
        )
        unreliable = vectors.unreliable(MIN_RELIABILITY)
        return vectors.select([word for word in vectors if vectors.used_contexts.get(word) and word not in unreliable])


class MetWords:
    """Rows of an injector's table for words that are met. When all are taken, the oldest word gives up its row.

    Args:
        unknown: Says how words are read.
        put: Called with the rows of words, what misspellings stand for, and the vectors of the others.
        rows: The rows.
    """

    def __init__(
        self,
        unknown: UnknownWords,
        put: Callable[[dict[str, int], dict[str, str], WordVectors | None], None],
        rows: Iterable[int],
    ) -> None:
        self.unknown, self._put = unknown, put
        self._free = list(rows)[::-1]
        self._rows: OrderedDict[str, int] = OrderedDict()
        self._settled: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __call__(self, texts: Sequence[str]) -> None:
        """Looks into the new words of texts. A process that was forked, such as one that loads data, leaves them as
        they are: the model of another process would not know their rows."""
        if os.getpid() != self._process:
            return
        with self._lock:
            right, vectors = self.unknown.read(texts, self._settled)
            words = [*right, *(vectors or ())]
            if words:
                self._put({word: self._take_row(word) for word in words}, right, vectors)

    def _take_row(self, word: str) -> int:
        if word in self._rows:
            self._rows.move_to_end(word)
            return self._rows[word]
        if not self._free:
            oldest, row = self._rows.popitem(last=False)
            self._settled.pop(oldest, None)  # to be looked into when it is met again
            self._free.append(row)
        self._rows[word] = self._free.pop()
        return self._rows[word]
