"""What one-token approximation minimises: how far one vector changes an encoder's other states from a word's pieces."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..modeling_context import can_read_packed
from ..processing_context import end_ids
from ..utils.models import run_in
from ..words.pieces import PieceReader


@dataclass
class Templates:
    """What stands around W words, one template for each.

    Attributes:
        left_ids: (W, T left of the word), special tokens included.
        right_ids: (W, T right of the word), special tokens included.
    """

    left_ids: torch.Tensor
    right_ids: torch.Tensor

    def select(self, rows: torch.Tensor) -> "Templates":
        """Returns the templates of some words."""
        return Templates(self.left_ids[rows], self.right_ids[rows])


class TemplateSampler:
    """Draws "left word right ." with one random vocabulary word on each side.

    A draw depends on the seed, the word and its number only, so that a word's vector does not depend on which other
    words are approximated with it.

    Attributes:
        candidate_ids: Tokens that begin a word; for WordPiece those that do not start with "[" or "#", as released.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, num_embeddings: int, seed: int) -> None:
        reader = PieceReader(tokenizer)
        self.seed = seed
        self._first, self._last = end_ids(tokenizer)
        # Without a space before it, as the released code has it for RoBERTa; BERT does not care.
        self._full_stop = tokenizer(".", add_special_tokens=False)["input_ids"]

        def begins_word(token: str) -> bool:
            if reader.marker == "##":
                return not token.startswith(("[", "#"))
            return token.startswith(reader.marker) and token != reader.marker

        self.candidate_ids = [
            token_id
            for token_id, token in sorted(reader.tokens.items())
            if token_id < num_embeddings and token_id not in reader.special_ids and begins_word(token)
        ]
        if not self.candidate_ids:
            raise ValueError(
                f"The vocabulary of {type(tokenizer).__name__} has {len(reader.tokens)} tokens, but none that begins a "
                "word; templates are made of such tokens. Give the encoder's own tokenizer."
            )

    def draw(self, words: Sequence[str], number: int) -> Templates:
        """Returns the templates with a number, counted from 0, of W words."""
        left_ids, right_ids = [], []
        for word in words:
            digest = hashlib.blake2b(f"{self.seed} {number} {word}".encode(errors="replace"), digest_size=16).digest()
            left, right = (int.from_bytes(half, "big") % len(self.candidate_ids) for half in (digest[:8], digest[8:]))
            left_ids.append([self._first, self.candidate_ids[left]])
            right_ids.append([self.candidate_ids[right], *self._full_stop, self._last])
        return Templates(torch.tensor(left_ids), torch.tensor(right_ids))


class OneTokenObjective:
    """Loss of vectors that stand for words of several pieces, and its gradient.

    The encoder reads a template once with the word's pieces and once with the vector in their place. The loss is the
    sum, over the embeddings and all layers but the last, of the mean squared difference at the positions left of the
    word plus that at the positions right of it (Schick and Schütze, 2020, as released).

    Deviation from the released code: attention sees all tokens, where the released code passes its segment ids as
    attention mask, which takes 10,000 from all scores and so only rounds them.

    Args:
        encoder: The encoder, in eval mode.
        dtype: Lower precision in which it is run; None: its own.
    """

    def __init__(self, encoder: PreTrainedModel, dtype: torch.dtype | None = None) -> None:
        self.encoder = encoder
        self.dtype = dtype
        self.embeddings = encoder.get_input_embeddings()

    @torch.no_grad()
    def read_pieces(self, piece_ids: torch.Tensor, templates: Templates) -> list[torch.Tensor]:
        """Returns the states that the vectors shall lead to.

        Args:
            piece_ids: (W, pieces).
            templates: W templates.

        Returns:
            For the embeddings and each layer but the last (W, T without the word, hidden).
        """
        num_left, num_pieces = templates.left_ids.shape[1], piece_ids.shape[1]
        input_ids = torch.cat([templates.left_ids, piece_ids, templates.right_ids], dim=1).to(self.encoder.device)
        all_states = self._read(self.embeddings(input_ids), self.encoder.config.num_hidden_layers - 1)
        return [drop_word(states, num_left, num_pieces) for states in all_states]

    def evaluate(
        self, vectors: torch.Tensor, templates: Templates, targets: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns each word's loss (W,) and its gradient (W, H).

        Args:
            vectors: (W, H).
            templates: W templates.
            targets: What `read_pieces` returned for them; if the last layers are cut off, they are not compared.
        """
        vectors = vectors.detach().requires_grad_()
        num_left = templates.left_ids.shape[1]
        left, right = (
            self.embeddings(ids.to(self.encoder.device)).detach() for ids in (templates.left_ids, templates.right_ids)
        )
        with torch.enable_grad():
            inputs_embeds = torch.cat([left, vectors[:, None].to(left.dtype), right], dim=1)  # (W, T, H)
            losses = torch.zeros(len(vectors), device=vectors.device)
            for states, target in zip(self._read(inputs_embeds, len(targets) - 1), targets, strict=True):
                squares = (drop_word(states, num_left, 1) - target).float().square()
                losses = losses + squares[:, :num_left].mean(dim=(1, 2)) + squares[:, num_left:].mean(dim=(1, 2))
            # Asked for one gradient only, autograd computes none of the encoder's weights.
            (gradient,) = torch.autograd.grad(losses.sum(), vectors)
        return losses.detach(), gradient

    def _read(self, inputs_embeds: torch.Tensor, num_layers: int) -> Sequence[torch.Tensor]:
        """Returns (W, T, hidden) for the embeddings and the first layers; the others are not run if that can be
        avoided. All inputs have one length, so there is no padding."""
        encoder = self.encoder
        with run_in(self.dtype, inputs_embeds.device):
            if not can_read_packed(encoder) or encoder.config.model_type == "mpnet":  # whose layers want a bias
                mask = torch.ones(inputs_embeds.shape[:2], dtype=torch.long, device=inputs_embeds.device)
                outputs = encoder(inputs_embeds=inputs_embeds, attention_mask=mask, output_hidden_states=True)
                return outputs.hidden_states[: num_layers + 1]
            states = encoder.embeddings(inputs_embeds=inputs_embeds)
            if hasattr(encoder, "embeddings_project"):  # ELECTRA
                states = encoder.embeddings_project(states)
            all_states = [states]
            for layer in encoder.encoder.layer[:num_layers]:
                all_states.append(layer(all_states[-1]))
        return all_states


def drop_word(states: torch.Tensor, num_left: int, num_pieces: int) -> torch.Tensor:
    """Returns the states (W, T - pieces, hidden) of all positions but the word's."""
    return torch.cat([states[:, :num_left], states[:, num_left + num_pieces :]], dim=1)
