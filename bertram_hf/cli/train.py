"""`bertram train`."""

import argparse
import contextlib
import json
import logging
import sys
from typing import Any

from ..utils.files import read_json, refuse_missing_folder
from ..utils.imports import needs_extra
from ..utils.names import TRAINING_NAME
from .options import add_changes_option, read_changes


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "train",
        help="train BERTRAM models by a recipe",
        description="Builds corpus and targets and trains the context part, the form part and each system, as the "
        "recipe says. Interrupted runs resume with the same command. Several processes: "
        "torchrun --nproc_per_node 2 -m bertram_hf.cli train recipe.yaml",
        epilog="Example: bertram train recipe.yaml --set seed=1 --set output=run-1",
    )
    command.add_argument("recipe", metavar="RECIPE", help="YAML file; see examples/recipes")
    add_changes_option(command)
    command.add_argument("--json", action="store_true", help="print a summary for scripts, and no progress bars")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Trains by a recipe."""
    with needs_extra("train", "Training"):
        from accelerate import PartialState

        from ..training.recipe import Recipe
        from ..training.run import train_recipe
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    recipe = Recipe.load(arguments.recipe, read_changes(arguments.set))
    refuse_missing_folder(recipe.encoder)
    changes = "".join(f" --set {change}" for change in arguments.set)
    command = f"bertram train {arguments.recipe}{changes}"
    with contextlib.redirect_stdout(sys.stderr):  # the Trainer prints its log, which is not the result
        folders = train_recipe(recipe, command=command, show_progress=not arguments.json)
    if not PartialState().is_main_process:
        return
    records = {name: read_json(folder / TRAINING_NAME) for name, folder in folders.items()}
    scores = {name: record["evaluation"]["scores"] for name, record in records.items()}
    if arguments.json:
        print(json.dumps({name: {"folder": str(folders[name]), "scores": scores[name]} for name in folders}))
        return
    for name, folder in folders.items():
        print(f"Trained {name}: {folder}")
        for score in scores[name]:
            print("  " + ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in score.items()))
