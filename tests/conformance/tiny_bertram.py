"""Tiny networks and inputs in the form that Transformers' tests ask for."""

import torch
from transformers import PreTrainedConfig

from bertram_hf import BertramConfig
from bertram_hf.modeling_bertram import TOKENS_AROUND_PIECES


class BertramModelTester:
    """Builds networks and inputs. Every word has one context, so that a batch can be cut after any row."""

    batch_size = 7
    seq_length = 9
    num_ngrams = 4
    hidden_size = 16
    num_hidden_layers = 2
    num_attention_heads = 2
    vocab_size = 99
    form_vocab_size = 30
    is_training = True

    def __init__(self, text_config_class: type[PreTrainedConfig], **config_fields: str) -> None:
        self.text_config_class = text_config_class
        self.config_fields = config_fields

    def get_config(self) -> BertramConfig:
        text_config = self.text_config_class(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=24,
            max_position_embeddings=40,
        )
        return BertramConfig(
            text_config=text_config, form_vocab_size=self.form_vocab_size, freeze_encoder=False, **self.config_fields
        )

    def prepare_config_and_inputs_for_common(self) -> tuple[BertramConfig, dict[str, torch.Tensor]]:
        config = self.get_config()
        inputs: dict[str, torch.Tensor] = {}
        if config.has_form:
            inputs["form_ids"] = torch.randint(2, self.form_vocab_size, (self.batch_size, self.num_ngrams))
        if config.reads_pieces:  # two pieces among the tokens of the word alone
            inputs["form_ids"] = torch.randint(5, self.vocab_size, (self.batch_size, 2 + TOKENS_AROUND_PIECES))
            inputs["num_pieces"] = torch.full((self.batch_size,), 2)
        if config.has_context:
            attention_mask = torch.ones(self.batch_size, self.seq_length, dtype=torch.long)
            attention_mask[::2, -2:] = 0
            inputs |= {
                "input_ids": torch.randint(5, self.vocab_size, (self.batch_size, self.seq_length)),
                "attention_mask": attention_mask,
                "mask_positions": torch.randint(3, self.seq_length - 3, (self.batch_size,)),
                "num_contexts": torch.ones(self.batch_size, dtype=torch.long),
            }
        return config, inputs
