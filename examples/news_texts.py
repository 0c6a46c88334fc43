"""AG's News as texts with their topics, for `bertram rarify` and `bertram reproduce`.

    python examples/news_texts.py test.csv train.tsv --output data/ag_news.tsv

Files are those that were published, compressed or not: CSV without a header, with class number, title and text, which
become "title . text"; or TSV of text and topic. Backslashes, which stand for line breaks, become spaces.
"""

import argparse
import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

TOPICS = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}


def read_news(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the texts of a file with their topics."""
    is_table = ".tsv" in path.suffixes
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if is_table else csv.reader(lines):
            if len(row) != (2 if is_table else 3) or not (is_table or row[0] in TOPICS):
                columns = "text and topic" if is_table else "class number (1 to 4), title and text"
                raise SystemExit(f"{path}: expected {columns} on each line; got {row}.")
            text, topic = row if is_table else (f"{row[1]} . {row[2]}", TOPICS[row[0]])
            yield " ".join(text.replace("\\", " ").split()), topic


def main() -> None:
    """Writes the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--output", required=True, metavar="FILE")
    arguments = parser.parse_args()
    rows = [row for path in arguments.files for row in read_news(path)]
    with open(arguments.output, "w", encoding="utf-8", newline="\n") as output:
        output.write("text\tlabel\n")
        output.writelines(f"{text}\t{topic}\n" for text, topic in rows)
    print(f"Wrote {len(rows):,} texts to {arguments.output}.")


if __name__ == "__main__":
    main()
