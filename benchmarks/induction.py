"""Speed and memory of `induce_vectors` against the loop of the released code, in one run on one machine.

    python benchmarks/induction.py --threads 2 --json induction.json    # about three minutes
    python benchmarks/induction.py --threads 2 --memory

The released loop is written anew: one word at a time, contexts tokenised one by one and padded to `max_length`, all
layers at all positions with eager attention. It runs on the same weights (BERT-base size, random) and today's kernels;
both must agree before they are timed.
"""

import argparse
import json
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from transformers import AutoTokenizer, BertConfig

from bertram_hf import BertramConfig, BertramModel, BertramProcessor, induce_vectors
from bertram_hf.context_encoders import build_encoder
from bertram_hf.modeling_bertram import EPSILON, FORM_POSITIONS

MODES = ("context", "shallow", "replace", "add", "add-quotes")
MAX_LENGTH = 96
# Contexts per word and words: 64 contexts for each setting, so that there is something to sort.
SETTINGS = ((1, 64), (4, 16), (16, 4))
SYLLABLES = [consonants + vowel for consonants in ("b", "d", "gr", "k", "l", "m", "n", "st", "t") for vowel in "aeiou"]


def build_processor(mode: str) -> BertramProcessor:
    """Builds a processor with a small WordPiece vocabulary: words of two syllables, and single ones as later pieces."""
    words = [first + second for first in SYLLABLES for second in SYLLABLES]
    special_tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", '"', ":"]
    with tempfile.TemporaryDirectory() as folder:
        vocab = special_tokens + words + ["##" + syllable for syllable in SYLLABLES]
        (Path(folder) / "vocab.txt").write_text("\n".join(vocab), encoding="utf-8")
        (Path(folder) / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
        tokenizer = AutoTokenizer.from_pretrained(folder)
    return BertramProcessor.from_encoder(tokenizer, mode=mode, form_words=words, max_length=MAX_LENGTH)


def draw_contexts(num_words: int, num_contexts: int, seed: int) -> dict[str, list[str]]:
    """Draws contexts of 5 to 75 words; with special tokens and prefix they have about 30 tokens on average."""
    draw = random.Random(seed)

    def draw_context(word: str) -> str:
        length = min(max(round(draw.gammavariate(4.5, 5.0)), 5), 75)
        pieces = ["".join(draw.choices(SYLLABLES, k=draw.choice((2, 2, 2, 2, 2, 2, 3)))) for _ in range(length)]
        pieces[draw.randrange(length)] = word
        return " ".join(pieces)

    words = [f"quo{SYLLABLES[i % len(SYLLABLES)]}x{SYLLABLES[i // len(SYLLABLES)]}" for i in range(num_words)]
    return {word: [draw_context(word) for _ in range(num_contexts)] for word in words}


class ReleasedLoop:
    """Induction as timoschick/bertram does it, on the weights of `model`."""

    def __init__(self, model: BertramModel, processor: BertramProcessor) -> None:
        self.model, self.processor = model, processor
        text_config = BertConfig(**model.config.text_config.to_dict() | {"attn_implementation": "eager"})
        self.encoder = build_encoder(text_config).eval()
        self.encoder.load_state_dict(model.encoder.state_dict(), assign=True)

    @torch.no_grad()
    def __call__(self, word: str, contexts: list[str]) -> torch.Tensor:
        """Returns the vector (H,) of one word."""
        model, mode = self.model, self.model.config.mode
        rows = torch.arange(len(contexts))
        input_ids = torch.zeros(len(contexts), MAX_LENGTH, dtype=torch.long)
        attention_mask, token_type_ids = torch.zeros_like(input_ids), torch.zeros_like(input_ids)
        mask_positions = torch.zeros_like(rows)
        for row, context in enumerate(contexts):
            encoded = self.processor.encode([word], [[context]])[0]
            ids = torch.tensor(encoded.input_ids[0])
            input_ids[row, : len(ids)] = ids
            attention_mask[row, : len(ids)] = 1
            mask_positions[row] = encoded.mask_positions[0]
        inputs_embeds = self.encoder.get_input_embeddings()(input_ids)
        if mode != "context":
            form = model.encode_forms(torch.tensor([self.processor.encode_form(word)]))
            if mode == "replace":
                inputs_embeds[rows, mask_positions] = form
            elif mode in FORM_POSITIONS:
                inputs_embeds[:, FORM_POSITIONS[mode]] = form
        hidden_states = self.encoder(
            inputs_embeds=inputs_embeds, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        read = hidden_states[rows, mask_positions]  # (C, H)
        projected = model.context_attention.projection(read)
        scores = projected @ projected.T / projected.shape[-1] ** 0.5  # (C, C)
        weights = scores.sum(dim=1) / (scores.sum() + EPSILON)
        vector = model.output_map(weights @ read)
        if mode == "shallow":
            gate = torch.sigmoid(model.gate(torch.cat([vector, form[0]])))
            vector = gate * vector + (1 - gate) * form[0]
        return vector


def build_model(processor: BertramProcessor, mode: str, seed: int, **encoder_fields: int) -> BertramModel:
    torch.manual_seed(seed)
    form_vocab_size = 2 if processor.form is None else len(processor.form)
    return BertramModel(
        BertramConfig(text_config=BertConfig(**encoder_fields), mode=mode, form_vocab_size=form_vocab_size)
    ).eval()


def compare_speed(mode: str, repetitions: int, seed: int) -> list[dict[str, float]]:
    """Times both ways in turn, so that what else the machine does hits both."""
    processor = build_processor(mode)
    model = build_model(processor, mode, seed)
    released = ReleasedLoop(model, processor)
    print(f"{'contexts/word':>13} {'tokens/context':>14} {'released w/s':>12} {'ours w/s':>9} {'ratio':>6} {'max diff':>9}")
    results = []
    for num_contexts, num_words in SETTINGS:
        contexts = draw_contexts(num_words, num_contexts, seed)
        lengths = [len(ids) for entry in processor.encode(list(contexts), list(contexts.values())) for ids in entry.input_ids]
        seconds: dict[str, list[float]] = {"released": [], "ours": []}
        for _ in range(repetitions):
            start = time.perf_counter()
            expected = torch.stack([released(word, contexts[word]) for word in contexts])
            middle = time.perf_counter()
            vectors = induce_vectors(model, processor, contexts, show_progress=False)
            seconds["released"].append(middle - start)
            seconds["ours"].append(time.perf_counter() - middle)
            difference = (vectors.embeddings - expected).abs().max().item()
            assert difference <= 1e-4, f"The two ways differ by {difference:.1e}; at most 1e-4 is rounding."
        medians = {name: statistics.median(values) for name, values in seconds.items()}
