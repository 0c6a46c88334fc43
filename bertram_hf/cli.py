"""The `bertram` program."""

import argparse
import sys

from .commands import (
    approximate,
    card,
    convert_original,
    corpus,
    induce,
    masked_lm,
    push,
    rarify,
    reproduce,
    train,
    wnlampro,
)
from .version import __version__

COMMANDS = (induce, corpus, approximate, train, rarify, masked_lm, wnlampro, reproduce, convert_original, card, push)


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="bertram", description="Vectors for words that a BERT-family model does not know."
    )
    parser.add_argument("--version", action="version", version=f"bertram-hf {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_command(commands)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs the command line. Returns 0, or 1 after an error that is the input's."""
    arguments = build_parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except (OSError, ValueError, TypeError) as error:
        print(f"bertram: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
