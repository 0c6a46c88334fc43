"""Splicing vectors into text: a Transformers tokenizer in whose output rare words have ids of their own.

The tokenizer that `splice_tokenizer` returns is a copy of the given one, of the same class. Only its backend differs: a
`SplicingBackend` hands texts without a rare word through to the Rust tokenizer and assembles the others itself. Ids
from `first_id` on are rows of the injector's table.
"""

import copy
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Encoding, Tokenizer
from transformers import PreTrainedTokenizerBase

from ..utils.names import MODES, Mode
from .configuration import mark_tokenizer
from .encoding import (
    SplicedEncoding,
    Templates,
    Token,
    assemble,
    combine_windows,
    cut_windows,
    longest_word,
    pad_encodings,
    read_templates,
    truncated_lengths,
)
from .word_index import WordIndex, WordMatch

Text = str | Sequence[str]


def check_mode(mode: str) -> None:
    """Raises a ValueError if there is no such mode."""
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}; got {mode!r}.")


class SplicingBackend:
    """Stands in for the Rust tokenizer inside a Transformers tokenizer; everything not defined here is the Rust one's.

    Args:
        rust: The tokenizer.
        index: The words to be found; it may change later.
        words: The word of each row, for decoding; it may grow later.
        first_id: The id of row 0.
        protected_ids: Special tokens, inside of which no word is looked for.
        mode: `"replace"` puts the vector in the place of the word's pieces, `"slash"` after them and a slash; `"auto"`
            does the one for rows in the set `in_place`, which may grow later, and the other for all else.

    Raises:
        ValueError: If there is no such mode.
    """

    def __init__(
        self,
        rust: Tokenizer,
        index: WordIndex,
        words: list[str],
        first_id: int,
        protected_ids: set[int],
        mode: Mode,
    ) -> None:
        check_mode(mode)
        self.rust = rust
        # A copy whose padding and truncation are never set: to switch those of the other off would harm other threads.
        self.bare = copy.deepcopy(rust)
        for part in ("normalizer", "pre_tokenizer", "post_processor"):
            if getattr(rust, part) is not None:
                setattr(self.bare, part, getattr(rust, part))  # the same object, so that both change
        self.index = index
        self.words = words
        self.first_id = first_id
        self.protected_ids = protected_ids
        self.mode = mode
        self.in_place: set[int] = set()
        self.respelled: dict[int, str] = {}  # rows of misspellings, and what is read in their place
        self.meet: Callable[[Sequence[str]], None] | None = None  # may add words of texts before they are encoded
        self.enabled = True
        slash = rust.encode(" /", add_special_tokens=False)  # with the space that byte-level tokenizers see in "w / w"
        self.slash = (slash.ids[-1], slash.tokens[-1])
        self._templates: dict[tuple[bool, bool, bytes | None], Templates] = {}

    def __getattr__(self, name: str) -> Any:
        if name == "rust" or name.startswith("__"):  # not yet there, or not ours to give, while unpickling
            raise AttributeError(name)
        return getattr(self.rust, name)

    def __getstate__(self) -> dict[str, Any]:
        """Copies know the words that were met; only the injector's own tokenizer meets new ones."""
        return {**self.__dict__, "meet": None}

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("encode_special_tokens", "post_processor", "normalizer", "pre_tokenizer", "decoder", "model"):
            for tokenizer in (self.rust, self.bare):
                setattr(tokenizer, name, value)
        else:
            super().__setattr__(name, value)

    def add_words(self, rows: Mapping[str, int], in_place: Container[str]) -> None:
        """Adds words with their rows; some are such as mode auto replaces (`in_place`)."""
        self.words += [""] * (max(rows.values(), default=-1) + 1 - len(self.words))
        for word, row in rows.items():
            self.words[row] = word
            (self.in_place.add if word in in_place else self.in_place.discard)(row)
            self.index.add(word, row)

    def save(self, path: str, pretty: bool = True) -> None:
        """Writes tokenizer.json, and into tokenizer_config.json beside it that words are spliced."""
        self.rust.save(path, pretty)
        config = Path(path).with_name(Path(path).name.replace("tokenizer.json", "tokenizer_config.json"))
        if config.is_file():  # as `save_pretrained` writes it first
            mark_tokenizer(config)

    def id_to_token(self, token_id: int) -> str | None:
        """Returns a token, or the word of a spliced vector."""
        row = token_id - self.first_id
        return self.words[row] if 0 <= row < len(self.words) else self.rust.id_to_token(token_id)

    def token_to_id(self, token: str) -> int | None:
        """Returns the id of a token or, if there is none, of a word."""
        token_id = self.rust.token_to_id(token)
        row = self.index.rows.get(self.index.key(token)) if token_id is None else None
        return token_id if row is None else self.first_id + row

    def add_tokens(self, tokens: list[str | AddedToken]) -> int:
        """Changes tokens that are there; refuses new ones."""
        self._refuse_new(tokens)
        return [tokenizer.add_tokens(tokens) for tokenizer in (self.bare, self.rust)][-1]

    def add_special_tokens(self, tokens: list[str | AddedToken]) -> int:
        """Changes special tokens that are there; refuses new ones."""
        self._refuse_new(tokens)
        return [tokenizer.add_special_tokens(tokens) for tokenizer in (self.bare, self.rust)][-1]

    def _refuse_new(self, tokens: Sequence[str | AddedToken]) -> None:
        new = [str(token) for token in tokens if self.rust.token_to_id(str(token)) is None]
        if new:
            raise ValueError(
                f"New tokens would get the ids of injected words: {', '.join(map(repr, new[:5]))}. Add them to "
                "tokenizer and model first, then inject."
            )

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Decodes tokens; a spliced vector is its word."""
        parts: list[str] = []
        run: list[int] = []
        for token_id in [*ids, None]:
            if token_id is not None and token_id < self.first_id:
                run.append(token_id)
                continue
            if run:
                parts.append(self.rust.decode(run, skip_special_tokens=skip_special_tokens).strip())
                run = []
            if token_id is not None:
                parts.append(self.words[token_id - self.first_id])
        return " ".join(part for part in parts if part)

    def encode_batch(
        self, inputs: Sequence[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Sequence[Encoding | SplicedEncoding]:
        """Encodes texts or pairs of texts with the truncation and padding that are set on the Rust tokenizer."""
        sequences = [_split_pair(item, is_pretokenized) for item in inputs]
        if self.meet is not None and self.enabled:
            self.meet([text if isinstance(text, str) else " ".join(text) for texts in sequences for text in texts])
        matches = [[self._find(text) for text in texts] for texts in sequences]
        if not any(any(found) for found in matches):
            return self.rust.encode_batch(
                inputs, is_pretokenized=is_pretokenized, add_special_tokens=add_special_tokens
            )
        truncation, padding = self.rust.truncation, self.rust.padding
        # Those without a word may come padded, to no more than all will be.
        without = [item for item, found in zip(inputs, matches, strict=True) if not any(found)]
        plain = iter(self.rust.encode_batch(without, is_pretokenized, add_special_tokens))
        texts = [text for item, found in zip(sequences, matches, strict=True) if any(found) for text in item]
        tokenised = iter(self.bare.encode_batch(texts, is_pretokenized, add_special_tokens=False))
        encodings = [
            self._splice(item, [next(tokenised) for _ in item], found, truncation, add_special_tokens)
            if any(found)
            else next(plain)
            for item, found in zip(sequences, matches, strict=True)
        ]
        if padding is not None:
            pad_encodings(encodings, max_length=truncation["max_length"] if truncation else None, **padding)
        return encodings

    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Encoding | SplicedEncoding:
        """Encodes one text or pair."""
        item = sequence if pair is None else (sequence, pair)
        return self.encode_batch([item], is_pretokenized=is_pretokenized, add_special_tokens=add_special_tokens)[0]

    def _find(self, text: Text) -> list[WordMatch]:
        if not self.enabled:
            return []
        return self.index.find(text if isinstance(text, str) else " ".join(text))

    def _splice(
        self,
        texts: list[Text],
        encodings: list[Encoding],
        matches: list[list[WordMatch]],
        truncation: dict[str, Any] | None,
        add_special_tokens: bool,
    ) -> SplicedEncoding:
        """Puts together one text or pair in which words were found, from the encodings of its texts alone."""
        templates = self._read_templates(len(texts) == 2, add_special_tokens)
        whole = templates[(True,) * len(texts)]
        limit = None
        if truncation is not None:
            room = truncation["max_length"] - sum(slot is None for slot, *_ in whole)
            limit = room if room >= 0 else None  # without room for special tokens the Rust tokenizer cuts nothing
        tokens = [self._splice_text(*parts, limit) for parts in zip(texts, encodings, matches, strict=True)]
        if truncation is None or limit is None or sum(map(len, tokens)) <= limit:
            return assemble(whole, tokens)
        lengths = truncated_lengths([len(part) for part in tokens], limit, truncation["strategy"])
        if any(longest_word(part) > length for part, length in zip(tokens, lengths, strict=True)):
            # A spliced word does not fit its text's share of a pair: it becomes its vector only.
            pieces = zip(texts, encodings, matches, [max(length, 1) for length in lengths], strict=True)
            tokens = [self._splice_text(*parts) for parts in pieces]
            lengths = truncated_lengths([len(part) for part in tokens], limit, truncation["strategy"])
        windows = [
            [part[start:end] for start, end in cut_windows(part, length, truncation["stride"], truncation["direction"])]
            for part, length in zip(tokens, lengths, strict=True)
        ]
        encoding, *overflowing = (
            assemble(templates[tuple(i == 0 for i in chosen)], [windows[part][i] for part, i in enumerate(chosen)])
            for chosen in combine_windows([len(parts) for parts in windows])
        )
        encoding.overflowing = overflowing
        return encoding

    def _splice_text(self, text: Text, encoding: Encoding, matches: list[WordMatch], limit: int | None) -> list[Token]:
        """Returns the tokens of one text, words spliced. A word that alone exceeds `limit` is its vector only."""
        tokens = [
            Token(*fields, True)
            for fields in zip(encoding.ids, encoding.tokens, encoding.offsets, encoding.word_ids, strict=True)
        ]
        if isinstance(text, str):
            joined, origins = text, [0] * len(tokens)
        else:  # offsets of pre-split words begin anew in each word
            joined, starts = " ".join(text), _word_starts(text)
            origins = [starts[token.word or 0] for token in tokens]
        result: list[Token] = []
        done = 0
        for words, first, last in self._find_pieces(joined, tokens, origins, matches):
            pieces = tokens[first:last]
            if any(piece.id in self.protected_ids for piece in pieces):
                continue  # inside a special token such as [MASK]
            result += tokens[done:first]
            result += self._splice_words(joined, words, pieces, origins[first:last], limit)
            done = last
        return result + tokens[done:]

    def _find_pieces(
        self, text: str, tokens: list[Token], origins: list[int], matches: list[WordMatch]
    ) -> list[tuple[list[WordMatch], int, int]]:
        """Returns the words with their tokens: the first, and the one after the last. Words that share a token, as they
        may where no spaces stand between words, come together; words that are normalised away have none."""
        found: list[tuple[list[WordMatch], int, int]] = []
        for match in matches:
            words, start, done = found[-1] if found else ([], 0, 0)
            first = max(done - 1, 0)
            while first < len(tokens) and origins[first] + tokens[first].offsets[1] <= match.start:
                first += 1
            last = first
            while last < len(tokens) and origins[last] + tokens[last].offsets[0] < match.end:
                last += 1
            if first == last:
                continue
            if first < done:
                found[-1] = ([*words, match], start, max(done, last))
                continue
            # A token of the space before it belongs to the word too: byte-level "Ġ", SentencePiece "▁".
            while done < first and tokens[first - 1].word == tokens[first].word:
                before, after = (origins[first - 1] + offset for offset in tokens[first - 1].offsets)
                if text[before:after].strip():
                    break
                first -= 1
            found.append(([match], first, last))
        return found

    def _splice_words(
        self, text: str, matches: list[WordMatch], pieces: list[Token], origins: list[int], limit: int | None
    ) -> list[Token]:
        """Returns the tokens of a word with its vector, or of several words that share tokens."""
        # Two words for a term of several; the offsets of pre-split words begin anew in each.
        (word, origin), (last_word, last_origin) = (pieces[0].word, origins[0]), (pieces[-1].word, origins[-1])
        if len(matches) == 1 and (right := self.respelled.get(matches[0].row)) is not None:
            return self._respell(right, text, matches[0], origin, word, limit)
        keeps_pieces = self.mode == "slash" or (
            self.mode == "auto" and any(match.row not in self.in_place for match in matches)
        )
        if keeps_pieces and (limit is None or len(pieces) + 2 * len(matches) <= limit):
            kept = [pieces[0], *(piece._replace(can_cut=False) for piece in pieces[1:])]
            for match in matches:
                start, end = (max(place - last_origin, 0) for place in (match.start, match.end))
                kept.append(Token(*self.slash, (end, end), last_word, False))
                kept.append(Token(self.first_id + match.row, self.words[match.row], (start, end), last_word, False))
            return kept
        # A piece may reach beyond the word (SentencePiece joins "quat,"): what is not the word is tokenised again.
        result: list[Token] = []
        done = origin + pieces[0].offsets[0]
        for match in matches:
            result += self._tokenize_rest(text, done, match.start, origin, word)
            offsets = (match.start - origin, match.end - origin)
            result.append(Token(self.first_id + match.row, self.words[match.row], offsets, word, True))
            done = match.end
        end = last_origin + pieces[-1].offsets[1]
        return result + self._tokenize_rest(text, done, end, last_origin, last_word)

    def _respell(
        self, right: str, text: str, match: WordMatch, origin: int, word: int | None, limit: int | None
    ) -> list[Token]:
        """Returns the tokens of what is read in place of a word, with the word's own offsets."""
        if text[match.start - 1 : match.start].isspace():
            right = f" {right}"  # which byte-level tokenizers see
        encoding = self.bare.encode(right, add_special_tokens=False)
        matches = [found for found in self.index.find(right) if found.row not in self.respelled]
        offsets = (match.start - origin, match.end - origin)
        tokens = self._splice_text(right, encoding, matches, limit)
        return [token._replace(offsets=offsets, word=word, can_cut=i == 0) for i, token in enumerate(tokens)]

    def _tokenize_rest(self, text: str, start: int, end: int, origin: int, word: int | None) -> list[Token]:
        rest = text[start:end]
        if start >= end or not rest.strip():
            return []
        encoding = self.bare.encode(rest, add_special_tokens=False)
        return [
            Token(token_id, token, (start - origin + offset[0], start - origin + offset[1]), word, True)
            for token_id, token, offset in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True)
        ]

    def _read_templates(self, is_pair: bool, add_special_tokens: bool) -> Templates:
        # Only the post-processor places special tokens. Its state is in the key, as it can be set or changed in place.
        post_processor = self.rust.post_processor
        state = None if post_processor is None else post_processor.__getstate__()
        key = (is_pair, add_special_tokens, state)
        if key not in self._templates:
            self._templates[key] = read_templates(post_processor, is_pair, add_special_tokens)
        return self._templates[key]


