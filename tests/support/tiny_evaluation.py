"""A small evaluation recipe with all that it reads."""

import json

import yaml
from support.tiny_training import HELDOUT, make_sentences, write_encoder, write_recipe

PAIRS = "river\tkumquat\t7.0\nforest\tQuokka\t2.5\nlake\tzebra\t4.0\nvalley\tkumquat\t6.0\ntown\tquokka\t1.0\n"
SYSTEMS = [
    {"name": "mean of pieces", "model": "pieces"},
    {"name": "Mimick", "model": "mimick"},
    {"name": "A La Carte", "model": "a-la-carte"},
    {"name": "BERTRAM-shallow", "model": "bertram-shallow"},
    {"name": "BERTRAM-shallow, slash", "model": "bertram-shallow", "mode": "slash"},
]


def write_evaluation(folder):
    """Writes an evaluation recipe with a small corpus, a training recipe and rated pairs; returns its path."""
    encoder = write_encoder(folder / "encoder")
    training = write_recipe(folder, encoder)
    sentences = [*make_sentences(), *(f"the old {word} near the river" for word in HELDOUT)]
    (folder / "contexts.txt").write_text("\n".join(sentences) + "\n")
    (folder / "pairs.txt").write_text(PAIRS)
    corpus = {"inputs": [str(folder / "contexts.txt")], "max_contexts": 8}
    content = {
        "encoder": str(encoder),
        "output": str(folder / "results"),
        "work": str(folder / "work"),
        "training": str(training),
        "seeds": [0, 1],
        "systems": SYSTEMS,
        "recovery": {
            "words": str(folder / "heldout.txt"),
            "corpus": corpus,
            "num_contexts": [0, 1, 4],
            "num_draws": 2,
        },
        "similarity": {"pairs": str(folder / "pairs.txt"), "corpus": corpus, "num_contexts": [1, 4], "num_draws": 2},
    }
    path = folder / "evaluation.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def read_rows(folder):
    return {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def change_evaluation(path, target, fields):
    """Writes a recipe with other fields to a new file and returns its path."""
    target.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | fields))
    return target
