"""Training words of mode pieces: how they are cut, what they mean, and their inputs."""

import copy
import logging
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from ..processing_bertram import BertramProcessor, pad_rows
from ..processing_context import tokenize_plain
from ..tokenization_form import NO_UNIT
from ..utils.hashing import fingerprint
from ..words.unknown import UnknownSplitter
from .batches import WordCollator, read_features
from .contexts import EncodedContexts

logger = logging.getLogger(__name__)
SLASH_SHARE = 0.3  # of texts with the word's pieces and a slash before its vector


class PieceCuts:
    """Two cuts of each word into pieces, and draws between them.

    A word of one token is cut as if unknown, without the tokens of its family (hard) or without its own (easy); a word
    of several pieces has these in both.

    Args:
        processor: A processor that writes pieces.
        words: W words; those that cannot be cut are left out, and how many is logged.
        hard_share: Share of hard cuts in a draw.
        seed: Seed of the draws.

    Attributes:
        words: The words that can be cut.
    """

    def __init__(self, processor: BertramProcessor, words: Sequence[str], *, hard_share: float, seed: int = 0) -> None:
        self.processor, self.hard_share, self.seed = processor, hard_share, seed
        splitter = UnknownSplitter(processor.tokenizer)
        self.words: list[str] = []
        self._hard: list[list[int]] = []
        self._easy: list[list[int]] = []
        for word in words:
            natural = processor.encode_pieces(word)
            is_one = len(natural) == 1
            hard, easy = (splitter.split(word, hard=is_hard) if is_one else natural for is_hard in (True, False))
            if hard and easy:
                self.words.append(word)
                self._hard.append(hard)
                self._easy.append(easy)
        if len(self.words) < len(words):
            logger.info("%d of %d words cannot be cut as if unknown.", len(words) - len(self.words), len(words))

    @property
    def key(self) -> str:
        """Names the cuts."""
        return fingerprint([self.words, self._hard, self._easy, self.hard_share, self.seed])

    def select(self, words: Sequence[str]) -> "PieceCuts":
        """Returns the cuts of some of the words, in the order given."""
        rows = {word: row for row, word in enumerate(self.words)}
        chosen = copy.copy(self)
        chosen.words = list(words)
        chosen._hard, chosen._easy = ([cuts[rows[word]] for word in words] for cuts in (self._hard, self._easy))
        return chosen

    def harden(self) -> "PieceCuts":
        """Returns cuts of which only the hard ones are drawn."""
        hard = copy.copy(self)
        hard.hard_share = 1.0
        return hard

    def respell(self, spellings: Mapping[int, str]) -> "PieceCuts":
        """Returns cuts in which some words, by row, are spelled otherwise, and so cut as the tokenizer does."""
        changed = copy.copy(self)
        changed._hard, changed._easy = list(self._hard), list(self._easy)
        for row, spelling in spellings.items():
            changed._hard[row] = changed._easy[row] = self.processor.encode_pieces(spelling)
        return changed

    def draw(self, words: np.ndarray, rows: np.ndarray) -> list[list[int]]:
        """Returns a cut of each of some words (W,), by row, that depends on the words and their contexts' rows only."""
        generator = np.random.default_rng([self.seed, len(words), int(words.sum()), int(rows.sum())])
        is_hard = generator.random(len(words)) < self.hard_share
        return [(self._hard if hard else self._easy)[word] for word, hard in zip(words, is_hard, strict=True)]

    def write(
        self, pieces: Sequence[list[int]], input_ids: Sequence[list[int]]
    ) -> tuple[list[list[int]], list[int], list[int]]:
        """Writes the pieces of each context's word into it, in place of the masks.

        Returns:
            Token ids, mask positions and numbers of pieces.
        """
        written = [self.processor.write_pieces(*pair) for pair in zip(pieces, input_ids, strict=True)]
        return [ids for ids, _ in written], [position for _, position in written], list(map(len, pieces))


