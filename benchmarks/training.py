"""Speed of the context stage and the form stage beside the loops of the released code, in one run on one machine.

    python benchmarks/training.py --threads 2 --json training.json
    python benchmarks/training.py --threads 1 --encoder-size tiny --repetitions 1

The released loops are written anew in `released_training.py`, with the same weights (BERT-base size, random) and the
same batches as ours. A step of the context stage costs the same in all epochs, so that `--released-epochs` are measured
and scaled to `--epochs`. The released code runs its frozen encoder with dropout ("released"); "no dropout" is the same
loop without, whose losses can be compared with ours.
Ours is `train_stage` with the paper's settings. All is measured from text or words to saved weights: tokens, cache and
checkpoints are included.
How much a cache saves depends on how often a context is read. Word number r of W occurs 100 W / r times (Zipf's law;
the paper takes words from 100 occurrences on), which gives about 31 contexts drawn in an epoch for each word.
On a machine that does other work, set OMP_WAIT_POLICY=passive: threads that spin for each other cost up to ten times,
and go by the CPU time.
"""

import argparse
import contextlib
import copy
import functools
import json
import os
import random
import statistics
import string
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from induction import Contexts, build, draw_contexts, induce_as_released
from released_training import read_as_released, train_contexts_as_released, train_forms_as_released
from torch import nn
from transformers import BertConfig

from bertram_hf import BertramConfig, BertramModel, BertramProcessor
from bertram_hf.modeling_context import build_encoder
from bertram_hf.tokenization_form import FormTokenizer
from bertram_hf.training.batches import OCCURRENCES_PER_REPETITION, WordBatches, WordCollator, count_repetitions
from bertram_hf.training.contexts import EncodedContexts
from bertram_hf.training.inputs import cache_features
from bertram_hf.training.recipe import PAPER_CONTEXT_STAGE, PAPER_FORM_STAGE, StageSettings
from bertram_hf.training.stage import read_record, train_stage

Seconds = dict[str, list[tuple[float, float]]]
ENCODER_SIZES: dict[str, dict[str, int]] = {
    "base": {},
    "tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256},
}
TABLE_SIZE = 51_500
LETTERS = (8, 10)  # 21 to 27 n-grams
# How many times faster than the released loop, and how equal.
BARS = {"cache": 15.0, "no cache": 4.0, "exact": 4.0}
MAX_LOSS_DIFFERENCE = 1e-4  # relative
MAX_WEIGHT_DIFFERENCE = 1e-4  # Adam divides by the root of tiny squares, so that rounding grows with the steps
# The released code does not clip gradients. Every loss is logged, to be compared.
TRAINER = {"max_grad_norm": 0.0, "logging_steps": 1, "disable_tqdm": True, "use_cpu": True}
TRAINER |= {"dataloader_pin_memory": False}


def train_ours(
    model: BertramModel,
    processor: BertramProcessor,
    inputs: WordCollator,
    occurrences: np.ndarray,
    settings: StageSettings,
    folder: Path,
    seed: int,
) -> list[dict[str, Any]]:
    """Trains a stage. Returns what the Trainer logged."""
    options: Any = {"settings": settings, "fingerprint": "benchmark", "vocabulary": inputs.targets, "seed": seed}
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # the Trainer prints what it logs
        train_stage(model, processor, inputs, occurrences, folder=folder, **options)
    return read_record(folder)["history"]


def train_contexts(
    model: BertramModel,
    processor: BertramProcessor,
    contexts: Contexts,
    targets: torch.Tensor,
    occurrences: np.ndarray,
    *,
    settings: StageSettings,
    seed: int,
) -> list[float]:
    """Runs our context stage from text to saved model. Returns the loss of every step."""
    with tempfile.TemporaryDirectory() as name:
        folder, features = Path(name), None
        encoded = EncodedContexts.build(processor, list(contexts.items()), folder / "tokens", show_progress=False)
        if settings.cache:
            dtype: Any = settings.cache_dtype
            features = cache_features(model, processor, encoded, folder / "features", dtype=dtype, show_progress=False)
        inputs = WordCollator(processor, encoded, targets, features)
        history = train_ours(model, processor, inputs, occurrences, settings, folder / "stage", seed)
    return [entry["loss"] for entry in history if "loss" in entry]


