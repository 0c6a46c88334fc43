"""Search with misspelt queries: one typing error in one word of each, read as it is and with `UnknownWords`.

    python examples/medicine/misspelt_queries.py data/pubmed.jsonl --title-column title \
        --model all-MiniLM-L6-v2 --other data/medquad.jsonl --output results/medicine/misspelt-pubmed.json

The words of all texts are known, as those of a collection that is searched. Beside the scores the result tells in how
many clean queries a word was changed, and how many right but rare words of other texts, which are not known, would be.
"""

import argparse
import json
import random
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoProcessor

from bertram_hf import find_checkpoint
from bertram_hf.adaptation.documents import draw_pairs
from bertram_hf.corpus.inputs import list_slices
from bertram_hf.evaluation.statistics import bootstrap_interval
from bertram_hf.injection import UnknownWords, inject_sentence_transformer
from bertram_hf.words import split_words

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORD = re.compile(r"[A-Za-z]{4,}")


def mistype(word: str, draw: random.Random) -> str:
    """Returns a word with one typing error: a letter wrong, missing, twice or too much, or two in the wrong order."""
    mistyped = word
    while mistyped == word:
        place, letter = draw.randrange(len(word)), draw.choice(LETTERS)
        before, own, after = word[:place], word[place], word[place + 1 :]
        mistyped = draw.choice(
            [
                before + letter + after,
                before + after,
                before + own + own + after,
                before + letter + own + after,
                before + after[:1] + own + after[1:],
            ]
        )
    return mistyped


def mistype_one_word(query: str, draw: random.Random) -> str:
    """Returns a query with a typing error in one of its words; as it is if it has none of four letters."""
    words = list(WORD.finditer(query))
    if not words:
        return query
    word = draw.choice(words)
    return query[: word.start()] + mistype(word.group().lower(), draw) + query[word.end() :]


def ndcg(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Returns nDCG@10 of queries (Q, H), each with one right document of (Q, H)."""
    similarities = queries @ documents.T
    ranks = 1 + (similarities > similarities.diagonal()[:, None]).sum(axis=1)
    return np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0.0)


def count_words(path: str) -> Counter[str]:
    """Returns how often the words of a file of JSON lines occur."""
    counts: Counter[str] = Counter()
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        for text in json.loads(line).values():
            counts.update(word.lower() for word in split_words(str(text)) if word.isalpha())
    return counts


def main() -> None:
    """Mistypes, searches and writes the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", help="JSON lines with a text and a title or question each")
    parser.add_argument("--title-column", default="title")
    parser.add_argument("--model", required=True)
    parser.add_argument("--other", required=True, help="JSON lines whose rare words are not to be changed")
    parser.add_argument("--output", required=True, help="JSON file")
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    pairs = draw_pairs(
        list_slices(arguments.texts),
        number=arguments.documents,
        title_column=arguments.title_column,
        seed=arguments.seed,
    )
    clean = [pair.query for pair in pairs]
    mistyped = [mistype_one_word(query, draw) for query in clean]
    plain = SentenceTransformer(arguments.model, device="cpu")
    folder = find_checkpoint("all-MiniLM-L6-v2")
    bertram = AutoModel.from_pretrained(folder, encoder=plain[0].model).eval()
    counts, other = count_words(arguments.texts), count_words(arguments.other)
    unknown = UnknownWords(bertram, AutoProcessor.from_pretrained(folder), known=counts, max_per_text=100)
    injected = inject_sentence_transformer(plain, {}, induce_unknown=unknown)
    settings: dict[str, Any] = {"normalize_embeddings": True, "show_progress_bar": False}
    documents = plain.encode([pair.document for pair in pairs], **settings)
    scores, seconds = {}, {}
    for name, model, queries in (
        ("clean", plain, clean),
        ("clean, UnknownWords", injected, clean),
        ("misspelt", plain, mistyped),
        ("misspelt, UnknownWords", injected, mistyped),
    ):
        start = time.process_time()
        scores[name] = ndcg(model.encode(queries, **settings), documents)
        seconds[name] = time.process_time() - start
    lost = scores["clean"] - scores["misspelt"]
    won = scores["misspelt, UnknownWords"] - scores["misspelt"]
    low, high = bootstrap_interval(len(lost), lambda items: won[items].sum() / lost[items].sum())
    rare = [word for word, count in other.items() if 2 <= count <= 20 and word not in counts and len(word) >= 4]
    draw.shuffle(rare)
    rare = rare[:10_000]
    changed, _ = unknown.read([" ".join(rare[start : start + 100]) for start in range(0, len(rare), 100)])
    content = {name: value for name, value in vars(arguments).items() if name != "output"} | {
        "ndcg@10": {name: round(float(found.mean()), 4) for name, found in scores.items()},
        "won_back": [round(float(value), 3) for value in (won.sum() / lost.sum(), low, high)],
        "num_queries": len(clean),
        "num_clean_queries_changed": int((scores["clean"] != scores["clean, UnknownWords"]).sum()),
        "rare_words_of_other_texts": {"number": len(rare), "changed": len(changed)},
        "processor_seconds_of_queries": {name: round(value, 2) for name, value in seconds.items()},
    }
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments.output).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(content, indent=2))


if __name__ == "__main__":
    main()
