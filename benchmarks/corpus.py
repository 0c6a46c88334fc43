"""Speed and memory of `build_corpus` beside the released preprocessing, in one run, each on one core.

    python benchmarks/corpus.py --json corpus.json
    python benchmarks/corpus.py --text novels/*.txt

The released preprocessing is written anew: NLTK's word tokens of each line, lower-cased, in a file; then, for each of
25 buckets of words, a pass over that file, which cuts sentences at " ." and keeps the first 1,000 contexts of a word,
with 25 words to its left and 24 to its right. Ours keeps a random sample of as many. Without --text, sentences of
made-up words are drawn by Zipf's law. Speed is measured on the first tenth of the text, the two in turn. Memory is
measured on that tenth and on all of it, with the default of 64 contexts. Every run has a process of its own.
On a machine that does other work, go by the CPU time.
"""

import argparse
import json
import random
import resource
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

NUM_BUCKETS = 25
DEFAULT_CONTEXTS = 64
WORDS_LEFT, WORDS_RIGHT = 25, 24
NUM_DIFFERENT_WORDS = 50_000
SYLLABLES = [consonant + vowel for consonant in ("b", "d", "gr", "k", "l", "m", "n", "st", "t") for vowel in "aeiou"]


def draw_text(path: Path, num_bytes: int, seed: int) -> None:
    """Writes lines of one to five sentences of 5 to 40 words, drawn by Zipf's law."""
    draw, generator = random.Random(seed), np.random.default_rng(seed)
    words = ["".join(draw.choices(SYLLABLES, k=1 + rank % 4)) + str(rank)[:1] for rank in range(NUM_DIFFERENT_WORDS)]
    weights = 1 / np.arange(1, len(words) + 1)
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < num_bytes:
            drawn = iter(generator.choice(len(words), 50_000, p=weights / weights.sum()).tolist())
            sentence: list[str] = []
            for length in generator.integers(5, 41, 1000).tolist():
                sentence = [words[rank] for _, rank in zip(range(length), drawn, strict=False)]
                if not sentence:
                    break
                file.write(", ".join((" ".join(sentence[:4]).capitalize(), " ".join(sentence[4:]))) + ".")
                file.write("\n" if draw.random() < 0.3 else " ")
            file.write("\n")


def take_head(source: Path, target: Path, num_bytes: int) -> None:
    """Copies the first lines of a file."""
    with open(source, "rb") as lines, open(target, "wb") as head:
        for line in lines:
            head.write(line)
            if head.tell() >= num_bytes:
                return


def preprocess_as_released(text: Path, folder: Path, *, min_count: int, max_contexts: int, seed: int) -> int:
    """Writes the contexts of all frequent words as timoschick/form-context-model does. Returns the number of words."""
    from nltk.tokenize import word_tokenize

    counts: Counter[str] = Counter()
    with open(text, encoding="utf-8") as lines, open(folder / "tokens.txt", "w", encoding="utf-8") as tokenized:
        for line in lines:
            tokens = [token.lower() for token in word_tokenize(line.strip(), preserve_line=True)]
            counts.update(tokens)
            tokenized.write(" ".join(tokens) + "\n")
    words = sorted(word for word, count in counts.items() if count >= min_count)
    random.Random(seed).shuffle(words)
    for number in range(NUM_BUCKETS):
        contexts: dict[str, list[str]] = defaultdict(list)
        bucket = set(words[number::NUM_BUCKETS])
        with open(folder / "tokens.txt", encoding="utf-8") as tokenized:
            for line in tokenized:
                for sentence in line.split(" ."):
                    tokens = sentence.split()
                    for position, token in enumerate(tokens):
                        if token in bucket and len(contexts[token]) < max_contexts:
                            window = tokens[max(0, position - WORDS_LEFT) : position + WORDS_RIGHT + 1]
                            contexts[token].append(" ".join(window))
        with open(folder / f"bucket{number}.txt", "w", encoding="utf-8") as file:
            file.writelines(f"{word}\t{chr(9).join(found)}\n" for word, found in contexts.items())
    return len(words)


