"""Words that a tokenizer has a token for, cut as if it had none."""

import json
from collections.abc import Callable, Collection
from itertools import pairwise
from random import Random
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..processing_context import LONE_SPACES
from .families import word_family
from .pieces import PieceReader

SPACE = " "
# Of random cuts.
SHORTER_SHARE = 0.4
DROPPED_MERGES = 0.1
SCORE_NOISE = 2.0


class UnknownSplitter:
    """Cuts words into a tokenizer's pieces as if it did not know them.

    A network that is to read the pieces of rare words learns it on frequent ones, whose true embeddings are known. Two
    cuts are made: an easy one without the word's own token, and a hard one without any token of its family, as
    *academics* says all of *academic*. Rare words lie between the two.

    Args:
        tokenizer: A fast tokenizer whose model is WordPiece, BPE or Unigram.

    Raises:
        ValueError: If its model is another one.

    Example:
        >>> splitter = UnknownSplitter(tokenizer)
        >>> [splitter.reader.read(piece) for piece in splitter.split("fruit", hard=True)]
        ['f', '·r', '·u', '·i', '·t']
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        model = {} if backend is None else json.loads(backend.to_str())["model"]
        splits: dict[str, Callable[..., Any]] = {"WordPiece": WordPieceSplit, "BPE": BpeSplit, "Unigram": UnigramSplit}
        if model.get("type") not in splits:
            raise ValueError(
                f"Expected a fast tokenizer of type {', '.join(splits)}; got {type(tokenizer).__name__} with "
                f"{model.get('type')}."
            )
        self.reader = PieceReader(tokenizer)
        self._backend: Any = backend
        self._split = splits[model["type"]](model)
        self._spelled: dict[str, set[str]] = {}
        self._families: dict[str, set[str]] = {}
        for token_id, token in self.reader.tokens.items():
            text = self.reader.read(token_id).removeprefix("·").lower()
            if token_id not in self.reader.special_ids and text.isalpha():
                self._spelled.setdefault(text, set()).add(token)
                self._families.setdefault(word_family(text), set()).add(token)

    def split(self, word: str, *, hard: bool, random: Random | None = None) -> list[int] | None:
        """Returns the pieces of a word as if unknown; None if it cannot be cut, as when a letter has no token.

        Args:
            word: The word.
            hard: Whether the tokens of its whole family are left out, or only its own.
            random: If given, one of the many cuts that the vocabulary allows is drawn; else it is the tokenizer's.
        """
        text = SPACE + word
        if self._backend.normalizer is not None:
            text = self._backend.normalizer.normalize_str(text)
        banned: set[str] = set()
        for spelling in (word.lower(), text.strip(f"{SPACE}▁").lower()):
            banned |= self._spelled.get(spelling, set())
            if hard:
                banned |= self._families.get(word_family(spelling), set())
        parts = [text]
        if self._backend.pre_tokenizer is not None:
            parts = [part for part, _ in self._backend.pre_tokenizer.pre_tokenize_str(text)]
        pieces: list[int] = []
        for part in parts:
            found = self._split(part.strip(), banned, random)
            if found is None:
                return None
            pieces += found
        pieces = [piece for piece in pieces if self.reader.tokens.get(piece) not in LONE_SPACES]
        return pieces if len(pieces) > 1 else None


class WordPieceSplit:
    """The longest token first, from left to right."""

    def __init__(self, model: dict[str, Any]) -> None:
        self.vocab: dict[str, int] = model["vocab"]
        self.prefix: str = model["continuing_subword_prefix"]

    def __call__(self, text: str, banned: Collection[str], random: Random | None = None) -> list[int] | None:
        """Returns the pieces without banned tokens; None if there are none. At random, some are not the longest."""
        pieces: list[int] = []
        start = 0
        while start < len(text):
            begin = "" if start == 0 else self.prefix
            ends = [
                end
                for end in range(start + 1, len(text) + 1)
                if (token := begin + text[start:end]) in self.vocab and token not in banned
            ]
            if not ends:
                return None
            end = ends[-1]
            if random is not None and random.random() < SHORTER_SHARE:
                end = random.choices(ends, [end - start for end in ends])[0]
            pieces.append(self.vocab[begin + text[start:end]])
            start = end
        return pieces


class BpeSplit:
    """Pairs merged in the order in which the tokenizer learnt them."""

    def __init__(self, model: dict[str, Any]) -> None:
        self.vocab: dict[str, int] = model["vocab"]
        pairs = [tuple(pair.split(SPACE)) if isinstance(pair, str) else tuple(pair) for pair in model["merges"]]
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}

    def __call__(self, text: str, banned: Collection[str], random: Random | None = None) -> list[int] | None:
        """Returns the pieces without merges into banned tokens; None if a character has no token. At random, some pairs
        are not merged (BPE-dropout; Provilkov et al., 2020)."""
        symbols = list(text)
        while True:
            pairs = {
                pair
                for pair in pairwise(symbols)
                if pair in self.ranks
                and "".join(pair) not in banned
                and (random is None or random.random() >= DROPPED_MERGES)
            }
            if not pairs:
                break
            best = min(pairs, key=self.ranks.__getitem__)
            merged: list[str] = []
            while symbols:
                size = 2 if tuple(symbols[:2]) == best else 1
                merged.append("".join(symbols[:size]))
                symbols = symbols[size:]
            symbols = merged
        return [self.vocab[symbol] for symbol in symbols] if all(s in self.vocab for s in symbols) else None


class UnigramSplit:
    """The pieces whose probabilities have the largest product."""

    def __init__(self, model: dict[str, Any]) -> None:
        self.scores = {token: (token_id, score) for token_id, (token, score) in enumerate(model["vocab"])}
        self.longest = max(map(len, self.scores))

    def __call__(self, text: str, banned: Collection[str], random: Random | None = None) -> list[int] | None:
        """Returns the pieces without banned tokens; None if there are none. At random, scores are changed a little."""
        best: list[tuple[float, list[int]] | None] = [(0.0, [])] + [None] * len(text)
        for end in range(1, len(text) + 1):
            for start in range(max(0, end - self.longest), end):
                before, token = best[start], text[start:end]
                if before is None or token not in self.scores or token in banned:
                    continue
                token_id, score = self.scores[token]
                if random is not None:
                    score += random.gauss(0.0, SCORE_NOISE)
                here = best[end]
                if here is None or before[0] + score > here[0]:
                    best[end] = (before[0] + score, [*before[1], token_id])
        found = best[-1]
        return None if found is None else found[1]
