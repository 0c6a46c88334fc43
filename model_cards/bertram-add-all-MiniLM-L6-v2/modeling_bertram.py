"""The BERTRAM network (Schick & Schütze, 2020) as a Transformers model."""

import os
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from .configuration_bertram import BertramConfig, preset_fields
from .modeling_context import (
    AttentiveWeights,
    ScoredWeights,
    average_context,
    build_encoder,
    copy_encoder,
    hide_pieces,
    index_words,
    read_at_positions,
    read_pieces,
    sum_by_word,
)
from .modeling_form import build_form_encoder
from .modeling_look_alikes import UNLIKELY, LookAlikeMixture, compare_with
from .modeling_slim import SlimPreTrainedModel, embedding_fingerprint
from .tokenization_form import NO_UNIT

# Where the prefix of each mode holds the form vector: [CLS] form :, and [CLS] " form " :.
FORM_POSITIONS = {"add": 1, "add-quotes": 2}
# In mode pieces a word without contexts is read as [CLS] pieces / [MASK] [SEP]: tokens that are not the word's.
TOKENS_AROUND_PIECES = 4


@dataclass
class BertramOutput(ModelOutput):
    """Output of [`BertramModel`].

    Attributes:
        loss: Mean squared error against `labels`, if given.
        word_embeddings: (W, H), the induced vectors.
        context_weights: (C,), the weight of every context; those of a word sum to one but may be negative.
        form_embeddings: (W, H), the form part's vectors, if the model has one.
        context_embeddings: (C, hidden), what the context part says of every context.
        look_alike_weights: (W, K), the share of every look-alike in the word's vector, if the model mixes them in.

    Example:
        >>> outputs = model(**processor(["kumquat"], [["She peeled a kumquat.", "A kumquat is sour."]]))
        >>> outputs.word_embeddings.shape, outputs.context_weights.shape
        (torch.Size([1, 768]), torch.Size([2]))
    """

    loss: torch.Tensor | None = None
    word_embeddings: torch.Tensor | None = None
    context_weights: torch.Tensor | None = None
    form_embeddings: torch.Tensor | None = None
    context_embeddings: torch.Tensor | None = None
    look_alike_weights: torch.Tensor | None = None


