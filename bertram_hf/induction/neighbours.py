"""The tokens nearest to vectors in the input embedding space."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from ..processing_words import replace_surrogates
from ..utils.models import unit_rows
from ..words.pieces import PieceReader

# Rows of the vocabulary that were never trained: BERT's, Gemma's, RoBERTa's and T5's names for them.
UNUSED_TOKEN = re.compile(r"\[unused\d+\]|<unused\d+>|madeupword\d+|<extra_id_\d+>")
MAX_SIMILARITIES = 1 << 24  # held at a time


@dataclass(frozen=True)
class Neighbour:
    """A token near a vector, as people read it, and the cosine after the vocabulary's mean is subtracted from both."""

    token: str
    similarity: float


class NearestTokens:
    """Finds the tokens nearest to vectors. Special and unused tokens, and rows without a token, are left out.

    Args:
        embeddings: (V, H), the input embeddings.
        reader: Reads the tokens.

    Attributes:
        mean: (H,), of the embeddings of the tokens that are compared.
        norms: (V,), their lengths.

    Example:
        >>> nearest = NearestTokens(encoder.get_input_embeddings().weight, PieceReader(tokenizer))
        >>> len(nearest.find(vectors.embeddings, 3)[0])
        3
    """

    def __init__(self, embeddings: torch.Tensor, reader: PieceReader) -> None:
        self.reader = reader
        self._ids = [
            token_id
            for token_id, token in sorted(reader.tokens.items())
            if token_id not in reader.special_ids and token_id < len(embeddings) and not UNUSED_TOKEN.fullmatch(token)
        ]
        table = embeddings.detach()[torch.tensor(self._ids, device=embeddings.device)].float().cpu()
        self.mean, self.norms = table.mean(dim=0), table.norm(dim=1)
        self._directions = unit_rows(table - self.mean)
        self._columns = {token_id: column for column, token_id in enumerate(self._ids)}

    @torch.no_grad()
    def find(
        self, vectors: torch.Tensor, number: int, left_out: Sequence[Iterable[int]] | None = None
    ) -> list[list[Neighbour]]:
        """Returns the nearest tokens of each vector, the nearest first.

        Args:
            vectors: (W, H).
            number: How many of each.
            left_out: For each vector, ids of tokens that are not told.
        """
        skipped = [()] * len(vectors) if left_out is None else left_out
        queries = unit_rows(vectors.float().cpu() - self.mean)
        number = min(number, len(self._ids))
        found: list[list[Neighbour]] = []
        for rows in torch.arange(len(queries)).split(max(1, MAX_SIMILARITIES // max(1, len(self._ids)))):
            similarities = queries[rows] @ self._directions.T
            for row, query in enumerate(rows.tolist()):
                columns = [self._columns[token_id] for token_id in skipped[query] if token_id in self._columns]
                similarities[row, columns] = -torch.inf
            best = similarities.topk(number)
            for values, places in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                pairs = zip(values, places, strict=True)
                found.append([Neighbour(self._name(place), value) for value, place in pairs if value > -torch.inf])
        return found

    def _name(self, place: int) -> str:
        return visible(self.reader.read(self._ids[place]))


def visible(text: str) -> str:
    """Writes text in one line and without control characters, which could steer a terminal."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "\ufffd", " ".join(replace_surrogates(text).split()))
