"""The mean of a word's pieces: what a model knows of a rare word before anything is induced."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..modeling_slim import embedding_fingerprint
from ..words.pieces import PieceReader
from .word_vectors import WordVectors


@torch.inference_mode()
def mean_piece_vectors(
    encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, words: Sequence[str]
) -> WordVectors:
    """Returns the mean of the input embeddings of each word's pieces; for a word of one piece its own embedding.

    Args:
        encoder: The model whose input embeddings are read.
        tokenizer: Its tokenizer.
        words: Different words.

    Raises:
        ValueError: If the tokenizer makes no piece of a word, which then is no text at all.

    Example:
        >>> mean_piece_vectors(encoder, tokenizer, ["kumquat"]).embeddings.shape
        torch.Size([1, 768])
    """
    table = encoder.get_input_embeddings().weight.detach()
    pieces = PieceReader(tokenizer).split(words)
    empty = [word for word, ids in zip(words, pieces, strict=True) if not ids]
    if empty:
        raise ValueError(f"The tokenizer makes no piece of {len(empty)} words, such as {empty[0]!r}. Leave them out.")
    flat = torch.tensor([piece for ids in pieces for piece in ids], dtype=torch.long, device=table.device)
    firsts = torch.tensor([0, *map(len, pieces[:-1])], device=table.device).cumsum(0)
    vectors = (
        torch.nn.functional.embedding_bag(flat, table.float(), firsts, mode="mean") if words else table[:0].float()
    )
    return WordVectors(list(words), vectors.cpu(), embedding_fingerprint(table))