def measure_context_stage(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs the three context stages in turn, so that whatever else the machine does hits all of them."""
    num_epochs, stop_after, seed = arguments.epochs, min(arguments.released_epochs, arguments.epochs), arguments.seed
    model, processor = build("context", seed, **ENCODER_SIZES[arguments.encoder_size])
    encoder = build_encoder(BertConfig(**model.config.text_config.to_dict(), attn_implementation="eager")).eval()
    encoder.load_state_dict(model.encoder.state_dict(), assign=True)
    contexts = draw_contexts(arguments.words, arguments.contexts, seed)
    texts = [(word, text) for word, own in contexts.items() for text in own]
    tokens = statistics.mean(len(processor.encode([word], [[text]])[0].input_ids[0]) for word, text in texts)
    targets = model.get_input_embeddings().weight.detach()[1000 : 1000 + len(contexts)].clone()
    occurrences = OCCURRENCES_PER_REPETITION * len(contexts) // np.arange(1, len(contexts) + 1)
    trainer = {**PAPER_CONTEXT_STAGE.trainer, **TRAINER, "num_train_epochs": num_epochs}
    settings = replace(PAPER_CONTEXT_STAGE, cache_dtype="float32", trainer=trainer)
    batches = WordBatches(
        functools.partial(read_as_released, processor, texts, targets),
        np.arange(len(contexts) + 1) * arguments.contexts,
        count_repetitions(occurrences, settings.max_repetitions),
        contexts_per_batch=settings.contexts_per_batch,
        min_contexts=settings.min_contexts,
        max_contexts=settings.max_contexts,
        seed=seed,
    )
    num_drawn = int(batches.sizes.sum())
    print(f"Context stage: {len(contexts)} words with {arguments.contexts} contexts of {tokens:.1f} tokens on average;")
    print(f"{num_epochs} epochs of {len(batches)} batches, {num_drawn} contexts drawn in each from {len(texts)}.")
    if stop_after < num_epochs:
        print(f"Released: {stop_after} of {num_epochs} epochs measured, seconds scaled to {num_epochs}.")
    induce_as_released(model, encoder, processor, texts[0][0], [texts[0][1]])  # warms up
    start_weights = {name: value.clone() for name, value in model.state_dict().items() if "encoder." not in name}
    seconds: Seconds = {"released": [], "no dropout": [], "no cache": [], "cache": []}
    losses: dict[str, list[float]] = {}
    for _ in range(arguments.repetitions):
        for name in ("released", "no dropout"):
            model.load_state_dict(start_weights, strict=False)
            encoder.train(name == "released")
            start = read_clocks()
            losses[name] = train_contexts_as_released(
                model, encoder, batches, num_epochs=num_epochs, stop_after=stop_after
            )
            wall, cpu = seconds_since(start)
            seconds[name].append((wall * num_epochs / stop_after, cpu * num_epochs / stop_after))
        for name in ("no cache", "cache"):
            model.load_state_dict(start_weights, strict=False)
            stage = replace(settings, cache=name == "cache")
            start = read_clocks()
            losses[name] = train_contexts(model, processor, contexts, targets, occurrences, settings=stage, seed=seed)
            seconds[name].append(seconds_since(start))
    differences = {
        "no dropout to no cache": compare_losses(losses["no dropout"], losses["no cache"]),
        "no cache to cache": compare_losses(losses["no cache"], losses["cache"]),
    }
    results = summarize(seconds)
    for pair, difference in differences.items():
        verdict = "met" if difference <= MAX_LOSS_DIFFERENCE else "MISSED"
        print(f"largest relative difference of losses, {pair}: {difference:.1e} (bar {MAX_LOSS_DIFFERENCE}: {verdict})")
    print(f"loss without cache: first {losses['no cache'][0]:.4f}, last {losses['no cache'][-1]:.4f}", flush=True)
    counts = {"tokens": tokens, "batches": len(batches), "drawn": num_drawn, "kept": len(texts)}
    return counts | {"stages": results, "loss_differences": differences, "losses": losses}


def compare_losses(first: list[float], second: list[float]) -> float:
    """Returns the largest relative difference in the steps that both have; the first may have stopped earlier."""
    if not 0 < len(first) <= len(second):
        raise SystemExit(
            f"Expected as many steps in both runs, or fewer in the first; got {len(first)}, {len(second)}."
        )
    return max(abs(one - other) / abs(other) for one, other in zip(first, second, strict=False))


def measure_form_stage(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs the three form stages in turn."""
    seed, num_steps = arguments.seed, arguments.form_steps
    draw = random.Random(seed)
    num_words = num_steps * (PAPER_FORM_STAGE.words_per_batch or 1)
    words = ["".join(draw.choices(string.ascii_lowercase, k=draw.randint(*LETTERS))) for _ in range(num_words)]
    encoder_fields = ENCODER_SIZES[arguments.encoder_size]
    processor = build("form", seed, **encoder_fields)[1]
    processor.form = FormTokenizer(FormTokenizer.from_words(words, min_count=1).vocab[:TABLE_SIZE])
    config = BertramConfig(
        text_config=BertConfig(**encoder_fields), mode="form", form_vocab_size=TABLE_SIZE, ngram_dropout=0.0
    )
    torch.manual_seed(seed)
    beginning = BertramModel(config)
    targets = torch.randn(num_words, config.embedding_size) * config.initializer_range
    occurrences = np.full(num_words, OCCURRENCES_PER_REPETITION)
    trainer = {**PAPER_FORM_STAGE.trainer, **TRAINER, "num_train_epochs": 1, "save_strategy": "no"}
    settings = replace(PAPER_FORM_STAGE, trainer=trainer)
    batches = WordBatches(
        lambda rows, *_: rows,  # type: ignore[arg-type, return-value]
        np.zeros(num_words + 1, dtype=np.int64),
        count_repetitions(occurrences, settings.max_repetitions),
        words_per_batch=settings.words_per_batch,
        min_contexts=0,
        max_contexts=0,
        seed=seed,
    )
    num_ngrams = statistics.mean(len(processor.encode_form(word)) for word in words)
    print(f"\nForm stage: table {TABLE_SIZE} x {config.embedding_size}, {len(batches)} steps, each of")
    print(f"{settings.words_per_batch} words with {num_ngrams:.1f} n-grams on average.")
    seconds: Seconds = {"released": [], "exact": [], "lazy": []}
    tables: dict[str, torch.Tensor] = {}
    for _ in range(arguments.repetitions):
        table = nn.Embedding.from_pretrained(beginning.form_encoder.embeddings.weight.detach().clone(), freeze=False)
        with tempfile.TemporaryDirectory() as folder:
            start = read_clocks()
            train_forms_as_released(table, processor, words, targets, batches)
            torch.save(table.state_dict(), Path(folder, "table.bin"))
            seconds["released"].append(seconds_since(start))
        tables["released"] = table.weight.detach()
        for name in ("exact", "lazy"):
            model = copy.deepcopy(beginning)
            stage = replace(settings, lazy_adam=name == "lazy")
            with tempfile.TemporaryDirectory() as folder:
                start = read_clocks()
                inputs = WordCollator(processor, EncodedContexts.without_contexts(words), targets)
                train_ours(model, processor, inputs, occurrences, stage, Path(folder, "stage"), seed)
                seconds[name].append(seconds_since(start))
            tables[name] = model.form_encoder.embeddings.weight.detach()
    moved = (tables["exact"] - beginning.form_encoder.embeddings.weight.detach()).abs().max().item()
    differences = {
        name: (table - tables["released"]).abs().max().item() for name, table in tables.items() if name != "released"
    }
    results = summarize(seconds)
    print(f"largest difference of weights to released (training moved them by up to {moved:.1e}):")
    for name, difference in differences.items():
        verdict = "met" if difference <= MAX_WEIGHT_DIFFERENCE else "MISSED"
        bar = f" (bar {MAX_WEIGHT_DIFFERENCE}: {verdict})" if name == "exact" else " (another algorithm)"
        print(f"  {name} {difference:.1e}{bar}")
    summary = {"ngrams": num_ngrams, "stages": results, "weight_differences": differences, "moved": moved}
    return summary


def read_clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def seconds_since(start: tuple[float, float]) -> tuple[float, float]:
    """Returns wall and CPU seconds, those of all threads."""
    wall, cpu = read_clocks()
    return wall - start[0], cpu - start[1]


def summarize(seconds: Seconds) -> dict[str, Any]:
    """Prints and returns medians and how many times faster than `released` they are; bars are for wall time."""
    results: dict[str, Any] = {}
    print("              wall s   ratio     CPU s   ratio  bar (wall)")
    for name, measured in seconds.items():
        if not measured:
            continue
        released, ours = (
            [statistics.median(clock) for clock in zip(*seconds[n], strict=True)] for n in ("released", name)
        )
        ratios = [before / now for before, now in zip(released, ours, strict=True)]
        results[name] = {"seconds": measured, "wall": ours[0], "cpu": ours[1]}
        results[name] |= {"wall_ratio": ratios[0], "cpu_ratio": ratios[1]}
        verdict = ""
        if name in BARS:
            results[name]["met"] = ratios[0] >= BARS[name]
            verdict = f"{BARS[name]:.0f} {'met' if results[name]['met'] else 'MISSED'}"
        print(f"{name:10} {ours[0]:9.2f} {ratios[0]:7.2f} {ours[1]:9.2f} {ratios[1]:7.2f}  {verdict}", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("threads", 2), ("repetitions", 2), ("seed", 0), ("words", 12), ("contexts", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--epochs", type=int, default=5, help="of the context stage (default: 5)")
    parser.add_argument("--released-epochs", type=int, default=1, help="measured of the released loop (default: 1)")
    parser.add_argument("--form-steps", type=int, default=150, help="steps of the form stage (default: 150)")
    parser.add_argument("--encoder-size", choices=tuple(ENCODER_SIZES), default="base", help="tiny is for trials")
    parser.add_argument("--json", metavar="OUT", help="write settings and results to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    results = {"context": measure_context_stage(arguments), "form": measure_form_stage(arguments)}
    if arguments.json:
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        content = vars(arguments) | versions | {"results": results}
        Path(arguments.json).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
