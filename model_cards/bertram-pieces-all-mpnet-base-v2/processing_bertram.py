"""Words and contexts to tensors."""

import copy
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, get_args

import torch
from transformers import AutoTokenizer, BatchFeature, PreTrainedTokenizerBase, ProcessorMixin
from transformers.utils import PROCESSOR_NAME, cached_file

from .configuration_bertram import read_json_file
from .processing_context import (
    Parts,
    cut_as_released,
    cut_at_word,
    end_ids,
    is_uncased,
    tokenize_parts,
    tokenize_words,
    truncation_span,
)
from .processing_look_alikes import LOOK_ALIKES_NAME, LookAlikes
from .processing_words import check_contexts, check_word, normalize_text
from .tokenization_form import FORM_VOCAB_NAME, NO_UNIT, FormTokenizer

logger = logging.getLogger(__name__)
Match = Literal["word", "whitespace"]
Prefix = Literal["none", "colon", "quotes"]
PREFIX_OF_MODE: dict[str, Prefix] = {"add": "colon", "add-quotes": "quotes"}
# Positions that the released code keeps free: special tokens, prefix and one to spare.
RESERVED_TOKENS: dict[str, int] = {"none": 3, "colon": 5, "quotes": 7}
SETTINGS = ("max_length", "prefix", "match", "separator")  # in processor_config.json
WORD_NOT_FOUND = "word not found"
AFTER_PIECES = "/"
MIN_LENGTH_WITH_PIECES = 16


@dataclass
class EncodedWord:
    """One word, ready to be padded into a batch.

    Attributes:
        word: The word as given.
        form_ids: Ids of its n-grams or characters or, with `pieces`, the tokens of the word alone; else empty.
        pieces: Its own tokens, if the processor writes them.
        input_ids: Token ids of each used context, special tokens and prefix included.
        mask_positions: Where the word's (first) mask stands in each used context.
        used: Index of each used context among those given.
        dropped: Why each other context was not used, by its index.

    Example:
        >>> (encoded,) = processor.encode(["kumquat"], [["She peeled a kumquat.", "No such word."]])
        >>> encoded.used, encoded.dropped
        ([0], {1: 'word not found'})
    """

    word: str
    form_ids: list[int]
    pieces: list[int] = field(default_factory=list)
    input_ids: list[list[int]] = field(default_factory=list)
    mask_positions: list[int] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    dropped: dict[int, str] = field(default_factory=dict)


