"""Writes texts that lie in folders, one folder a class, as TSV with `text` and `label`, for `bertram reproduce`.

python examples/class_folders.py ohsumed_single_23/training data/ohsumed-training.tsv
python examples/class_folders.py ohsumed_single_23/test data/ohsumed-test.tsv
"""

import argparse
from pathlib import Path


def main() -> None:
    """Writes a line for each text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder with a folder of text files for each class")
    parser.add_argument("output", help="TSV file to write")
    arguments = parser.parse_args()
    paths = sorted(path for path in Path(arguments.folder).glob("*/*") if path.is_file())
    if not paths:
        raise SystemExit(f"{arguments.folder}: expected folders with text files; there are none.")
    with Path(arguments.output).open("w", encoding="utf-8") as file:
        file.write("text\tlabel\n")
        for path in paths:
            file.write(f"{' '.join(path.read_text(encoding='utf-8', errors='replace').split())}\t{path.parent.name}\n")
    print(f"Wrote {len(paths):,} texts to {arguments.output}.")


if __name__ == "__main__":
    main()
