"""`bertram reproduce`."""

import argparse
import contextlib
import logging
import shlex
import sys
from typing import Any

from ..utils.files import refuse_missing_folder
from ..utils.imports import needs_extra
from .options import add_changes_option, read_changes


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "reproduce",
        help="run the paper's evaluation by a recipe",
        description="Trains the systems of an evaluation recipe, once for each seed, evaluates them and writes JSON, "
        "tables (Markdown) and figures (PNG). Interrupted runs resume with the same command.",
        epilog='Example: bertram reproduce recipe.yaml --only similarity --system "BERTRAM-add" --seed 0',
    )
    command.add_argument("recipe", metavar="RECIPE", help="YAML file; see examples/recipes")
    command.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TASK",
        help="a task (recovery, misspellings, similarity, definitions, terms, wnlampro, rarified, natural) or one set: "
        "its name in the recipe, with 'natural ' before it if it is not rarified; may be given more often",
    )
    command.add_argument(
        "--system",
        action="append",
        default=[],
        metavar="NAME",
        help="compute this system of the recipe only; may be given more often. Tables and figures show all results of "
        "the recipe that are there",
    )
    command.add_argument(
        "--seed",
        action="append",
        default=[],
        type=int,
        metavar="SEED",
        help="compute this seed only; may be given more often",
    )
    add_changes_option(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Evaluates by a recipe."""
    with needs_extra("evaluation", "Evaluation"):
        from ..reproduction.recipe import EvaluationRecipe
        from ..reproduction.runner import Reproduction
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    recipe = EvaluationRecipe.load(arguments.recipe, read_changes(arguments.set))
    refuse_missing_folder(recipe.encoder)
    changes = [part for change in arguments.set for part in ("--set", change)]
    with contextlib.redirect_stdout(sys.stderr):  # the Trainer prints its log, which is not the result
        Reproduction(
            recipe,
            systems=arguments.system,
            seeds=arguments.seed,
            command=shlex.join(["bertram", "reproduce", arguments.recipe, *changes]),
        ).run(arguments.only)
    print(f"Results: {recipe.output}")
