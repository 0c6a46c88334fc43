"""`bertram convert-original`."""

import argparse
import json
from typing import Any

from .options import loading


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "convert-original",
        help="convert a checkpoint of the released code",
        description="Converts a checkpoint of timoschick/bertram. Nothing in it is unpickled or run.",
        epilog="Example: bertram convert-original bertram-add-for-bert-base-uncased my-bertram",
    )
    command.add_argument("source", metavar="SRC", help="folder with pytorch_model.bin and the JSON files")
    command.add_argument("destination", metavar="DST", help="folder to write")
    command.add_argument("--tokenizer", help="folder or name of the encoder's tokenizer, if it is not found by itself")
    command.add_argument("--json", action="store_true", help="print a summary for scripts")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Converts a released checkpoint and says what is special about it."""
    from ..conversion import convert_original

    with loading(arguments.tokenizer):
        converted = convert_original(arguments.source, tokenizer=arguments.tokenizer)
    converted.model.save_pretrained(arguments.destination)
    converted.processor.save_pretrained(arguments.destination)
    if arguments.json:
        summary = {
            "destination": arguments.destination,
            "mode": converted.model.config.mode,
            "prefix": converted.processor.prefix,
            "notes": converted.notes,
        }
        print(json.dumps(summary))
        return
    print(f"Wrote a BERTRAM of mode {converted.model.config.mode!r} to {arguments.destination}.")
    for note in converted.notes:
        print(f"Note: {note}")