class BertramProcessor(ProcessorMixin):
    """Turns words and their contexts into the inputs of a [`BertramModel`].

    Every occurrence of the word in a context becomes the mask token; the first one is read. A context that is too long
    is cut so that the first mask comes to stand in the middle. A context without its word is dropped and reported.

    Args:
        tokenizer: The encoder's tokenizer. It must have a mask token.
        form: The n-gram or character vocabulary; None for context-only models.
        max_length: Longest input, special tokens and prefix included.
        prefix: What stands before the context: nothing, `form :` (mode add) or `" form " :` (mode add-quotes).
        match: `"word"` finds whole words, ignoring case if the tokenizer does, and takes special tokens in user text
            as plain text. `"whitespace"` is the released behaviour: only white-space tokens that equal the word, and
            special tokens in the text act as such.
        separator: The symbol that ends the prefix.
        look_alikes: Known words that others may be misspellings of, for models whose configuration has `look_alikes`.
        pieces: Whether the word's own tokens stand in its place and, at the first one, "/ [MASK]" behind them (mode
            pieces).

    Example:
        >>> processor = BertramProcessor.from_encoder("bert-base-uncased", mode="context")
        >>> batch = processor(["kumquat"], [["She peeled a kumquat."]])
        >>> batch["mask_positions"]
        tensor([4])
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        form: FormTokenizer | None = None,
        max_length: int = 96,
        prefix: str = "none",
        match: str = "word",
        separator: str = ":",
        look_alikes: LookAlikes | None = None,
        pieces: bool = False,
    ) -> None:
        check_settings(max_length=max_length, prefix=prefix, match=match, separator=separator, pieces=pieces)
        super().__init__(tokenizer)
        self.form = form
        self.max_length = max_length
        self.prefix = prefix
        self.match = match
        self.separator = separator
        self.look_alikes = look_alikes
        self.pieces = pieces
        self._pieces_of: Mapping[str, list[int]] = {}
        self._read_tokenizer()

    def _read_tokenizer(self) -> None:
        """Looks up once what the encoding of every context needs from the tokenizer."""
        tokenizer = self.tokenizer
        if tokenizer.mask_token is None:
            raise ValueError(
                f"{type(tokenizer).__name__} has no mask token, so contexts cannot be masked. "
                "BERTRAM needs a masked language model's tokenizer, such as BERT's or RoBERTa's."
            )
        first, last = end_ids(tokenizer)
        self._mask_id = tokenizer.mask_token_id
        # RoBERTa's quote is the one with a leading space, its colon the one without, as in the released code.
        if self.prefix == "colon":
            self._head = [first, last, self._separator_id()]
        elif self.prefix == "quotes":
            quote = self._last_id(' "')
            self._head = [first, quote, last, quote, self._separator_id()]
        else:
            self._head = [first]
        self._tail = [last]
        self._after_pieces = [self._last_id(f" {AFTER_PIECES}"), self._mask_id] if self.pieces else []
        self.lower_case = self.match == "word" and is_uncased(tokenizer)

    @property
    def _max_tokens(self) -> int:
        """How many tokens of a context fit."""
        return self.max_length - RESERVED_TOKENS[self.prefix]

    def _separator_id(self) -> int:
        if self.match == "whitespace":  # as released: looked up, not tokenised
            return self.tokenizer.convert_tokens_to_ids(self.separator)
        return self._last_id(self.separator)

    def _last_id(self, text: str) -> int:
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        if not ids or (ids[-1] == self.tokenizer.unk_token_id and self.match == "word"):
            needed_by = "pieces=True" if self.pieces else f"prefix {self.prefix!r}"
            raise ValueError(f"The tokenizer has no token for {text.strip()!r}, which {needed_by} needs.")
        return ids[-1]

    @classmethod
    def from_encoder(
        cls,
        encoder: str | os.PathLike | PreTrainedTokenizerBase,
        *,
        mode: str = "add",
        form_words: Iterable[str] | None = None,
        form_encoder: str = "ngram",
        match: Match = "word",
        max_length: int = 96,
    ) -> "BertramProcessor":
        """Builds the processor of a new model.

        Args:
            encoder: Name or path of the encoder, or its tokenizer.
            mode: The model's mode; it decides the prefix, and whether the word's pieces are written.
            form_words: Word types from which the form vocabulary is built: every n-gram that occurs in at least four of
                them. Needed by all modes but `"context"` and `"pieces"`.
            form_encoder: The model's form encoder; it decides between n-grams and characters.
            match: How words are found.
            max_length: Longest input.
        """
        tokenizer = encoder if isinstance(encoder, PreTrainedTokenizerBase) else AutoTokenizer.from_pretrained(encoder)
        prefix = PREFIX_OF_MODE.get(mode, "none")
        processor = cls(tokenizer, max_length=max_length, prefix=prefix, match=match, pieces=mode == "pieces")
        if mode not in ("context", "pieces"):
            if form_words is None:
                raise ValueError(f"Mode {mode!r} has a form part: give form_words, the words to take n-grams from.")
            processor.form = FormTokenizer.from_words(
                map(processor.normalize_word, form_words), unit="ngram" if form_encoder == "ngram" else "character"
            )
        return processor

    def normalize_word(self, word: str) -> str:
        """Returns the spelling that the form part sees: as given for white-space matching, else composed and, if the
        tokenizer ignores case, lower-cased."""
        if self.match == "whitespace":
            return word
        word = " ".join(normalize_text(word).split())
        return word.lower() if self.lower_case else word

    def encode(self, words: Sequence[str], contexts: Sequence[Sequence[str]] | None = None) -> list[EncodedWord]:
        """Encodes words with their contexts; all contexts go through the tokenizer in one call.

        Args:
            words: W words.
            contexts: For each word its contexts; None for no contexts at all.

        Raises:
            TypeError: If a word is not a string or its contexts are not a list of strings.
            WordError: If a word is empty or, for white-space matching, where the released code fails.
        """
        if contexts is None:
            contexts = [[]] * len(words)
        if isinstance(words, str) or len(words) != len(contexts):
            raise ValueError(
                "Give a list of words and, for each word, a list of contexts; got "
                f"{'one string' if isinstance(words, str) else f'{len(words)} words'} and {len(contexts)} lists."
            )
        encoded: list[EncodedWord] = []
        parts: list[Parts] = []
        pieces: list[list[int]] = []
        for word, word_contexts in zip(words, contexts, strict=True):
            entry = EncodedWord(word, self.encode_form(word), self.encode_pieces(word))
            for index, context_parts in enumerate(self.locate(word, word_contexts)):
                if context_parts is None:
                    entry.dropped[index] = WORD_NOT_FOUND
                else:
                    entry.used.append(index)
                    parts.append(context_parts)
                    pieces.append(entry.pieces)
            encoded.append(entry)
        rows = zip(*self.encode_located(parts, pieces), strict=True)
        for entry in encoded:
            for input_ids, mask_position in islice(rows, len(entry.used)):
                entry.input_ids.append(input_ids)
                entry.mask_positions.append(mask_position)
        return encoded

    def encode_form(self, word: str) -> list[int]:
        """Returns the ids of a word's n-grams or characters or, if the processor writes pieces, the tokens of the word
        alone; none if it does neither."""
        if self.pieces:
            return self.write_pieces(self.encode_pieces(word))[0]
        return [] if self.form is None else self.form([self.normalize_word(word)])[0]

    def encode_pieces(self, word: str) -> list[int]:
        """Returns a word's own tokens as they stand inside a text; none if the processor does not write them."""
        if not self.pieces:
            return []
        if word in self._pieces_of:
            return self._pieces_of[word]
        (ids,) = tokenize_words(self.tokenizer, [self.normalize_word(word)])
        return ids[: self._max_tokens // 2 - 1] or [self.tokenizer.unk_token_id]

    def with_pieces(self, pieces: Mapping[str, list[int]]) -> "BertramProcessor":
        """Returns a processor that cuts some words otherwise than the tokenizer does: known ones as if they were
        unknown, to see how well their embeddings are recovered. It shares all else with this one."""
        changed = copy.copy(self)
        changed._pieces_of = pieces
        return changed

    def encode_located(
        self, located: Sequence[Parts], pieces: Sequence[list[int]] | None = None
    ) -> tuple[list[list[int]], list[int]]:
        """Tokenises contexts that `locate` has cut, in one call, and truncates them.

        Args:
            located: The contexts.
            pieces: For each context the pieces of its word, if the processor writes them.

        Returns:
            The token ids of each context, special tokens and prefix included, and the position of its first mask.
        """
        tokens = tokenize_parts(located, self.tokenizer)
        if self.pieces and pieces is not None:
            tokens = list(map(self._insert_pieces, tokens, pieces))
        rows = [self._frame_around_mask(ids) for ids in tokens]
        return [ids for ids, _ in rows], [position for _, position in rows]

    def write_pieces(self, pieces: list[int], input_ids: list[int] | None = None) -> tuple[list[int], int]:
        """Writes a word's pieces into a context that has masks in their place.

        Args:
            pieces: The word's tokens.
            input_ids: Token ids of the context, special tokens included, as a processor without `pieces` makes them;
                None for the word alone.

        Returns:
            The context's token ids, truncated anew, and the position of the mask.
        """
        inner = [self._mask_id] if input_ids is None else input_ids[len(self._head) : -len(self._tail)]
        return self._frame_around_mask(self._insert_pieces(inner, pieces))

    def frame(self, ids: list[int]) -> list[int]:
        """Puts the special tokens around a text's tokens, of which the first ones are kept if they are too many."""
        return self._head + ids[: self._max_tokens] + self._tail

    def _insert_pieces(self, ids: list[int], pieces: list[int]) -> list[int]:
        first = ids.index(self._mask_id)
        rest = [token for i in ids[first + 1 :] for token in (pieces if i == self._mask_id else (i,))]
        return [*ids[:first], *pieces, *self._after_pieces, *rest]

    def _frame_around_mask(self, ids: list[int]) -> tuple[list[int], int]:
        """Truncates a context's tokens around the mask and puts what belongs before and after them."""
        mask_index = ids.index(self._mask_id)
        start, end = truncation_span(len(ids), mask_index, self._max_tokens)
        return self._head + ids[start:end] + self._tail, len(self._head) + mask_index - start

    def locate(self, word: str, contexts: Sequence[str]) -> list[Parts | None]:
        """Cuts each context at the word: text to tokenise and mask ids in turn, or None if the word is not there.

        Raises:
            TypeError, WordError: As `encode`.
        """
        self.check(word, contexts)
        if self.match == "whitespace":
            return cut_as_released(word, contexts, self.tokenizer, max_tokens=self._max_tokens)
        return cut_at_word(word, contexts, mask_id=self._mask_id, ignore_case=self.lower_case)

    def check(self, word: str, contexts: Sequence[str]) -> None:
        """Raises unless a word can be looked for in contexts.

        Raises:
            TypeError, WordError: As `encode`.
        """
        check_contexts(word, contexts)
        is_released = self.match == "whitespace"
        # The released code takes a mask in a context for the word, which then need not be one that can be found.
        if not (is_released and isinstance(word, str) and any(self.tokenizer.mask_token in text for text in contexts)):
            check_word(word, whitespace=is_released)

    def __call__(self, words: str | Sequence[str], contexts: Sequence[Any] | None = None) -> BatchFeature:
        """Encodes and pads words with their contexts.

        Args:
            words: A word, or W words.
            contexts: The contexts of the word (a list of strings), or a list of such lists. Contexts without their word
                are dropped and counted in a warning; `encode` tells which.

        Returns:
            Tensors for [`BertramModel`]: `form_ids` (W, N), `input_ids` and `attention_mask` (C, T),
            `mask_positions` (C,) and `num_contexts` (W,); with pieces also `num_pieces` (C,), with look-alikes
            `look_alike_ids` and `look_alike_kinds` (W, K).
        """
        if isinstance(words, str):
            words, contexts = [words], None if contexts is None else [contexts]
        encoded = self.encode(words, contexts)
        num_dropped = sum(len(entry.dropped) for entry in encoded)
        if num_dropped:
            examples = ", ".join(repr(entry.word) for entry in encoded if entry.dropped)[:200]
            logger.warning(f"{num_dropped} contexts do not hold their word and were dropped. Words: {examples}.")
        return self.pad_words(encoded)

    def pad_words(self, encoded: Sequence[EncodedWord]) -> BatchFeature:
        """Pads encoded words on the right into one batch; see `__call__` for the tensors."""
        features: dict[str, torch.Tensor] = {}
        if self.has_form:
            features["form_ids"] = pad_rows([entry.form_ids for entry in encoded], NO_UNIT)
        rows = [ids for entry in encoded for ids in entry.input_ids]
        if rows:
            num_pieces = [len(entry.pieces) for entry in encoded for _ in entry.input_ids]
            features |= self.pad_contexts(rows, [p for entry in encoded for p in entry.mask_positions], num_pieces)
        features["num_contexts"] = torch.tensor([len(entry.used) for entry in encoded])
        return BatchFeature(features | self.find_look_alikes([entry.word for entry in encoded]))

    def find_look_alikes(self, words: Sequence[str]) -> dict[str, torch.Tensor]:
        """Returns `look_alike_ids` and `look_alike_kinds` (W, K) of words; nothing if the processor knows no words.

        A known word is no misspelling: it has none.
        """
        if self.look_alikes is None:
            return {}
        words = [self.normalize_word(word) for word in words]
        token_ids, kinds = self.look_alikes(words)
        kinds[[word in self.look_alikes for word in words]] = 0
        return {"look_alike_ids": torch.from_numpy(token_ids), "look_alike_kinds": torch.from_numpy(kinds)}

    @property
    def has_form(self) -> bool:
        """Whether words have form ids."""
        return self.form is not None or self.pieces

    def pad_contexts(
        self, input_ids: list[list[int]], mask_positions: list[int], num_pieces: list[int] | None = None
    ) -> dict[str, torch.Tensor]:
        """Pads C contexts on the right: `input_ids` and `attention_mask` (C, T), `mask_positions` (C,) and, if the
        processor writes pieces, their numbers as `num_pieces` (C,)."""
        features = self.pad_texts(input_ids) | {"mask_positions": torch.tensor(mask_positions)}
        return features | ({"num_pieces": torch.tensor(num_pieces)} if self.pieces else {})

    def pad_texts(self, input_ids: list[list[int]]) -> dict[str, torch.Tensor]:
        """Pads texts on the right: `input_ids` and `attention_mask` (C, T)."""
        lengths = torch.tensor([len(row) for row in input_ids])
        padded = pad_rows(input_ids, self.tokenizer.pad_token_id or 0)
        return {"input_ids": padded, "attention_mask": (torch.arange(padded.shape[1]) < lengths[:, None]).long()}

    @property
    def model_input_names(self) -> list[str]:
        names = ["form_ids", "input_ids", "attention_mask", "mask_positions", "num_contexts"]
        names += ["num_pieces"] if self.pieces else []
        return names + (["look_alike_ids", "look_alike_kinds"] if self.look_alikes is not None else [])

    def to_dict(self) -> dict[str, Any]:
        # The form vocabulary and the look-alikes have files of their own; most models read no pieces.
        left_out = ("form", "look_alikes") if self.pieces else ("form", "look_alikes", "pieces")
        return {key: value for key, value in super().to_dict().items() if key not in left_out}

    def save_pretrained(self, save_directory: str | os.PathLike, push_to_hub: bool = False, **kwargs: Any) -> list[str]:
        os.makedirs(save_directory, exist_ok=True)
        for name, part in ((FORM_VOCAB_NAME, self.form), (LOOK_ALIKES_NAME, self.look_alikes)):
            path = os.path.join(save_directory, name)
            if part is not None:
                part.save(path)
            elif os.path.exists(path):  # of another processor, which would be loaded with this one
                os.remove(path)
        processor_class = getattr(self.tokenizer, "_processor_class", None)
        saved_files = super().save_pretrained(str(save_directory), push_to_hub=push_to_hub, **kwargs)
        # Transformers leaves marks on what it saves; the tokenizer may be the caller's, for other models too.
        self.__dict__.pop("auto_map", None)
        self.tokenizer._set_processor_class(processor_class)
        return saved_files

    def _get_files_timestamps(self, working_dir: str | os.PathLike) -> dict[str, float]:
        # Transformers uploads what is newer than these, and our own files are written before it looks.
        timestamps = super()._get_files_timestamps(working_dir)
        return {name: time for name, time in timestamps.items() if name not in (FORM_VOCAB_NAME, LOOK_ALIKES_NAME)}

    @classmethod
    def get_processor_dict(
        cls, pretrained_model_name_or_path: str | os.PathLike, **kwargs: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        names = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")
        hub_arguments = {name: kwargs[name] for name in names if kwargs.get(name) is not None}
        settings_path = cached_file(pretrained_model_name_or_path, PROCESSOR_NAME, **hub_arguments)
        content = read_json_file(settings_path, required=SETTINGS)
        try:
            check_settings(**{name: content[name] for name in SETTINGS}, pieces=content.get("pieces", False))
        except ValueError as error:
            raise ValueError(f"{settings_path} cannot be used: {error}") from error
        processor_dict, unused = super().get_processor_dict(pretrained_model_name_or_path, **kwargs)
        parts: list[tuple[str, str, Any]] = [
            ("form", FORM_VOCAB_NAME, FormTokenizer),
            ("look_alikes", LOOK_ALIKES_NAME, LookAlikes),
        ]
        for argument, name, part in parts:
            path = cached_file(
                pretrained_model_name_or_path, name, _raise_exceptions_for_missing_entries=False, **hub_arguments
            )
            if path is not None:
                processor_dict[argument] = part.from_file(path)
        return processor_dict, unused


def check_settings(*, max_length: Any, prefix: Any, match: Any, separator: Any, pieces: Any) -> None:
    """Raises a ValueError if a setting of a [`BertramProcessor`] cannot be used."""
    for name, value, choices in (("prefix", prefix, get_args(Prefix)), ("match", match, get_args(Match))):
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
    if type(max_length) is not int or max_length <= RESERVED_TOKENS[prefix]:
        raise ValueError(
            f"max_length must be above {RESERVED_TOKENS[prefix]} with prefix {prefix!r}; got {max_length!r}."
        )
    if not isinstance(separator, str):
        raise ValueError(f"separator must be a string; got {separator!r}.")
    if not isinstance(pieces, bool) or (pieces and (prefix != "none" or max_length < MIN_LENGTH_WITH_PIECES)):
        raise ValueError(
            f"pieces must be true or false and, if true, prefix 'none' and max_length at least "
            f"{MIN_LENGTH_WITH_PIECES}; got {pieces!r}, {prefix!r} and {max_length}."
        )


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int) -> torch.Tensor:
    """Pads lists of ids on the right into one tensor."""
    return torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=pad_id
    )


BertramProcessor.register_for_auto_class()
