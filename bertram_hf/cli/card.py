"""`bertram card`."""

import argparse
import json
from typing import Any


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "card",
        help="write a model card for a saved folder",
        description="Writes README.md, a Hugging Face model card, for a BERTRAM model, word vectors, an injected "
        "model or a masked language model of `bertram masked-lm`. The card is generated from the saved files; no "
        "weights are loaded.",
        epilog="Example: bertram card my-bertram --name user/my-bertram --license apache-2.0 --language en",
    )
    command.add_argument("folder", metavar="FOLDER", help="folder that save_pretrained or a bertram command wrote")
    command.add_argument("--name", help="name on the Hub, for the examples; by default the folder's")
    command.add_argument("--license", help="such as apache-2.0; left out by default")
    command.add_argument("--language", nargs="+", default=[], help="codes such as en; left out by default")
    command.add_argument("--dataset", nargs="+", default=[], help="training data's names on the Hub")
    command.add_argument("--base-model", help="the encoder's name on the Hub, if the folder does not name it")
    command.add_argument(
        "--code",
        action="store_true",
        help="also add bertram_hf's code files, or replace old ones, so that trust_remote_code=True loads the model",
    )
    command.add_argument("--force", action="store_true", help="overwrite README.md")
    command.add_argument("--json", action="store_true", help="print a summary for scripts")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Writes a model card."""
    from ..cards.card import write_card
    from ..cards.remote_code import add_remote_code

    if arguments.code:
        add_remote_code(arguments.folder)
    path = write_card(
        arguments.folder,
        name=arguments.name,
        license=arguments.license,
        language=arguments.language,
        datasets=arguments.dataset,
        base_model=arguments.base_model,
        overwrite=arguments.force,
    )
    print(json.dumps({"card": str(path)}) if arguments.json else f"Wrote {path}")
