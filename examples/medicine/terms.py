"""UMNSRS with the words of an adapted model: do embeddings of medical terms agree better with physicians?

    python examples/medicine/terms.py data/umnsrs.txt --model all-MiniLM-L6-v2 --adapted my-medicine \
        --output results/medicine/terms.json

Spearman's correlation between ratings and cosines; gains over the plain model with 95% intervals by paired bootstrap
over the pairs, all and those with a term that holds an injected word.
"""

import argparse
import json
from pathlib import Path

from sentence_transformers import SentenceTransformer
from systems import read_systems

from bertram_hf.adaptation.documents import index_words
from bertram_hf.evaluation import SentenceEmbedder, TermSimilarity, read_rated_terms


def main() -> None:
    """Compares and writes the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", help="two terms and a rating on each line, with tabs between")
    parser.add_argument("--model", required=True)
    parser.add_argument("--adapted", required=True, metavar="FOLDER", help="what `bertram adapt` wrote")
    parser.add_argument("--output", required=True, help="JSON file")
    arguments = parser.parse_args()
    plain = SentenceTransformer(arguments.model, device="cpu")
    systems = read_systems(arguments.adapted, plain)
    own, _ = systems["bertram-pieces, auto"]
    assert own is not None
    index = index_words(own.words, ignore_case=True)
    pairs = read_rated_terms(arguments.pairs)
    touched = [pair for pair in pairs if index.find(pair.first) or index.find(pair.second)]
    embedder = SentenceEmbedder(plain[0].model, plain[0].tokenizer)
    rows = []
    for part, kept in (("all", pairs), ("with an injected word", touched)):
        similarity = TermSimilarity(embedder, kept)
        for name, system in systems.items():
            score = similarity.score(similarity.compare(*system)[None], contexts=0).to_dict()
            del score["contexts"]  # as many as `bertram adapt` took
            rows.append({"system": name, "pairs": part} | score)
            print(json.dumps(rows[-1]), flush=True)
    Path(arguments.output).write_text(json.dumps(vars(arguments) | {"rows": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
