"""The pieces that a tokenizer cuts words into, readable for people."""

from collections.abc import Sequence
from functools import cache

from transformers import PreTrainedTokenizerBase

from ..processing_context import tokenize_words

# WordPiece marks the pieces that continue a word; byte-level BPE and SentencePiece mark those that begin one.
PIECE_MARKERS = ("##", "Ġ", "▁")
CONTINUES_WORD = "·"
WORDS_PER_CALL = 10_000


class PieceReader:
    """Cuts words into a tokenizer's pieces and writes pieces so that people can read them.

    Example:
        >>> reader = PieceReader(tokenizer)
        >>> [reader.read(piece_id) for piece_id in reader.split(["kumquat"])[0]]
        ['ku', '·m', '·qua', '·t']
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab()
        self.tokens = {token_id: token for token, token_id in vocabulary.items()}
        self.special_ids = set(tokenizer.all_special_ids)
        self.marker = max(PIECE_MARKERS, key=lambda marker: sum(token.startswith(marker) for token in vocabulary))

    def split(self, words: Sequence[str]) -> list[list[int]]:
        """Returns the ids of the pieces of each word, as it stands after a space; a piece that is only the space is
        left out."""
        pieces: list[list[int]] = []
        for start in range(0, len(words), WORDS_PER_CALL):
            pieces += tokenize_words(self.tokenizer, words[start : start + WORDS_PER_CALL])
        return pieces

    def read(self, token_id: int) -> str:
        """Returns a token as text: "·" stands before one that continues a word, "\\xc3" for a byte that is no text."""
        token = self.tokens.get(token_id, "")
        if token_id in self.special_ids:
            return token
        if self.marker == "##":
            return CONTINUES_WORD + token[2:] if token.startswith("##") and len(token) > 2 else token
        text = token.removeprefix(self.marker)
        prefix = CONTINUES_WORD if text == token else ""
        if self.marker == "Ġ" and all(character in _byte_of_character() for character in text):
            text = bytes(_byte_of_character()[character] for character in text).decode(errors="backslashreplace")
        return prefix + text

    def breaks_up(self, pieces: Sequence[int], min_pieces: int) -> bool:
        """Whether a word has `min_pieces` pieces, or one of them is the unknown token, which says even less."""
        return len(pieces) >= min_pieces or self.tokenizer.unk_token_id in pieces


@cache
def _byte_of_character() -> dict[str, int]:
    """Returns the table with which GPT-2's byte-level BPE writes bytes as visible characters, reversed."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + index): byte for index, byte in enumerate(hidden)}


def vocabulary_words(reader: PieceReader) -> list[str]:
    """Returns the words, of letters only, that a tokenizer has a token for."""
    texts = {reader.read(token_id) for token_id in reader.tokens}
    words = sorted(text for text in texts if text.isalpha())
    return [word for word, ids in zip(words, reader.split(words), strict=True) if len(ids) == 1]
