"""Inputs of a classifier with words masked, made from tokens: a text is tokenised once, however often it is masked."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
from transformers import PreTrainedTokenizerBase

from ..injection.encoding import truncated_lengths
from ..processing_bertram import pad_rows
from .replacement import ReplaceableWord


class TokenizedRow(NamedTuple):
    """The tokens of one text or two, and those of each word.

    A word has None if some token holds both a part of it and a character beside it.
    """

    token_ids: tuple[list[int], ...]
    word_tokens: tuple["WordTokens | None", ...]


class WordTokens(NamedTuple):
    """The tokens of a word: in which text, the first, the one after the last, and whether they hold a space before."""

    part: int
    first: int
    last: int
    has_space: bool


class MaskedInput(NamedTuple):
    """One input of a model."""

    input_ids: list[int]
    token_type_ids: list[int]


class InputMasker:
    """Makes inputs in which one mask token stands for all tokens of a word.

    This is what the tokenizer gives for a text with its mask token in the place of the word, cut to `max_length` tokens
    afterwards. Special tokens that stand in a text, such as "[MASK]", are text like any other.

    Args:
        tokenizer: A fast tokenizer with a mask token.
        max_length: Longer inputs are cut, pairs the longer text first.

    Raises:
        ValueError: If the tokenizer has no mask token or is not fast, or `max_length` leaves no room for text.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, max_length: int) -> None:
        if tokenizer.mask_token is None:
            raise ValueError(f"{type(tokenizer).__name__} has no mask token, but words are masked. Set mask_token.")
        if not tokenizer.is_fast:
            raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer; load it with AutoTokenizer.")
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.mask_id: int = tokenizer.mask_token_id
        mask_token = tokenizer.added_tokens_decoder.get(self.mask_id)
        self.mask_takes_space = mask_token is not None and mask_token.lstrip
        self.space_ids = self._read_space()
        self._templates = {num_texts: self._read_template(num_texts) for num_texts in (1, 2)}

    def tokenize(self, rows: Sequence[Sequence[str]], words: Sequence[Sequence[ReplaceableWord]]) -> list[TokenizedRow]:
        """Tokenises rows, each one text or two, and finds the tokens of their words."""
        encoded = self.tokenizer(
            [text for texts in rows for text in texts],
            add_special_tokens=False,
            split_special_tokens=True,  # a literal "[MASK]" in a text is text
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,  # texts are cut later
        )
        encodings = iter(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True))
        result: list[TokenizedRow] = []
        for texts, row_words in zip(rows, words, strict=True):
            parts = [next(encodings) for _ in texts]
            ends = [[end for _, end in offsets] for _, offsets in parts]
            starts = [[start for start, _ in offsets] for _, offsets in parts]
            found = [self._find_tokens(texts[w.part], w, starts[w.part], ends[w.part]) for w in row_words]
            result.append(TokenizedRow(tuple(ids for ids, _ in parts), tuple(found)))
        return result

    def mask(self, row: TokenizedRow, words: Collection[int] = ()) -> MaskedInput | None:
        """Returns the input with words masked, or None if it has no room for one of their masks."""
        texts = [list(ids) for ids in row.token_ids]
        positions: list[list[int]] = [[] for _ in texts]
        for part, first, last, has_space in sorted(_known(row.word_tokens[word]) for word in words):
            shift = len(texts[part]) - len(row.token_ids[part])  # of the masks before
            space = self.space_ids if has_space else []
            texts[part][first + shift : last + shift] = [*space, self.mask_id]
            positions[part].append(first + shift + len(space))
        template = self._templates[len(texts)]
        limit = self.max_length - sum(slot is None for slot, _, _ in template)
        lengths = truncated_lengths([len(ids) for ids in texts], limit, "longest_first")
        from_left = self.tokenizer.truncation_side == "left"
        for part, length in enumerate(lengths):
            start = len(texts[part]) - length if from_left else 0
            if any(not start <= position < start + length for position in positions[part]):
                return None
            texts[part] = texts[part][start : start + length]
        input_ids: list[int] = []
        token_type_ids: list[int] = []
        for slot, token_id, type_id in template:
            ids = [token_id] if slot is None else texts[slot]
            input_ids += ids
            token_type_ids += [type_id] * len(ids)
        return MaskedInput(input_ids, token_type_ids)

    def collate(self, inputs: Sequence[MaskedInput]) -> dict[str, torch.Tensor]:
        """Pads inputs to the longest one and returns the tensors that the model takes."""
        rows = [item.input_ids for item in inputs]
        batch = {
            "input_ids": pad_rows(rows, self.tokenizer.pad_token_id),
            "attention_mask": pad_rows([[1] * len(row) for row in rows], 0),
        }
        if "token_type_ids" in self.tokenizer.model_input_names:
            batch["token_type_ids"] = pad_rows(
                [item.token_type_ids for item in inputs], self.tokenizer.pad_token_type_id
            )
        return batch

    def _find_tokens(self, text: str, word: ReplaceableWord, starts: list[int], ends: list[int]) -> WordTokens | None:
        first, last = bisect_right(ends, word.start), bisect_left(starts, word.end)
        if first >= last or text[starts[first] : word.start].strip() or text[word.end : ends[last - 1]].strip():
            return None
        follows_space = text[max(word.start - 1, 0) : word.start] == " "
        has_space = follows_space and (first == 0 or ends[first - 1] < word.start)
        while self.mask_takes_space and first > 0 and not text[starts[first - 1] : ends[first - 1]].strip():
            first -= 1  # a token of the space before the word goes with it, as it goes before a mask token in a text
        return WordTokens(word.part, first, last, has_space)

    def _read_space(self) -> list[int]:
        """Returns the tokens of a space before a mask in a text: none for most, "Ġ" for some byte-level tokenizers."""
        texts = ["a", f"a {self.tokenizer.mask_token}"]
        before, masked = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return masked[len(before) : -1]

    def _read_template(self, num_texts: int) -> list[tuple[int | None, int, int]]:
        """Returns where special tokens stand: (0 or 1 for a text or None, id, type id), read off an encoding."""
        probe = self.tokenizer(*["a"] * num_texts, return_token_type_ids=True)
        template: list[tuple[int | None, int, int]] = []
        for slot in zip(probe.sequence_ids(0), probe["input_ids"], probe["token_type_ids"], strict=True):
            if slot[0] is None or not template or template[-1][0] != slot[0]:
                template.append(slot)
        num_special = sum(slot is None for slot, _, _ in template)
        if self.max_length <= num_special:
            raise ValueError(
                f"max_length must be more than the {num_special} special tokens of an input; got {self.max_length}."
            )
        return template


def _known(tokens: WordTokens | None) -> WordTokens:
    if tokens is None:
        raise ValueError("Expected a word that has tokens of its own; this one shares a token with its neighbours.")
    return tokens
