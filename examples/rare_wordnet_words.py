"""Writes the words of a dictionary that occur less than 10 times in some texts, one on each line.

python examples/rare_wordnet_words.py wordnet.jsonl rare-words.txt crw-dev/context novels dictionary
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from bertram_hf.words import split_words

MAX_COUNT = 10


def main() -> None:
    """Counts words in lower case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("definitions", help="JSON lines with `word`, of examples/wordnet_definitions.py")
    parser.add_argument("output", help="file to write")
    parser.add_argument("folders", nargs="+", help="folders of text files")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    for path in (path for folder in arguments.folders for path in sorted(Path(folder).iterdir())):
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                counts.update(split_words(line.lower()))
    with Path(arguments.definitions).open(encoding="utf-8") as file:
        words = sorted({json.loads(line)["word"] for line in file})
    rare = [word for word in words if counts[word] < MAX_COUNT]
    Path(arguments.output).write_text("".join(f"{word}\n" for word in rare), encoding="utf-8")
    print(f"{len(rare):,} of {len(words):,} words are rare: {arguments.output}")


if __name__ == "__main__":
    main()
