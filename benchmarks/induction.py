"""Speed and memory of `induce_vectors` beside the loop of the released code, in one run on one machine.

    python benchmarks/induction.py --threads 2 --json induction.json
    python benchmarks/induction.py --threads 2 --dtype bfloat16 --json induction-bfloat16.json
    python benchmarks/induction.py --threads 2 --memory

The released loop is written anew: one word at a time, contexts tokenised one by one and padded to `max_length`, all
layers at all positions, eager attention, single precision. It has the same weights (BERT-base size, random) and today's
kernels.
On a machine that does other work, set OMP_WAIT_POLICY=passive: threads that spin for each other cost up to ten times.
"""

import argparse
import json
import random
import resource
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoTokenizer, BertConfig, PreTrainedModel

from bertram_hf import BertramConfig, BertramModel, BertramProcessor, induce_vectors
from bertram_hf.induction.batching import CPU_TOKENS_PER_BATCH
from bertram_hf.modeling_context import build_encoder
from bertram_hf.utils.names import Precision
from bertram_hf.utils.tables import format_rows

Contexts = dict[str, list[str]]
MAX_LENGTH = 96
# Contexts per word, and words: 64 contexts in each call, so that there is something to sort.
SETTINGS = ((1, 64), (4, 16), (16, 4))
SYLLABLES = [consonant + vowel for consonant in ("b", "d", "gr", "k", "l", "m", "n", "st", "t") for vowel in "aeiou"]


