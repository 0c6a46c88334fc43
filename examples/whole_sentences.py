"""Whole sentences of SST-2, whose training set holds their phrases too: texts that are no part of a longer one.

    python examples/whole_sentences.py train.tsv validation.tsv --output data/sst2.tsv

The files have the columns `sentence` and `label` of the published ones, compressed or not. In evaluations that count
each text, such as a rarified test set, a sentence and its phrases must not stand beside each other.
"""

import argparse
import csv

from datasets import load_dataset

LABELS = ("negative", "positive")


def keep_whole(texts: list[str]) -> list[int]:
    """Returns the indices of texts that are no part, from word to word, of a longer text or an equal one."""
    parts: set[int] = set()  # hashes of all parts of the longer texts
    kept = []
    for index in sorted(range(len(texts)), key=lambda index: -len(texts[index].split())):
        words = texts[index].split()
        if hash(tuple(words)) in parts:
            continue
        kept.append(index)
        parts.update(
            hash(tuple(words[start:end])) for start in range(len(words)) for end in range(start + 1, len(words) + 1)
        )
    return sorted(kept)


def main() -> None:
    """Writes the whole sentences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--output", required=True, metavar="FILE")
    arguments = parser.parse_args()
    rows = load_dataset(
        "csv", data_files=arguments.files, split="train", delimiter="\t", quoting=csv.QUOTE_NONE
    ).to_dict()
    texts = [text.strip() for text in rows["sentence"]]
    kept = keep_whole(texts)
    with open(arguments.output, "w", encoding="utf-8", newline="\n") as output:
        output.write("text\tlabel\n")
        output.writelines(f"{texts[index]}\t{LABELS[rows['label'][index]]}\n" for index in kept)
    print(f"{len(kept):,} of {len(texts):,} texts are whole sentences; written to {arguments.output}.")


if __name__ == "__main__":
    main()
