"""Fits how probable it is that a word stands for a known one: the constants of `SpellingJudge`.

    python examples/spelling_odds.py data/ag_news.tsv data/crw-dev/context --model all-MiniLM-L6-v2

The words of each collection are known in turn. Words of it with a typing error stand for them; words of the other one
that it does not have are right all the same. Printed is what would be changed of both by how probable a misspelling
must be: `SURE` of `UnknownWords` is the lowest that changes fewer than 0.5 % of the right words of either collection.
"""

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from transformers import AutoModel, AutoProcessor

from bertram_hf import find_checkpoint
from bertram_hf.induction.spelling import SHORTEST, SpellingJudge
from bertram_hf.words import split_words

sys.path.append(str(Path(__file__).parent / "medicine"))
from misspelt_queries import mistype

NUM_WORDS, SEED = 10_000, 0
LIMITS = (0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98)


def count_words(path: Path) -> Counter[str]:
    """Returns how often words of letters occur in a file, or in those of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    words = (word for file in files for word in split_words(file.read_text(encoding="utf-8").lower()))
    return Counter(word for word in words if word.isalpha() and len(word) >= SHORTEST)


def main() -> None:
    """Counts, mistypes, fits and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs=2, type=Path, help="files or folders")
    parser.add_argument("--model", required=True, help="the encoder")
    arguments = parser.parse_args()
    folder = find_checkpoint("all-MiniLM-L6-v2")
    bertram = AutoModel.from_pretrained(folder, encoder=arguments.model).eval()
    processor = AutoProcessor.from_pretrained(folder)
    first, second = map(count_words, arguments.texts)
    draw = random.Random(SEED)
    features, labels, groups, sizes = [], [], [], []
    for known, other in ((first, second), (second, first)):
        judge = SpellingJudge(bertram, processor, known)
        meant = draw.choices(list(known), weights=[count**0.5 for count in known.values()], k=NUM_WORDS)
        mistyped = {wrong: word for word in meant if (wrong := mistype(word, draw)) not in known}
        right = [word for word, count in other.items() if 2 <= count <= 20 and word not in known]
        for words, answers in ((list(mistyped), mistyped), (draw.sample(right, min(NUM_WORDS, len(right))), {})):
            found, own = judge.describe(words)
            features.append(own)
            labels += [answers.get(word) == stands_for for word, stands_for in found.items()]
            groups += [len(sizes)] * len(found)
            sizes.append(len(words))
    described = torch.cat(features).numpy()
    fitted = LogisticRegression(max_iter=10_000, C=100.0).fit(described, labels)
    odds = ", ".join(f"{value:.3g}" for value in fitted.coef_[0])
    print(f"ODDS, CONSTANT = ({odds}), {fitted.intercept_[0]:.3g}")
    probabilities = fitted.predict_proba(described)[:, 1]
    is_error = np.array(groups) % 2 == 0  # the groups: errors, right words, and both again
    is_counted = np.array(labels) | ~is_error
    for limit in LIMITS:
        changed = np.bincount(np.array(groups)[is_counted & (probabilities > limit)], minlength=4) / sizes
        errors, right = (" and ".join(f"{share:.2%}" for share in changed[start::2]) for start in (0, 1))
        print(f"{limit:.2f}: {errors} of the typing errors corrected, {right} of the right words changed")


if __name__ == "__main__":
    main()
