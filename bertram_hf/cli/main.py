"""The `bertram` program."""

import argparse
import sys

from safetensors import SafetensorError

from ..utils.imports import EXTRAS
from ..version import __version__
from . import (
    adapt,
    app,
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

INTERRUPTED = 130  # what a shell returns for a program that Ctrl-C has ended
COMMANDS = (
    adapt,
    app,
    induce,
    corpus,
    approximate,
    train,
    rarify,
    masked_lm,
    wnlampro,
    reproduce,
    convert_original,
    card,
    push,
)


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
    """Runs the command line. Returns 0; 1 after an error of the input or the machine; 130 after an interrupt.

    Example:
        >>> main(["induce", "./no-such-folder", "words.txt", "my-words"])
        1
    """
    arguments = build_parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except KeyboardInterrupt:
        print("bertram: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (OSError, ValueError, TypeError) as error:
        return _fail(str(error))
    except SafetensorError as error:
        return _fail(
            f"Could not read or write a .safetensors file: {error}. If the disk is full, make room; if the file is "
            "damaged, delete it and get or write it anew."
        )
    except ImportError as error:
        if error.name is None:  # raised by this package or another, with a message for people
            return _fail(str(error))
        package = error.name.partition(".")[0]
        if not isinstance(error, ModuleNotFoundError) or package == "bertram_hf":
            raise
        target = f'"bertram-hf[{EXTRAS[package]}]"' if package in EXTRAS else package
        return _fail(f"This needs {package}, which is missing. Run: pip install {target}")
    return 0


def _fail(message: str) -> int:
    print(f"bertram: error: {message}", file=sys.stderr)
    return 1