def splice_tokenizer(
    tokenizer: PreTrainedTokenizerBase, index: WordIndex, words: list[str], first_id: int, mode: Mode
) -> PreTrainedTokenizerBase:
    """Returns a copy of a tokenizer that splices the words of `index`; see [`SplicingBackend`].

    Raises:
        ValueError: If the tokenizer is not backed by the `tokenizers` library.
    """
    rust = getattr(tokenizer, "_tokenizer", None)
    if not isinstance(rust, Tokenizer):
        raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer; load it with AutoTokenizer.")
    # The unknown token is special too, but stands for words that need a vector most.
    protected_ids = set(rust.get_added_tokens_decoder()) - {tokenizer.unk_token_id}
    rust = copy.deepcopy(rust)
    rust.no_padding()  # a tokenizer file may come with both set; Transformers sets them anew in each call
    rust.no_truncation()
    spliced = copy.copy(tokenizer)
    spliced._tokenizer = SplicingBackend(rust, index, words, first_id, protected_ids, mode)
    return spliced


def _split_pair(item: Any, is_pretokenized: bool) -> list[Text]:
    """Returns the one or two texts of an input of `encode_batch`."""
    is_single = isinstance(item, str) or (is_pretokenized and (not item or isinstance(item[0], str)))
    return [item] if is_single else list(item)


def _word_starts(words: Sequence[str]) -> list[int]:
    """Returns where each word begins once they are joined with spaces."""
    starts, position = [], 0
    for word in words:
        starts.append(position)
        position += len(word) + 1
    return starts