class BertramModel(SlimPreTrainedModel):
    """Induces input embeddings of words from their spelling and contexts.

    Args:
        config: The network.
        encoder: The encoder, with its weights; built anew from `config.text_config` if not given.

    Example:
        >>> model = BertramModel.from_encoder("bert-base-uncased", mode="context")
        >>> processor = BertramProcessor.from_encoder("bert-base-uncased", mode="context")
        >>> outputs = model(**processor(["kumquat"], [["She peeled a kumquat."]]))
        >>> outputs.word_embeddings.shape
        torch.Size([1, 768])
    """

    config_class = BertramConfig
    base_model_prefix = "bertram"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    # Half precision for the encoder alone; what is made of its states, and all sums, keep the model's own.
    encoder_dtype: torch.dtype | None = None

    def __init__(self, config: BertramConfig, encoder: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        if config.has_form_encoder:
            self.form_encoder = build_form_encoder(config)
        if config.has_context:
            self.encoder = build_encoder(config.text_config) if encoder is None else encoder
            if config.context_weighting != "uniform":
                weighting = AttentiveWeights if config.context_weighting == "attentive" else ScoredWeights
                self.context_attention = weighting(config.context_size)
            self.output_map = nn.Linear(config.context_size, config.embedding_size, bias=config.output_bias)
            if config.form_strength is not None and not config.reads_pieces:
                self.form_map = nn.Linear(config.embedding_size, config.embedding_size)
            if config.second_map:
                self.second_map = nn.Linear(config.context_size, config.embedding_size, bias=config.output_bias)
            if config.needs_mean:
                self.register_buffer("vocabulary_mean", torch.zeros(config.embedding_size))
            if config.look_alikes:
                self.look_alike_mixture = LookAlikeMixture()
        if config.mode == "shallow":
            self.gate = nn.Linear(2 * config.embedding_size, 1)
        self.post_init()
        self.freeze_parts()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.EmbeddingBag | nn.LSTM | nn.Conv1d):  # which the base class leaves as they are
            for parameter in module.parameters():
                init.normal_(parameter, mean=0.0, std=self.config.initializer_range)
        elif isinstance(module, LookAlikeMixture):
            for name, parameter in module.named_parameters():
                init.constant_(parameter, UNLIKELY if name == "error_log_odds" else 0.0)
        else:
            super()._init_weights(module)

    @classmethod
    def from_encoder(
        cls,
        encoder: str | os.PathLike | PreTrainedModel,
        *,
        preset: str | None = None,
        **config_fields: Any,
    ) -> "BertramModel":
        """Starts a new model on a pretrained encoder.

        Args:
            encoder: Name, path, or a loaded model. A loaded model is copied, without its head.
            preset: One of the paper's systems, such as `"bertram-add"` or `"mimick"`.
            config_fields: Fields of [`BertramConfig`], such as `mode` and `form_vocab_size`.

        Raises:
            ValueError: If the encoder cannot be used, with its name, or a field is not known.
        """
        unknown = config_fields.keys() - {field.name for field in fields(BertramConfig)}
        if unknown:
            raise ValueError(f"BertramConfig has no fields {sorted(unknown)}.")
        encoder = copy_encoder(encoder)
        embeddings = encoder.get_input_embeddings().weight
        config_fields.setdefault("encoder_name_or_path", encoder.name_or_path or None)
        config = BertramConfig(
            **(preset_fields(preset) if preset else {}) | config_fields,
            text_config=encoder.config,
            embedding_size=embeddings.shape[1],
            embedding_fingerprint=embedding_fingerprint(embeddings),
            attn_implementation=encoder.config._attn_implementation,
        )
        model = cls(config, encoder).to(device=embeddings.device, dtype=embeddings.dtype).eval()
        if config.needs_mean:
            model.vocabulary_mean.copy_(embeddings.detach().float().mean(dim=0))
        return model

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_input_embeddings(value)

    def train(self, mode: bool = True) -> "BertramModel":
        super().train(mode)
        # The released code runs its frozen parts with dropout; we do not, so that their outputs can be cached.
        if self.config.has_context and (
            self.config.freeze_encoder or (self.config.reads_pieces and not self.encoder.is_gradient_checkpointing)
        ):
            self.encoder.eval()
        if self.config.has_form_encoder and self.config.freeze_form:
            self.form_encoder.eval()
        return self

    def gradient_checkpointing_enable(self, *args: Any, **kwargs: Any) -> None:
        super().gradient_checkpointing_enable(*args, **kwargs)
        self.train(self.training)  # layers are checkpointed in training mode only

    def encode_forms(self, form_ids: torch.Tensor) -> torch.Tensor:
        """Maps form ids (W, N) to the vectors (W, H) of words without contexts."""
        if self.config.has_form_encoder:
            return self.form_encoder(form_ids)
        attention_mask = (form_ids != NO_UNIT).long()
        lengths = attention_mask.sum(dim=1)
        return self.output_map(
            self._read_contexts(
                form_ids * attention_mask, attention_mask, lengths - 2, num_pieces=lengths - TOKENS_AROUND_PIECES
            )
        )

    def _encode_needed_forms(self, form_ids: torch.Tensor, num_contexts: torch.Tensor | None) -> torch.Tensor:
        """Encodes forms; in the training of mode pieces only those of words without contexts, as no other is used."""
        if not (self.training and self.config.reads_pieces and num_contexts is not None):
            return self.encode_forms(form_ids)
        embeddings = torch.zeros(len(form_ids), self.config.embedding_size, dtype=self.dtype, device=form_ids.device)
        alone = (num_contexts == 0).nonzero()[:, 0]
        return embeddings.index_copy(0, alone, self.encode_forms(form_ids[alone])) if len(alone) else embeddings

    def encode_contexts(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        mask_positions: torch.Tensor,
        form_embeddings: Any = None,
        num_pieces: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Maps contexts to what the context part says of their words.

        Args:
            input_ids: (C, T).
            attention_mask: (C, T), padding on the right.
            mask_positions: (C,).
            form_embeddings: (C, H), the form vector of each context's word; needed by replace, add and add-quotes.
            num_pieces: (C,), of each context's word; needed by pieces.

        Returns:
            (C, hidden); with `config.piece_strength`, the readings with and without the pieces side by side.
        """
        readings = self._read_contexts(input_ids, attention_mask, mask_positions, form_embeddings, num_pieces)
        if self.config.piece_strength is None or num_pieces is None:
            return readings
        assert self.config.hidden_token_id is not None  # as the configuration has checked
        hidden = hide_pieces(input_ids, attention_mask, mask_positions, num_pieces, self.config.hidden_token_id)
        return torch.cat([readings, self._read_contexts(**hidden, most_pieces=1)], dim=-1)

    def _read_contexts(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        mask_positions: torch.Tensor,
        form_embeddings: Any = None,
        num_pieces: torch.Tensor | None = None,
        most_pieces: int | None = None,
    ) -> torch.Tensor:
        """Reads each context once, as it is; the largest number of pieces is looked up if it is not given."""
        embeddings = self.get_input_embeddings()
        if self.config.context_encoder == "bag-of-words":
            return average_context(embeddings, input_ids, attention_mask, mask_positions)
        inputs_embeds = embeddings(input_ids)
        if self.config.mode in ("replace", *FORM_POSITIONS):
            rows = torch.arange(len(input_ids), device=input_ids.device)
            positions = mask_positions
            if self.config.mode in FORM_POSITIONS:
                positions = torch.full_like(mask_positions, FORM_POSITIONS[self.config.mode])
            inputs_embeds = inputs_embeds.index_put((rows, positions), form_embeddings.to(inputs_embeds.dtype))
        all_layers = self.config.context_layers == "all"
        dtype = self.encoder_dtype
        with torch.autocast(input_ids.device.type, dtype, enabled=True) if dtype is not None else nullcontext():
            if num_pieces is None:
                positions = mask_positions[:, None]
                states = read_at_positions(
                    self.encoder, inputs_embeds, attention_mask, positions, all_layers=all_layers
                )[:, 0]
            else:
                if most_pieces is None:  # a compiler knows shapes only
                    most_pieces = inputs_embeds.shape[1] if is_compiling() else int(num_pieces.max())
                contexts = (inputs_embeds, attention_mask, mask_positions, num_pieces)
                states = read_pieces(self.encoder, *contexts, most_pieces=most_pieces, all_layers=all_layers)
        return states.to(inputs_embeds.dtype)

    def combine(
        self,
        form_embeddings: torch.Tensor | None,
        context_embeddings: torch.Tensor,
        num_contexts: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Combines the parts into one vector for each word.

        Args:
            form_embeddings: (W, H), or None in mode context.
            context_embeddings: (C, hidden), the contexts of the first word, then those of the second, and so on.
            num_contexts: (W,). A word without contexts gets its form vector as it is, unless `form_strength` is set.

        Returns:
            Word embeddings (W, H) and context weights (C,).
        """
        shown, *hidden = context_embeddings.split(self.config.context_size, dim=-1)
        word_embeddings, weights = self._combine_readings(form_embeddings, shown, num_contexts)
        if not hidden:
            return word_embeddings, weights
        hidden_embeddings, hidden_weights = self._combine_readings(form_embeddings, hidden[0], num_contexts)
        share = self._share_hidden(form_embeddings, hidden_embeddings, num_contexts).to(weights.dtype)  # (W,)
        shares = share[index_words(num_contexts, len(weights))]  # (C,)
        mixed = torch.lerp(word_embeddings, hidden_embeddings, share[:, None])
        return self.rescale(mixed), torch.lerp(weights, hidden_weights, shares)

    def _share_hidden(self, form_embeddings: Any, hidden_embeddings: Any, num_contexts: Any) -> torch.Tensor:
        """Returns how much the reading without pieces (W, H) counts beside the other one, for each word (W,)."""
        share = num_contexts / (num_contexts + self.config.piece_strength)
        if self.config.agreement_threshold is None:
            return share
        pieces_alone, contexts_alone = (part - self.vocabulary_mean for part in (form_embeddings, hidden_embeddings))
        agreement = nn.functional.cosine_similarity(pieces_alone, contexts_alone, dim=-1)
        return share * torch.sigmoid(self.config.agreement_slope * (self.config.agreement_threshold - agreement))

    def _combine_readings(
        self, form_embeddings: torch.Tensor | None, context_embeddings: torch.Tensor, num_contexts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Combines the parts, with one reading (C, hidden) of each context."""
        num_words = len(num_contexts)
        word_indices = index_words(num_contexts, len(context_embeddings))
        if self.config.context_weighting != "uniform":
            weights = self.context_attention(context_embeddings, word_indices, num_words)
        else:
            weights = (1.0 / num_contexts[word_indices]).to(context_embeddings.dtype)
        pooled = sum_by_word(weights[:, None] * context_embeddings, word_indices, num_words)
        word_embeddings = self.output_map(pooled)
        if form_embeddings is None:
            return self.rescale(word_embeddings), weights
        if self.config.mode == "shallow":
            # The paper gates on the context before A and b; the released code, followed here, after them.
            gate = torch.sigmoid(self.gate(torch.cat([word_embeddings, form_embeddings], dim=-1)))
            word_embeddings = gate * word_embeddings + (1 - gate) * form_embeddings
        if self.config.form_strength is not None:
            share = (num_contexts / (num_contexts + self.config.form_strength))[:, None].to(word_embeddings.dtype)
            if self.config.second_map:
                word_embeddings = word_embeddings + share * self.second_map(pooled)
        if self.config.form_strength is not None and not self.config.reads_pieces:
            word_embeddings = share * word_embeddings + (1 - share) * self.form_map(form_embeddings)
        else:
            word_embeddings = torch.where((num_contexts > 0)[:, None], word_embeddings, form_embeddings)
        return self.rescale(word_embeddings), weights

    def mix_look_alikes(
        self,
        word_embeddings: torch.Tensor,
        num_contexts: torch.Tensor,
        look_alike_ids: torch.Tensor,
        look_alike_kinds: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Mixes the embeddings of look-alikes into words' vectors, each with the probability that it is meant.

        Args:
            word_embeddings: (W, H), from `combine`.
            num_contexts: (W,).
            look_alike_ids: (W, K), tokens of the look-alikes.
            look_alike_kinds: (W, K), their kinds; 0 is padding.

        Returns:
            The mixed vectors (W, H) and the probabilities (W, K).
        """
        look_alikes = self.get_input_embeddings()(look_alike_ids)  # (W, K, H)
        agreements = compare_with(word_embeddings, look_alikes, self.vocabulary_mean)
        logits = self.look_alike_mixture(agreements, look_alike_ids, look_alike_kinds, num_contexts)
        weights = logits.softmax(dim=1)
        mixed = weights[:, :1] * word_embeddings + torch.einsum("wk,wkh->wh", weights[:, 1:], look_alikes)
        is_alone = (look_alike_kinds == 0).all(dim=1, keepdim=True)
        return torch.where(is_alone, word_embeddings, self.rescale(mixed)), weights[:, 1:]

    def finish(
        self,
        form_embeddings: torch.Tensor | None,
        context_embeddings: torch.Tensor,
        num_contexts: torch.Tensor,
        look_alike_ids: torch.Tensor | None = None,
        look_alike_kinds: torch.Tensor | None = None,
    ) -> BertramOutput:
        """Combines the parts of each word (`combine`) and, if they are given, mixes in its look-alikes.

        Whoever has encoded forms and contexts before, in batches of their own, gets the words' vectors from here.
        """
        word_embeddings, context_weights = self.combine(form_embeddings, context_embeddings, num_contexts)
        outputs = BertramOutput(word_embeddings=word_embeddings, context_weights=context_weights)
        if look_alike_ids is not None and look_alike_kinds is not None:
            outputs.word_embeddings, outputs.look_alike_weights = self.mix_look_alikes(
                word_embeddings, num_contexts, look_alike_ids, look_alike_kinds
            )
        return outputs

    def rescale(self, word_embeddings: torch.Tensor) -> torch.Tensor:
        """Scales vectors (W, H) to `config.output_norm` around the vocabulary's mean; as they are if it is None."""
        if self.config.output_norm is None:
            return word_embeddings
        directions = nn.functional.normalize(word_embeddings - self.vocabulary_mean, dim=-1)
        return self.vocabulary_mean + self.config.output_norm * directions

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        mask_positions: torch.Tensor | None = None,
        num_contexts: torch.Tensor | None = None,
        num_pieces: torch.Tensor | None = None,
        form_ids: torch.Tensor | None = None,
        form_embeddings: Any = None,
        context_embeddings: torch.Tensor | None = None,
        look_alike_ids: torch.Tensor | None = None,
        look_alike_kinds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        return_dict: bool | None = None,
    ) -> BertramOutput | tuple[torch.Tensor, ...]:
        """Induces vectors for W words with C contexts in all. A [`BertramProcessor`] makes the inputs.

        Args:
            input_ids: (C, T), the contexts of the first word, then those of the second, and so on.
            attention_mask: (C, T), padding on the right.
            mask_positions: (C,), where the word stands in each context.
            num_contexts: (W,), how many contexts each word has.
            num_pieces: (C,), how many pieces stand before the mask of each context; in mode pieces only.
            form_ids: (W, N), the words' n-grams or characters, in mode pieces the tokens of the word alone; not needed
                in mode context.
            form_embeddings: (W, H), what `encode_forms` returned, in place of `form_ids`.
            context_embeddings: (C, hidden), what `encode_contexts` returned, in place of `input_ids` and what goes with
                them. A frozen encoder need not run twice.
            look_alike_ids: (W, K), tokens of the words' look-alikes; needed if `config.look_alikes` is set.
            look_alike_kinds: (W, K), the kind of each; 0 is padding.
            labels: (W, H), the words' true embeddings; gives the mimicking loss.
            return_dict: Whether to return a [`BertramOutput`] (the default) or a tuple.

        Raises:
            ValueError: If an input that the mode needs is missing, or a context-only model gets a word without
                contexts.
        """
        if self.config.has_form and form_embeddings is None:
            if form_ids is None:
                raise ValueError(f"Mode {self.config.mode!r} needs form_ids (W, N); use a processor with form=.")
            form_embeddings = self._encode_needed_forms(form_ids, num_contexts)
        if not self.config.has_form and (
            (input_ids is None and context_embeddings is None)
            or (num_contexts is not None and not is_compiling() and not num_contexts.all())
        ):
            raise ValueError("A context-only model cannot give a vector to a word without contexts.")
        if not self.config.has_context:
            finished = BertramOutput(word_embeddings=form_embeddings)
        else:
            if context_embeddings is None and input_ids is None:
                context_embeddings = form_embeddings.new_zeros(0, self.config.readings_size)
                num_contexts = torch.zeros(len(form_embeddings), dtype=torch.long, device=form_embeddings.device)
            elif context_embeddings is None:
                if mask_positions is None or num_contexts is None:
                    raise ValueError("Contexts need mask_positions (C,) and num_contexts (W,) beside input_ids (C, T).")
                if self.config.reads_pieces and num_pieces is None:
                    raise ValueError('Mode "pieces" needs num_pieces (C,); use the processor saved with the model.')
                if attention_mask is None:
                    attention_mask = torch.ones_like(input_ids)
                per_context = None
                if self.config.has_form:
                    per_context = form_embeddings[index_words(num_contexts, len(mask_positions))]
                context_embeddings = self.encode_contexts(
                    input_ids, attention_mask, mask_positions, per_context, num_pieces
                )
            elif num_contexts is None:
                raise ValueError("context_embeddings (C, hidden) need num_contexts (W,).")
            if self.config.look_alikes and (look_alike_ids is None or look_alike_kinds is None):
                raise ValueError(
                    "This model needs look_alike_ids and look_alike_kinds (W, K); use the processor saved with it."
                )
            if not self.config.look_alikes:
                look_alike_ids = look_alike_kinds = None
            finished = self.finish(form_embeddings, context_embeddings, num_contexts, look_alike_ids, look_alike_kinds)
        loss = None
        if labels is not None:
            # The paper writes the squared norm; as in the released code it is the mean over words and dimensions.
            loss = nn.functional.mse_loss(finished.word_embeddings, labels.to(self.dtype))
        outputs = BertramOutput(
            loss=loss,
            word_embeddings=finished.word_embeddings,
            context_weights=finished.context_weights,
            form_embeddings=form_embeddings,
            context_embeddings=context_embeddings,
            look_alike_weights=finished.look_alike_weights,
        )
        if return_dict is None:
            return_dict = self.config.return_dict
        return outputs if return_dict else outputs.to_tuple()


BertramModel.register_for_auto_class("AutoModel")


BertramConfig.register_for_auto_class()