def build_ours(
    text: Path, folder: Path, *, min_count: int, max_contexts: int, seed: int, max_words: int | None = None
) -> int:
    """Builds a corpus. Returns the number of words."""
    from bertram_hf.corpus.build import build_corpus

    options = {"min_count": min_count, "max_contexts": max_contexts, "seed": seed, "max_words": max_words}
    summary = build_corpus(text, folder / "corpus", lower_case=True, show_progress=False, **options)  # type: ignore
    return summary.num_words


def measure(preprocess: Any, text: Path, options: dict[str, int]) -> dict[str, float]:
    """Runs in a process of its own. Returns seconds, and MB of memory at the peak and before, when all is imported."""
    import pyarrow

    import bertram_hf.corpus.executors  # noqa: F401

    pyarrow.set_cpu_count(1)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    wall, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        num_words = preprocess(text, Path(folder), **options)
    return {
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "num_words": num_words,
        "memory_before": pages * resource.getpagesize() / 2**20,
        "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def run_apart(*arguments: Any) -> dict[str, float]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(measure, *arguments).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", nargs="+", metavar="FILE", help="text to use instead of made-up words")
    parser.add_argument("--megabytes", type=int, default=160, help="of made-up text (default: 160)")
    for name, default in (("--min-count", 100), ("--max-contexts", 1000), ("--repetitions", 3), ("--seed", 0)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--json", metavar="OUT", help="write settings and results to this file")
    arguments = parser.parse_args()
    try:
        nltk_version = version("nltk")
    except ModuleNotFoundError:
        raise SystemExit("The released preprocessing needs NLTK. Run: pip install nltk") from None
    options = {"min_count": arguments.min_count, "max_contexts": arguments.max_contexts, "seed": arguments.seed}
    with tempfile.TemporaryDirectory() as folder:
        whole, tenth = Path(folder, "whole.txt"), Path(folder, "tenth.txt")
        if arguments.text:
            whole.write_bytes(b"\n".join(Path(path).read_bytes() for path in arguments.text))
        else:
            draw_text(whole, arguments.megabytes << 20, arguments.seed)
        take_head(whole, tenth, whole.stat().st_size // 10)
        results: dict[str, Any] = {"megabytes": tenth.stat().st_size / 2**20, "released": [], "ours": []}
        for _ in range(arguments.repetitions):
            results["released"].append(run_apart(preprocess_as_released, tenth, options))
            results["ours"].append(run_apart(build_ours, tenth, options))
        options["max_contexts"] = DEFAULT_CONTEXTS
        # Ten times the text has far more frequent words, hence a larger result; so the same number of words, too.
        same_words = options | {"max_words": results["ours"][0]["num_words"]}
        runs = ((tenth, options), (whole, options), (whole, same_words))
        results["memory"] = [run_apart(build_ours, text, chosen) for text, chosen in runs]
    for clock in ("wall_seconds", "cpu_seconds"):
        released, ours = (statistics.median(run[clock] for run in results[name]) for name in ("released", "ours"))
        results[f"{clock}_ratio"] = released / ours
        print(f"{clock}: released {released:.1f}, ours {ours:.1f}, ratio {released / ours:.1f}")
    for size, run in zip((1, 10, 10), results["memory"], strict=True):
        above = run["peak_memory"] - run["memory_before"]
        print(f"{size * results['megabytes']:6.1f} MB of text, {run['num_words']} words: ", end="")
        print(f"peak memory {run['peak_memory']:.0f} MB, {above:.0f} MB above the imports, {run['wall_seconds']:.0f} s")
    if arguments.json:
        versions = {name: version(name) for name in ("datatrove", "pyarrow", "numpy")} | {"nltk": nltk_version}
        settings = vars(arguments) | {"text": [Path(path).name for path in arguments.text or []]}
        Path(arguments.json).write_text(json.dumps(settings | versions | {"results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