def build(mode: str, seed: int, **encoder_fields: int) -> tuple[BertramModel, BertramProcessor]:
    """Random weights and a small WordPiece vocabulary: words of two syllables, single ones as later pieces."""
    words = [first + second for first in SYLLABLES for second in SYLLABLES]
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ":", *words, *("##" + syllable for syllable in SYLLABLES)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "vocab.txt").write_text("\n".join(vocab), encoding="utf-8")
        Path(folder, "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
        tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = BertramProcessor.from_encoder(tokenizer, mode=mode, form_words=words, max_length=MAX_LENGTH)
    num_units = 2 if processor.form is None else len(processor.form)
    torch.manual_seed(seed)
    config = BertramConfig(text_config=BertConfig(**encoder_fields), mode=mode, form_vocab_size=num_units)
    return BertramModel(config).eval(), processor


def draw_contexts(num_words: int, num_contexts: int, seed: int) -> Contexts:
    """Contexts of 5 to 75 words; with special tokens and prefix 30 tokens on average, standard deviation 12."""
    draw = random.Random(seed)

    def draw_context(word: str) -> str:
        length = min(max(round(draw.gammavariate(4.5, 5.0)), 5), 75)
        pieces = ["".join(draw.choices(SYLLABLES, k=2 if draw.random() < 0.85 else 3)) for _ in range(length)]
        pieces[draw.randrange(length)] = word
        return " ".join(pieces)

    words = [f"quo{SYLLABLES[i % len(SYLLABLES)]}x{SYLLABLES[i // len(SYLLABLES)]}" for i in range(num_words)]
    return {word: [draw_context(word) for _ in range(num_contexts)] for word in words}


@torch.no_grad()
def measure_product(config: BertConfig, dtype: torch.dtype) -> float:
    """Returns the floating-point operations per second of a bare product of the encoder's largest matrix."""
    tokens, weights = (
        torch.randn(rows, config.hidden_size, dtype=dtype) for rows in (CPU_TOKENS_PER_BATCH, config.intermediate_size)
    )
    seconds = []
    for _ in range(30):
        start = time.perf_counter()
        torch.nn.functional.linear(tokens, weights)
        seconds.append(time.perf_counter() - start)
    return 2 * tokens.numel() * len(weights) / statistics.median(seconds)


def count_operations(config: BertConfig) -> int:
    """Returns the operations of the encoder's matrix products for one token; attention itself is small beside them.

    Of the last layer, keys and values alone are needed for all tokens.
    """
    size, inner = config.hidden_size, config.intermediate_size
    return 2 * ((config.num_hidden_layers - 1) * (4 * size * size + 2 * size * inner) + 2 * size * size)


@torch.no_grad()
def induce_as_released(
    model: BertramModel, encoder: PreTrainedModel, processor: BertramProcessor, word: str, contexts: list[str]
) -> torch.Tensor:
    """Returns the vector (H,) of one word as timoschick/bertram computes it; `encoder` has eager attention."""
    rows = torch.arange(len(contexts))
    input_ids = torch.zeros(len(contexts), MAX_LENGTH, dtype=torch.long)
    attention_mask, mask_positions = torch.zeros_like(input_ids), torch.zeros_like(rows)
    for row, context in enumerate(contexts):
        encoded = processor.encode([word], [[context]])[0]  # equal to the released one on these texts
        length, mask_positions[row] = len(encoded.input_ids[0]), encoded.mask_positions[0]
        input_ids[row, :length], attention_mask[row, :length] = torch.tensor(encoded.input_ids[0]), 1
    inputs_embeds = encoder.get_input_embeddings()(input_ids)
    if model.config.mode == "add":
        inputs_embeds[:, 1] = model.encode_forms(torch.tensor([processor.encode_form(word)]))
    inputs = {"attention_mask": attention_mask, "token_type_ids": torch.zeros_like(input_ids)}
    context_embeddings = encoder(inputs_embeds=inputs_embeds, **inputs).last_hidden_state[rows, mask_positions]
    projected = model.context_attention.projection(context_embeddings)
    scores = projected @ projected.T / projected.shape[-1] ** 0.5  # (C, C)
    weights = scores.sum(dim=1) / (scores.sum() + 1e-12)
    return model.output_map(weights @ context_embeddings)


def time_setting(
    model: BertramModel, processor: BertramProcessor, contexts: Contexts, num: int, dtype: Precision
) -> dict[str, Any]:
    """Times the two `num` times in turn, so that whatever else the machine does hits both."""
    encoder = build_encoder(BertConfig(**model.config.text_config.to_dict(), attn_implementation="eager")).eval()
    encoder.load_state_dict(model.encoder.state_dict(), assign=True)
    seconds: list[tuple[float, float]] = []
    difference, cosine = 0.0, 1.0
    for repetition in range(num + 1):
        start = time.perf_counter()
        expected = torch.stack([induce_as_released(model, encoder, processor, *item) for item in contexts.items()])
        middle = time.perf_counter()
        vectors = induce_vectors(model, processor, contexts, dtype=dtype, show_progress=False)
        end = time.perf_counter()
        difference = max(difference, (vectors.embeddings - expected).abs().max().item())
        cosine = min(cosine, torch.cosine_similarity(vectors.embeddings, expected).min().item())
        if difference > 1e-4 and dtype == "float32":
            raise SystemExit(f"Expected equal vectors up to 1e-4; the largest difference is {difference:.1e}.")
        if repetition > 0:  # the first one checks that both agree, and warms up
            seconds.append((middle - start, end - middle))
    encoded = processor.encode(list(contexts), list(contexts.values()))
    lengths = [len(ids) for entry in encoded for ids in entry.input_ids]
    released, ours = map(statistics.median, zip(*seconds, strict=True))
    config = model.config.text_config
    limit = measure_product(config, getattr(torch, dtype))
    share = count_operations(config) * sum(lengths) / ours / limit
    tokens = statistics.mean(lengths)
    return {
        "tokens": tokens,
        "seconds": seconds,
        "released": released,
        "ours": ours,
        "difference": difference,
        "cosine": cosine,
        "share_of_product": share,
    }


def measure_memory(num_contexts: int, seed: int) -> float:
    """Returns the peak memory of this process in MB after one word with `num_contexts` contexts (hidden size 64)."""
    parts = build("add", seed, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=256)
    induce_vectors(*parts, draw_contexts(1, num_contexts, seed), show_progress=False)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("add", "context"), default="add")
    for name, default in (("--threads", 2), ("--repetitions", 5), ("--seed", 0)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="precision of our encoder")
    parser.add_argument("--memory", action="store_true", help="measure peak memory instead of speed")
    parser.add_argument("--json", metavar="OUT", help="write settings and results to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    results: dict[int, Any] = {}
    if arguments.memory:
        for num_contexts in (2_000, 20_000):
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # a process of its own for each peak
                results[num_contexts] = pool.submit(measure_memory, num_contexts, arguments.seed).result()
            print(f"one word with {num_contexts:6} contexts: peak memory {results[num_contexts]:.0f} MB")
    else:
        model, processor = build(arguments.mode, arguments.seed)
        rows = []
        for num_contexts, num_words in SETTINGS:
            contexts = draw_contexts(num_words, num_contexts, arguments.seed)
            result = results[num_contexts] = time_setting(
                model, processor, contexts, arguments.repetitions, arguments.dtype
            )
            result["ratio"] = result["released"] / result["ours"]
            rows.append(
                {
                    "contexts a word": str(num_contexts),
                    "words": str(num_words),
                    "tokens a context": f"{result['tokens']:.1f}",
                    "released (s)": f"{result['released']:.2f}",
                    "ours (s)": f"{result['ours']:.2f}",
                    "ratio": f"{result['ratio']:.2f}",
                    "largest difference": f"{result['difference']:.1e}",
                    "least cosine": f"{result['cosine']:.6f}",
                    "of a bare product": f"{result['share_of_product']:.0%}",
                }
            )
        print(format_rows(rows))
    if arguments.json:
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        Path(arguments.json).write_text(json.dumps(vars(arguments) | versions | {"results": results}, indent=2))


if __name__ == "__main__":
    main()