class Meanings:
    """The tokenised definitions of words, and draws among them.

    Args:
        processor: A processor that writes pieces.
        contexts: The words' contexts, of which the last ones of each word are its definitions.
        definitions: For each word its definitions, in their order.
        seed: Seed of the draws.
    """

    def __init__(
        self,
        processor: BertramProcessor,
        contexts: EncodedContexts,
        definitions: Sequence[Sequence[str]],
        *,
        seed: int = 0,
    ) -> None:
        self.processor, self.seed = processor, seed
        flat = tokenize_plain(processor.tokenizer, [text for texts in definitions for text in texts])
        self._ids = [processor.frame(ids) for ids in flat]
        ends = np.cumsum([0, *map(len, definitions)])
        self._spans = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
        self._first_rows = contexts.offsets[1:] - np.diff(ends)  # of each word's definitions among its contexts

    def draw(
        self, words: np.ndarray, rows: np.ndarray, num_contexts: np.ndarray, pieces: Sequence[list[int]]
    ) -> dict[str, torch.Tensor]:
        """Draws for each word (W,) a definition that is not among its contexts' rows (C,), where there is one.

        Returns:
            `meaning_words` (M,), which words have one; the definitions as `definition_ids` and `definition_mask`
            (M, T); and texts in which the mask stands for the word's vector, as `meaning_ids` and `meaning_mask`. Some
            are the vector alone, some have the word's pieces and a slash before it. Nothing if no word has one.
        """
        generator = np.random.default_rng([self.seed, len(words), int(words.sum()), int(rows.sum())])
        ends = np.cumsum(num_contexts)
        chosen: list[int] = []
        definitions: list[list[int]] = []
        texts: list[list[int]] = []
        for index, (word, draw, form) in enumerate(
            zip(words, generator.random(len(words)), generator.random(len(words)) < SLASH_SHARE, strict=True)
        ):
            start, end = self._spans[word]
            own = rows[ends[index] - num_contexts[index] : ends[index]]
            read = set((own - self._first_rows[word]).tolist())
            free = [number for number in range(end - start) if number not in read]
            if free:
                chosen.append(index)
                definitions.append(self._ids[start + free[int(draw * len(free))]])
                mask = [self.processor.tokenizer.mask_token_id]
                texts.append(self.processor.write_pieces(pieces[index])[0] if form else self.processor.frame(mask))
        if not chosen:
            return {}
        batch = {"meaning_words": torch.tensor(chosen)}
        for name, padded in (("definition", definitions), ("meaning", texts)):
            features = self.processor.pad_texts(padded)
            batch |= {f"{name}_ids": features["input_ids"], f"{name}_mask": features["attention_mask"]}
        return batch


class PieceCollator(WordCollator):
    """Makes inputs of mode pieces from contexts that have masks in place of the word.

    Args:
        cuts: The cuts of the words, in the order of `contexts.words`.
        meanings: Their definitions, if these are to be found by the vectors.

    The other arguments are those of [`WordCollator`].
    """

    def __init__(
        self,
        processor: BertramProcessor,
        contexts: EncodedContexts,
        targets: torch.Tensor,
        features: np.ndarray | None = None,
        *,
        cuts: PieceCuts,
        meanings: Meanings | None = None,
    ) -> None:
        super().__init__(processor, contexts, targets, features)
        self.cuts, self.meanings = cuts, meanings

    def __call__(self, words: np.ndarray, rows: np.ndarray, num_contexts: np.ndarray) -> dict[str, torch.Tensor]:
        pieces = self.cuts.draw(words, rows)
        inputs = {
            "labels": self.targets[words],
            "form_ids": pad_rows([self.processor.write_pieces(cut)[0] for cut in pieces], NO_UNIT),
            "num_contexts": torch.from_numpy(num_contexts),
        }
        if self.meanings is not None:
            inputs |= self.meanings.draw(words, rows, num_contexts, pieces)
        if len(rows) == 0:
            return inputs
        if self.features is not None:
            return inputs | {"context_embeddings": read_features(self.features, rows)}
        owners = np.repeat(np.arange(len(words)), num_contexts)
        written = self.cuts.write([pieces[owner] for owner in owners], [self.contexts.input_ids(row) for row in rows])
        return inputs | self.processor.pad_contexts(*written)

    def respell(self, spellings: Mapping[int, str], *, keep_features: bool) -> "PieceCollator":
        return PieceCollator(
            self.processor,
            self.contexts,
            self.targets,
            self.features if keep_features else None,
            cuts=self.cuts.respell(spellings),
        )


def without_pieces(processor: BertramProcessor) -> BertramProcessor:
    """Returns a processor that leaves masks in place of words, to be written over later."""
    masking = copy.copy(processor)
    masking.pieces = False
    return masking
