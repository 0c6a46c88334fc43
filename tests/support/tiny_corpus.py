"""A small corpus that several tests build, and how they read the result."""

import dataclasses
import random
from pathlib import Path

from bertram_hf.corpus.build import load_contexts
from bertram_hf.corpus.settings import CorpusSettings

WORDS = [
    "kumquat",
    "lemon",
    "Melon",
    "covid-19",
    "don't",
    "well-known",
    "_pear_",
    "42",
    "café",
    "naïve",
    "New",
    "York",
    "C++",
    "fig,",
    "grape.",
]


QUIET = {"show_progress": False, "lower_case": True}


def write_corpus(folder, *, num_files=4, num_lines=60, seed=0):
    """Writes files of sentences, some of them more than once, some too short or too long."""
    generator = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    texts = []
    for number in range(num_files):
        lines = []
        for _ in range(num_lines):
            words = generator.choices(WORDS, k=generator.choice([2, 4, 5, 6, 12, 70]))
            lines.append(" ".join(words) + generator.choice([".", "!", "? Yes."]))
        lines += lines[:10]
        texts.append("\n".join(lines))
        (folder / f"{number}.txt").write_text(texts[-1] + "\n", encoding="utf-8")
    return texts


def read_output(folder):
    """Returns all files of a corpus with their bytes."""
    folder = Path(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def contexts_of(folder):
    return {row["word"]: row["contexts"] for row in load_contexts(folder)}


def make_settings(**changes):
    settings = CorpusSettings("", True, "auto", "text", 1, None, 64, 4, 50, 0, 2)
    return dataclasses.replace(settings, **changes)
