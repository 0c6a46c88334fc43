"""Encodings of texts with spliced words: tokens, truncation, padding, and what Transformers reads from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from tokenizers import Encoding, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.processors import PostProcessor

# Where texts and special tokens stand: (0 or 1 for a text, None for a special token; id; token; type id).
Template = list[tuple[int | None, int, str, int]]
# By whether each text's first window stands in it: in some families the type ids of later windows differ.
Templates = dict[tuple[bool, ...], Template]


class Token(NamedTuple):
    """One position of a text: token, the characters it stands for, its word, and whether a cut may come before it."""

    id: int
    text: str
    offsets: tuple[int, int]
    word: int | None
    can_cut: bool


@dataclass
class SplicedEncoding:
    """Has what Transformers reads from a `tokenizers.Encoding`, which Python cannot build."""

    ids: list[int]
    tokens: list[str]
    type_ids: list[int]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]
    sequence_ids: list[int | None]
    special_tokens_mask: list[int]
    attention_mask: list[int]
    overflowing: list["SplicedEncoding"] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_sequences(self) -> int:
        """The number of texts: 1 or, for a pair, 2."""
        return 1 + (1 in self.sequence_ids)

    def pad(self, length: int, direction: str, pad_id: int, pad_type_id: int, pad_token: str) -> None:
        """Pads to `length`, in place, as `tokenizers.Encoding.pad` does."""
        for encoding in self.overflowing:
            encoding.pad(length, direction, pad_id, pad_type_id, pad_token)
        for name, value in (
            ("ids", pad_id),
            ("tokens", pad_token),
            ("type_ids", pad_type_id),
            ("offsets", (0, 0)),
            ("word_ids", None),
            ("sequence_ids", None),
            ("special_tokens_mask", 1),
            ("attention_mask", 0),
        ):
            values = getattr(self, name)
            padding = [value] * (length - len(values))
            setattr(self, name, padding + values if direction == "left" else values + padding)

    def token_to_sequence(self, token_index: int) -> int | None:
        """Returns the text (0 or 1) that a token belongs to."""
        return self.sequence_ids[token_index]

    def token_to_word(self, token_index: int) -> int | None:
        """Returns the word that a token belongs to."""
        return self.word_ids[token_index]

    def token_to_chars(self, token_index: int) -> tuple[int, int] | None:
        """Returns the characters that a token stands for."""
        return None if self.sequence_ids[token_index] is None else self.offsets[token_index]

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> tuple[int, int] | None:
        """Returns the first token of a word and the one after its last."""
        tokens = self._tokens_of_word(word_index, sequence_index)
        return (tokens[0], tokens[-1] + 1) if tokens else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> tuple[int, int] | None:
        """Returns the characters of a word."""
        spans = [self.offsets[i] for i in self._tokens_of_word(word_index, sequence_index)]
        return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None

    def char_to_token(self, char_index: int, sequence_index: int = 0) -> int | None:
        """Returns the first token that stands for a character."""
        for i, (start, end) in enumerate(self.offsets):
            if self.sequence_ids[i] == sequence_index and start <= char_index < end:
                return i
        return None

    def char_to_word(self, char_index: int, sequence_index: int = 0) -> int | None:
        """Returns the word that a character belongs to."""
        token = self.char_to_token(char_index, sequence_index)
        return None if token is None else self.word_ids[token]

    def _tokens_of_word(self, word: int, sequence: int) -> list[int]:
        return [i for i, w in enumerate(self.word_ids) if w == word and self.sequence_ids[i] == sequence]


def read_templates(post_processor: PostProcessor | None, is_pair: bool, add_special_tokens: bool) -> Templates:
    """Returns what a post-processor puts around texts, read off two windows of each that the Rust library makes."""
    probe = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    num_tokens = 2 if is_pair else 1  # one for each text in each window
    if post_processor is not None:
        probe.post_processor = post_processor
        num_tokens += post_processor.num_special_tokens_to_add(is_pair) if add_special_tokens else 0
    probe.enable_truncation(num_tokens)
    text = ["a", "a"]
    encoding = probe.encode(
        text, text if is_pair else None, is_pretokenized=True, add_special_tokens=add_special_tokens
    )
    return {
        tuple(word == 0 for word in window.word_ids if word is not None): list(
            zip(window.sequence_ids, window.ids, window.tokens, window.type_ids, strict=True)
        )
        for window in (encoding, *encoding.overflowing)
    }


def assemble(template: Template, texts: list[list[Token]]) -> SplicedEncoding:
    """Puts texts and special tokens together."""
    encoding = SplicedEncoding([], [], [], [], [], [], [], [])
    for slot, token_id, token_text, type_id in template:
        is_special = slot is None
        tokens = [Token(token_id, token_text, (0, 0), None, True)] if slot is None else texts[slot]
        encoding.ids += [token.id for token in tokens]
        encoding.tokens += [token.text for token in tokens]
        encoding.type_ids += [type_id] * len(tokens)
        encoding.offsets += [token.offsets for token in tokens]
        encoding.word_ids += [token.word for token in tokens]
        encoding.sequence_ids += [slot] * len(tokens)
        encoding.special_tokens_mask += [int(is_special)] * len(tokens)
        encoding.attention_mask += [1] * len(tokens)
    return encoding


def truncated_lengths(lengths: list[int], limit: int, strategy: str) -> list[int]:
    """Returns how long each text may be, by the rules of the `tokenizers` library.

    Raises:
        ValueError: If the strategy cuts only one text and cannot reach `limit`.
    """
    if sum(lengths) <= limit:
        return lengths
    if limit == 0:
        return [0] * len(lengths)
    if len(lengths) == 1:
        if strategy == "only_second":
            raise ValueError("Truncation 'only_second' needs a pair of texts; got one text. Use truncation=True.")
        return [limit]
    first, second = lengths
    if strategy in ("only_first", "only_second"):
        kept = second if strategy == "only_first" else first
        if limit <= kept:
            raise ValueError(
                f"Truncation {strategy!r} must bring the pair to {limit} tokens, but the other text has {kept}. "
                "Use 'longest_first' or a larger max_length."
            )
        return [limit - second, second] if strategy == "only_first" else [first, limit - first]
    small, large = sorted(lengths)
    large = small if small > limit else max(small, limit - small)
    if small + large > limit:
        small = limit // 2
        large = small + limit % 2
    return [small, large] if first <= second else [large, small]


def combine_windows(num_windows: list[int]) -> list[tuple[int, ...]]:
    """Returns which windows of the texts stand together, in the order of the `tokenizers` library.

    Example:
        >>> combine_windows([2, 3])
        [(0, 0), (1, 0), (1, 1), (1, 2), (0, 1), (0, 2)]
    """
    first, *others = product(*map(range, num_windows))
    return [first, *sorted(others, key=lambda windows: windows[0] == 0)]


def longest_word(tokens: list[Token]) -> int:
    """Returns the largest number of tokens between two places where a text may be cut."""
    longest = current = 0
    for token in tokens:
        current = 1 if token.can_cut else current + 1
        longest = max(longest, current)
    return longest


def cut_windows(tokens: list[Token], length: int, stride: int, direction: str) -> list[tuple[int, int]]:
    """Cuts tokens into windows of at most `length` that overlap by `stride`, never inside a spliced word.

    No spliced word may be longer than `length`. As in the `tokenizers` library, a length of 0 leaves an empty window
    and one of all tokens.
    """
    num_tokens = len(tokens)
    if num_tokens <= length:
        return [(0, num_tokens)]
    if length == 0:
        return [(0, 0), (0, num_tokens)]

    def can_cut(position: int) -> bool:
        position = num_tokens - position if direction == "left" else position
        return position in (0, num_tokens) or tokens[position].can_cut

    windows: list[tuple[int, int]] = []
    start = end = 0
    while end < num_tokens:
        end = min(start + length, num_tokens)
        while not can_cut(end):
            end -= 1
        windows.append((start, end))
        following = max(end - stride, start + 1)
        while not can_cut(following):
            following -= 1
        start = following if following > start else end
    return [(num_tokens - end, num_tokens - start) for start, end in windows] if direction == "left" else windows


def pad_encodings(
    encodings: Sequence[Encoding | SplicedEncoding],
    *,
    max_length: int | None,
    length: int | None,
    pad_to_multiple_of: int | None,
    pad_id: int,
    pad_token: str,
    pad_type_id: int,
    direction: str,
) -> None:
    """Pads encodings, in place, to `length` or to the longest one; windows beyond `max_length` do not count."""
    target = length
    if target is None:
        longest = max(len(window) for encoding in encodings for window in (encoding, *encoding.overflowing))
        target = max(max(map(len, encodings)), longest if max_length is None else min(longest, max_length))
    if pad_to_multiple_of:
        target = -(-target // pad_to_multiple_of) * pad_to_multiple_of
    for encoding in encodings:
        encoding.pad(target, direction=direction, pad_id=pad_id, pad_type_id=pad_type_id, pad_token=pad_token)
