"""Search in texts of a domain: titles find their texts, or questions their answers, by systems that know the words.

    python examples/medicine/search.py data/pubmed.jsonl --title-column title \
        --model all-MiniLM-L6-v2 --output results/medicine/pubmed.json

Some texts are held out to be searched; all systems learn from the others alone. Each row of the result has the mean
reciprocal rank and nDCG@10 of all queries, of those with an injected word and of those without; of those with one also
where texts do not repeat it, and where it has a typing error. Differences to the plain model come with 95% intervals by
paired bootstrap over the queries.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from baselines import train_tokens, train_tsdae
from misspelt_queries import mistype
from sentence_transformers import SentenceTransformer
from systems import new_tokens

from bertram_hf import adapt
from bertram_hf.adaptation.documents import SearchPair, draw_pairs
from bertram_hf.adaptation.embedders import SentenceTransformerEmbedder
from bertram_hf.adaptation.retrieval import Retrieval, Trials
from bertram_hf.corpus.inputs import list_slices
from bertram_hf.evaluation.statistics import bootstrap_interval
from bertram_hf.induction import mean_piece_vectors
from bertram_hf.words.splitting import replace_word


def mistype_queries(pairs: Sequence[SearchPair], words: Sequence[Sequence[str]], seed: int) -> list[str]:
    """Returns the queries, each with a typing error in one of its words."""
    draw = random.Random(seed)
    queries = [pair.query for pair in pairs]
    for row, own in enumerate(words):
        if own:
            word = draw.choice(list(own))
            queries[row] = replace_word(queries[row], word, mistype(word, draw))
    return queries


def ndcg(reciprocal_ranks: np.ndarray) -> np.ndarray:
    """Returns nDCG@10 of queries with one right document."""
    ranks = 1 / reciprocal_ranks
    return np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0.0)


def summarize(plain: np.ndarray, found: np.ndarray) -> dict[str, Any]:
    """Returns the scores of some queries, and the gain over the plain model."""
    known = ~np.isnan(plain)
    plain, found = plain[known], found[known]
    gains = found - plain
    low, high = bootstrap_interval(len(gains), lambda items: gains[items].mean())
    scores = {"mrr": found.mean(), "ndcg@10": ndcg(found).mean(), "gain": gains.mean(), "low": low, "high": high}
    return {name: round(float(value), 4) for name, value in scores.items()} | {"num_queries": int(known.sum())}


class Comparison:
    """The scores of systems on the same queries.

    Args:
        model: The plain model.
        pairs: The held-out texts with their queries.
        words: The injected words.
        seed: Of the typing errors.
    """

    def __init__(self, model: SentenceTransformer, pairs: list[SearchPair], words: list[str], seed: int) -> None:
        self.pairs, self.words = pairs, words
        self.retrieval = self._make(model)
        self.trials = Trials(self.retrieval, words, ignore_case=True)
        own = self.retrieval.find_words(words, ignore_case=True)
        self.has_word = np.array([bool(found) for found in own])
        self.mistyped = mistype_queries(pairs, own, seed)
        self.plain = self._rank(self.retrieval, self.trials)
        self.rows: list[dict[str, Any]] = []

    def _make(self, model: SentenceTransformer) -> Retrieval:
        return Retrieval(SentenceTransformerEmbedder(model, dtype=torch.bfloat16, show_progress=False), self.pairs)

    def _rank(self, retrieval: Retrieval, trials: Trials, *given: Any) -> dict[str, np.ndarray]:
        ranks = retrieval.rank(*given)
        return {
            "all": ranks,
            "with_word": ranks[self.has_word],
            "without_word": ranks[~self.has_word],
            "not_repeated": trials.rank(*given)[1],
            "mistyped": retrieval.rank(*given, queries=self.mistyped)[self.has_word],
        }

    def add(self, name: str, seconds: float, *given: Any, model: SentenceTransformer | None = None) -> None:
        """Adds the row of vectors and a mode, or of another model."""
        retrieval = self._make(model) if model is not None else self.retrieval
        trials = Trials(retrieval, self.words, ignore_case=True) if model is not None else self.trials
        found = self._rank(retrieval, trials, *given)
        row = {"system": name, "processor_seconds": round(seconds, 1)}
        self.rows.append(row | {part: summarize(self.plain[part], ranks) for part, ranks in found.items()})
        print(json.dumps(self.rows[-1]), flush=True)


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """Returns what a function makes, and the processor seconds that it takes."""
    start = time.process_time()
    made = make()
    return made, time.process_time() - start


def main() -> None:
    """Learns, searches and writes the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", help="JSON lines with a text and a title or question each")
    parser.add_argument("--title-column", default="title")
    parser.add_argument("--model", required=True)
    parser.add_argument("--output", required=True, help="JSON file")
    parser.add_argument("--heldout", type=int, default=5_000, help="texts to be searched (default: 5000)")
    parser.add_argument("--max-words", type=int, default=20_000)
    parser.add_argument("--max-contexts", type=int, default=8)
    parser.add_argument("--tsdae", type=float, default=10, help="times our processor time (default: 10)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    lines = Path(arguments.texts).read_text(encoding="utf-8").splitlines()
    random.Random(arguments.seed).shuffle(lines)
    model = SentenceTransformer(arguments.model, device="cpu")
    columns = {"title_column": arguments.title_column}
    with TemporaryDirectory() as folder:
        held, others = Path(folder) / "held.jsonl", Path(folder) / "others.jsonl"
        held.write_text("\n".join(lines[: arguments.heldout]) + "\n", encoding="utf-8")
        others.write_text("\n".join(lines[arguments.heldout :]) + "\n", encoding="utf-8")
        pairs = draw_pairs(list_slices(str(held)), number=arguments.heldout, **columns)
        own, seconds = timed(
            lambda: adapt(
                others,
                model,
                Path(folder) / "adapted",
                max_words=arguments.max_words,
                max_contexts=arguments.max_contexts,
                num_documents=2,  # judged here, not there
                device="cpu",
                seed=arguments.seed,
                **columns,
            )
        )
        learnt = draw_pairs(list_slices(str(others)), number=len(lines), **columns)
    vectors = own.vectors
    comparison = Comparison(model, pairs, vectors.words, arguments.seed)
    comparison.add("plain", 0.0)
    for mode in ("auto", "slash", "replace"):
        comparison.add(f"bertram-pieces, {mode}", seconds, vectors, mode)
    encoder, tokenizer = model[0].model, model[0].tokenizer
    pieces, piece_seconds = timed(lambda: mean_piece_vectors(encoder, tokenizer, vectors.words))
    comparison.add("mean of pieces, replace", piece_seconds, pieces, "replace")
    comparison.add("mean of pieces, slash", piece_seconds, pieces, "slash")
    comparison.add("new tokens, untrained", 0.0, new_tokens(encoder, vectors), "replace")
    texts = [(pair.query, pair.document) for pair in learnt]
    trained, taken = timed(
        lambda: train_tokens(arguments.model, vectors.words, texts, seconds=seconds, seed=arguments.seed)
    )
    comparison.add("new tokens, trained", taken, model=trained)
    if arguments.tsdae:
        whole = [f"{query} {document}" for query, document in texts]
        limit = arguments.tsdae * seconds
        trained, taken = timed(lambda: train_tsdae(arguments.model, whole, seconds=limit, seed=arguments.seed))
        comparison.add("TSDAE", taken, model=trained)
    content = vars(arguments) | {"num_words": len(vectors), "num_documents": len(pairs), "rows": comparison.rows}
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments.output).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
