"""`bertram app`."""

import argparse
from typing import Any

from ..utils.imports import needs_extra
from .options import loading


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "app",
        help="try words in a browser",
        description="Serves a page: type a word with sentences or a definition, see its vector's neighbours, which "
        "sentence mattered and what it may be a misspelling of, and search texts with the word and without.",
        epilog="Example: bertram app --encoder sentence-transformers/all-MiniLM-L6-v2",
    )
    command.add_argument("--encoder", required=True, metavar="NAME", help="folder or Hub name of a sentence encoder")
    command.add_argument("--bertram", metavar="NAME", help="BERTRAM model (default: the one on this machine that fits)")
    command.add_argument("--model", metavar="NAME", help="masked language model or classifier to ask, too")
    command.add_argument("--host", default="127.0.0.1", help="address to listen at (default: this machine only)")
    command.add_argument("--port", type=int, default=7860, help="default: 7860")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Serves the page until it is interrupted."""
    with needs_extra("app", "The page"):
        from ..app.page import build_page, launch_page
    from ..app.playground import Playground

    with loading(arguments.encoder, arguments.bertram, arguments.model):
        playground = Playground.load(arguments.encoder, arguments.bertram, arguments.model)
    launch_page(build_page(playground), server_name=arguments.host, server_port=arguments.port)
