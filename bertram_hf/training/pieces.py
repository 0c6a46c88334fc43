"""Training words of mode pieces: how they are cut, and their inputs."""

import copy
import logging
from collections.abc import Mapping, Sequence
from random import Random

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
# Of probes: how many have the vector beside the word's pieces, not in place of them, and a text's tokens on each side.
BESIDE_SHARE = 0.4
MAX_PIECES = 8  # of a random cut
TEXT_SIDES = ((0, 0), (0, 0), (2, 2), (0, 5), (5, 0), (5, 5), (10, 10))


class PieceCuts:
    """Two cuts of each word into pieces, and draws between them.

    A word of one token is cut as if unknown, without the tokens of its family (hard) or without its own (easy); a word
    of several pieces has these in both.

    Args:
        processor: A processor that writes pieces.
        words: W words; those that cannot be cut are left out, and how many is logged.
        hard_share: Share of hard cuts in a draw.
        random_share: Share of random ones.
        hidden_share: Share of words with contexts that are written as one unknown token.
        seed: Seed of the draws.

    Attributes:
        words: The words that can be cut.
    """

    def __init__(
        self,
        processor: BertramProcessor,
        words: Sequence[str],
        *,
        hard_share: float,
        random_share: float = 0.0,
        hidden_share: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.processor, self.hard_share, self.seed = processor, hard_share, seed
        self.random_share, self.hidden_share = random_share, hidden_share
        self._splitter = splitter = UnknownSplitter(processor.tokenizer)
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
        self._spellings = self.words
        if len(self.words) < len(words):
            logger.info("%d of %d words cannot be cut as if unknown.", len(words) - len(self.words), len(words))

    @property
    def key(self) -> str:
        """Names the cuts."""
        shares = [self.hard_share, self.random_share, self.hidden_share]
        return fingerprint([self.words, self._hard, self._easy, shares, self.seed])

    def select(self, words: Sequence[str]) -> "PieceCuts":
        """Returns the cuts of some of the words, in the order given."""
        rows = {word: row for row, word in enumerate(self.words)}
        chosen = copy.copy(self)
        chosen.words = chosen._spellings = list(words)
        chosen._hard, chosen._easy = ([cuts[rows[word]] for word in words] for cuts in (self._hard, self._easy))
        return chosen

    def harden(self) -> "PieceCuts":
        """Returns cuts of which only the hard ones are drawn."""
        hard = copy.copy(self)
        hard.hard_share, hard.random_share, hard.hidden_share = 1.0, 0.0, 0.0
        return hard

    def respell(self, spellings: Mapping[int, str]) -> "PieceCuts":
        """Returns cuts in which some words, by row, are spelled otherwise, and so cut as the tokenizer does."""
        changed = copy.copy(self)
        changed._hard, changed._easy, changed._spellings = list(self._hard), list(self._easy), list(self._spellings)
        for row, spelling in spellings.items():
            changed._spellings[row] = spelling
            changed._hard[row] = changed._easy[row] = self.processor.encode_pieces(spelling)
        return changed

    def hard_cut(self, word: int) -> list[int]:
        """Returns the hard cut of a word, by row."""
        return self._hard[word]

    def draw(self, words: np.ndarray, rows: np.ndarray, num_contexts: np.ndarray | None = None) -> list[list[int]]:
        """Returns a cut of each of some words (W,), by row, that depends on the words and their contexts' rows only.

        Args:
            words: The words.
            rows: (C,), the rows of the contexts that are read.
            num_contexts: (W,), how many of these each word has; one each if it is not given.
        """
        random = Random(int(self.seed + len(words) + words.sum() + rows.sum()))
        counts = [1] * len(words) if num_contexts is None else num_contexts.tolist()
        return [self._draw(word, count, random) for word, count in zip(words.tolist(), counts, strict=True)]

    def _draw(self, word: int, num_contexts: int, random: Random) -> list[int]:
        hard, at_random, hidden = (
            random.random() < share for share in (self.hard_share, self.random_share, self.hidden_share)
        )
        if hidden and num_contexts > 0:
            return [self.processor.tokenizer.unk_token_id]
        cut = (self._hard if hard else self._easy)[word]
        drawn = self._splitter.split(self._spellings[word], hard=hard, random=random) if at_random else None
        return cut if drawn is None or len(drawn) > MAX_PIECES else drawn

    def write(
        self, pieces: Sequence[list[int]], input_ids: Sequence[list[int]]
    ) -> tuple[list[list[int]], list[int], list[int]]:
        """Writes the pieces of each context's word into it, in place of the masks.

        Returns:
            Token ids, mask positions and numbers of pieces.
        """
        written = [self.processor.write_pieces(*pair) for pair in zip(pieces, input_ids, strict=True)]
        return [ids for ids, _ in written], [position for _, position in written], list(map(len, pieces))


class Probes:
    """Short texts that show what a vector does in the original encoder, and what it should do.

    For a word with definitions, its vector, alone or beside its pieces, must be understood as one of them. A text with
    the vector, in place of the word or beside its pieces, must be understood as the text as it is: with the word's own
    token or, if it has none, with its pieces.

    Args:
        cuts: The cuts of the words.
        contexts: Their contexts, of which the last ones of each word are its definitions.
        definitions: For each word its definitions, in their order.
        seed: Seed of the draws.
    """

    def __init__(
        self, cuts: PieceCuts, contexts: EncodedContexts, definitions: Sequence[Sequence[str]], *, seed: int = 0
    ) -> None:
        self.processor, self.cuts, self.contexts, self.seed = cuts.processor, cuts, contexts, seed
        self._mask_id = self.processor.tokenizer.mask_token_id
        flat = tokenize_plain(self.processor.tokenizer, [text for texts in definitions for text in texts])
        self._definitions = [self.processor.frame(ids) for ids in flat]
        ends = np.cumsum([0, *map(len, definitions)])
        self._spans = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
        self._first_rows = contexts.offsets[1:] - np.diff(ends)  # of each word's definitions among its contexts
        self._natural = [self.processor.encode_pieces(word) for word in contexts.words]

    def draw(self, words: np.ndarray, rows: np.ndarray, num_contexts: np.ndarray) -> dict[str, torch.Tensor]:
        """Draws probes of words (W,), by row, of which these contexts (C,) are read; nothing if there are none.

        Returns:
            `probe_words` (M,), the words; texts in which the mask stands for the word's vector as `probe_ids`,
            `probe_mask` and, without added slashes, `probe_pooled` (M, T); what each is to be understood as in
            `answer_ids` and `answer_mask`; and `is_definition` (M,).
        """
        random = Random(int(self.seed + words.sum() + rows.sum()))
        own_rows = np.split(rows, np.cumsum(num_contexts)[:-1])
        chosen: list[int] = []
        probes: list[tuple[list[int], bool]] = []
        answers: list[list[int]] = []
        is_definition: list[bool] = []
        for index, (word, own) in enumerate(zip(words.tolist(), own_rows, strict=True)):
            drawn = [self._draw_definition(word, own, random), self._draw_text(word, random)]
            for kind, probe in enumerate(drawn):
                if probe is not None:
                    text, answer, is_beside = probe
                    chosen.append(index)
                    probes.append((text, is_beside))
                    answers.append(answer)
                    is_definition.append(kind == 0)
        if not chosen:
            return {}
        texts, told = (self.processor.pad_texts(each) for each in ([ids for ids, _ in probes], answers))
        is_slash = torch.zeros_like(texts["input_ids"], dtype=torch.bool)
        is_slash[:, :-1] = texts["input_ids"][:, 1:] == self._mask_id
        left_out = is_slash & torch.tensor([is_beside for _, is_beside in probes])[:, None]
        return {
            "probe_words": torch.tensor(chosen),
            "probe_ids": texts["input_ids"],
            "probe_mask": texts["attention_mask"],
            "probe_pooled": texts["attention_mask"].masked_fill(left_out, 0),
            "answer_ids": told["input_ids"],
            "answer_mask": told["attention_mask"],
            "is_definition": torch.tensor(is_definition),
        }

    def _draw_definition(self, word: int, own: np.ndarray, random: Random) -> tuple[list[int], list[int], bool] | None:
        """Draws a definition that is not among the word's contexts (C,)."""
        start, end = self._spans[word]
        read = set((own - self._first_rows[word]).tolist())
        free = [number for number in range(end - start) if number not in read]
        if not free:
            return None
        is_beside = random.random() < BESIDE_SHARE
        return self._write(word, [], [], is_beside), self._definitions[start + random.choice(free)], is_beside

    def _draw_text(self, word: int, random: Random) -> tuple[list[int], list[int], bool] | None:
        """Draws a short text around a word."""
        first, last = self.contexts.offsets[word], self._first_rows[word]
        if first == last:
            return None
        row = random.randrange(first, last)
        ids, place = self.contexts.input_ids(row), int(self.contexts.mask_positions[row])
        before, after = random.choice(TEXT_SIDES)
        left = ids[max(1, place - before) : place]
        right = [i for i in ids[place + 1 : -1][:after] if i != self._mask_id]
        is_beside = random.random() < BESIDE_SHARE
        answer = self.processor.frame([*left, *self._natural[word], *right])
        return self._write(word, left, right, is_beside), answer, is_beside

    def _write(self, word: int, left: list[int], right: list[int], is_beside: bool) -> list[int]:
        inner = [*left, self._mask_id, *right]
        framed = self.processor.frame(inner)
        return self.processor.write_pieces(self.cuts.hard_cut(word), framed)[0] if is_beside else framed


class PieceCollator(WordCollator):
    """Makes inputs of mode pieces from contexts that have masks in place of the word.

    Args:
        cuts: The cuts of the words, in the order of `contexts.words`.
        probes: Texts that show what the vectors do in the encoder, if they are trained for that.

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
        probes: Probes | None = None,
    ) -> None:
        super().__init__(processor, contexts, targets, features)
        self.cuts, self.probes = cuts, probes

    def __call__(self, words: np.ndarray, rows: np.ndarray, num_contexts: np.ndarray) -> dict[str, torch.Tensor]:
        pieces = self.cuts.draw(words, rows, num_contexts)
        inputs = {
            "labels": self.targets[words],
            "form_ids": pad_rows([self.processor.write_pieces(cut)[0] for cut in pieces], NO_UNIT),
            "num_contexts": torch.from_numpy(num_contexts),
        }
        if self.probes is not None:
            inputs |= self.probes.draw(words, rows, num_contexts)
        if len(rows) == 0:
            return inputs
        if self.features is not None:
            return inputs | {"context_embeddings": read_features(self.features, rows)}
        owners = np.repeat(np.arange(len(words)), num_contexts)
        written = self.cuts.write([pieces[owner] for owner in owners], [self.contexts.input_ids(row) for row in rows])
        return inputs | self.processor.pad_contexts(*written)

    def as_induced(self) -> "PieceCollator":
        """Returns a collator that writes words as induction does: no random or hidden cut, and no probes."""
        plain = copy.copy(self)
        plain.cuts, plain.probes = self.cuts.harden(), None
        return plain

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
