"""A small evaluation recipe with all that it reads."""

import yaml
from support.tiny_training import HELDOUT, make_sentences, write_encoder, write_recipe

from bertram_hf.reproduction.rows import file_name, read_jsonl
from bertram_hf.reproduction.runner import MARK

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


def read_rows(path):
    """Reads published rows, by system and seed."""
    return {f"{file_name(row['system'])}-seed-{row['seed']}": row for row in read_jsonl(path)}


def read_section(results, task):
    """Reads the part of a README that is about one task."""
    found = MARK.split((results / "README.md").read_text())
    return found[found.index(task) + 1]


def change_evaluation(path, target, fields):
    """Writes a recipe with other fields to a new file and returns its path."""
    target.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | fields))
    return target
