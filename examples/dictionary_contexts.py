"""Definitions as contexts: writes a dictionary in dictd's format as text, one sense a line.

GCIDE, for example, is Debian's package dict-gcide:
    python examples/dictionary_contexts.py /usr/share/dictd/gcide definitions.txt
    bertram corpus definitions.txt corpus --words my-words.txt --lower-case
A file that ends in .jsonl gets a line for each word, with "word" and "definitions", as `bertram induce` takes it.
"""

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
PRONUNCIATION, BRACKETS, PARENTHESES = re.compile(r"\\[^\\]*\\"), re.compile(r"\[[^\[\]]*\]"), re.compile(r"\([^()]*\)")
GRAMMAR = re.compile(r"^(?:\s*(?:or|pl|n|a|v|adv|prep|conj|interj|t|i|imp|p|pr|vb|superl|compar)\b[.,;&]*)+")
SENSE = re.compile(r"(?:^|\s)\d+\.\s")
WORDNET, FROM_WORDNET = re.compile(r"\[WordNet[^\]]*\]?|WordNet 1\.5\]?"), "\0"
SYNONYMS = re.compile(r"\bSyn\b[.:].*")
AUTHOR = re.compile(r"--\s*[A-Z][\w.&' ]{0,30}\.?(?=\s|$)")
MIN_WORDS, MAX_WORDS = 2, 40


def read_number(text: str) -> int:
    """Reads a number to base 64, as the index has them."""
    number = 0
    for digit in text:
        number = 64 * number + DIGITS.index(digit)
    return number


def read_entries(name: str) -> Iterator[tuple[str, str]]:
    """Yields each headword with its entry."""
    with gzip.open(f"{name}.dict.dz") as file:
        content = file.read()
    for line in Path(f"{name}.index").read_text(encoding="utf-8").splitlines():
        headword, start, length = line.split("\t")[:3]
        if headword.isalpha():
            first = read_number(start)
            entry = content[first : first + read_number(length)].decode("utf-8", "replace")
            if entry.lower().startswith(headword.lower()):  # the index also has words that an entry mentions
                yield headword.lower(), entry


def read_senses(headword: str, entry: str) -> Iterator[str]:
    """Yields "headword: definition" for each sense of an entry.

    Left out are quotations of other writers, lists of synonyms, and senses that GCIDE has from WordNet: rarified sets
    and probes are made of WordNet's synonyms, and must not be answered from there.
    """
    paragraphs = re.split(r"\n\s*\n", entry)
    lines = [part for part in paragraphs if not re.match(r"\s{8,}", part)]  # quotations are indented further
    text = WORDNET.sub(FROM_WORDNET, PRONUNCIATION.sub(" ", " ".join(" ".join(lines).split())))
    text = AUTHOR.sub(" ", text)  # before the brackets, which end it
    for _ in range(3):  # brackets stand in brackets
        text = BRACKETS.sub(" ", PARENTHESES.sub(" ", text))
    text = re.sub(r"[{}]", "", text)
    text = re.sub(rf"^\s*(?:{re.escape(headword)}\W*)+", "", text, flags=re.IGNORECASE)
    for sense in SENSE.split(text):
        words = GRAMMAR.sub("", SYNONYMS.sub("", sense)).lstrip(" .,;:&").split()
        if FROM_WORDNET not in sense and len(words) >= MIN_WORDS:
            yield f"{headword}: {' '.join(words[:MAX_WORDS])}"


def main() -> None:
    """Writes all senses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dictionary", help="path of the dictionary without .index and .dict.dz")
    parser.add_argument("output", help="text or JSON-lines file to write")
    arguments = parser.parse_args()
    senses = dict.fromkeys(
        sense for headword, entry in read_entries(arguments.dictionary) for sense in read_senses(headword, entry)
    )
    lines = list(senses)
    if arguments.output.endswith(".jsonl"):
        definitions: dict[str, list[str]] = {}
        for sense in senses:
            word, definition = sense.split(": ", 1)
            definitions.setdefault(word, []).append(definition)
        lines = [json.dumps({"word": word, "definitions": texts}) for word, texts in definitions.items()]
    Path(arguments.output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(senses):,} senses: {arguments.output}")


if __name__ == "__main__":
    main()
