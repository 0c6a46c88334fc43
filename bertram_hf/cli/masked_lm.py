"""`bertram masked-lm`."""

import argparse
import contextlib
import json
import logging
import shlex
import sys
from dataclasses import asdict
from typing import Any

from ..utils.files import read_word_file, refuse_missing_folder
from ..utils.imports import needs_extra
from .options import check_device


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "masked-lm",
        help="train a masked-LM head for an encoder that has none",
        description="Trains a masked-LM head, and the encoder's layers with it, on text; the input embeddings stay as "
        "they are, so that vectors induced for the encoder fit the result. Interrupted runs resume with the same "
        "command.",
        epilog="Example: bertram masked-lm my-encoder --text novels/*.txt --output my-masked-lm --max-steps 1000",
    )
    command.add_argument("encoder", metavar="ENCODER", help="folder or Hub name of an encoder with its tokenizer")
    command.add_argument(
        "--text", nargs="+", required=True, metavar="FILE", help="text files, or quoted patterns; each line is a text"
    )
    command.add_argument("--output", required=True, metavar="FOLDER", help="folder to write")
    command.add_argument("--max-steps", type=int, default=1000, metavar="N", help="steps (default: 1000)")
    command.add_argument("--batch-size", type=int, default=32, metavar="N", help="texts in a step (default: 32)")
    command.add_argument("--learning-rate", type=float, default=5e-4, metavar="X", help="default: 0.0005")
    command.add_argument("--max-length", type=int, default=64, metavar="N", help="tokens of a text (default: 64)")
    command.add_argument(
        "--num-heldout", type=int, default=1000, metavar="N", help="texts kept for the scores (default: 1000)"
    )
    command.add_argument(
        "--heldout-words", metavar="FILE", help="words that are never masked, one on each line; nor are their families"
    )
    command.add_argument("--save-steps", type=int, default=200, metavar="N", help="between checkpoints (default: 200)")
    command.add_argument("--seed", type=int, default=0, help="default: 0")
    command.add_argument("--device", help="cpu, to train there although there is a GPU")
    command.add_argument("--json", action="store_true", help="print a summary for scripts, and no progress bars")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Trains a masked-LM head."""
    with needs_extra("train", "Training"):
        from accelerate import PartialState  # noqa: F401 (the Trainer needs it)
        from datasets import disable_progress_bars, load_dataset

        from ..masked_lm.train import train_masked_lm_head
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if arguments.json:
        disable_progress_bars()
    settings = ("max_steps", "batch_size", "learning_rate", "max_length", "num_heldout", "seed")
    options = [part for name in settings for part in ("--" + name.replace("_", "-"), str(getattr(arguments, name)))]
    if arguments.heldout_words:
        options += ["--heldout-words", arguments.heldout_words]
    command = ["bertram", "masked-lm", arguments.encoder, "--text", *arguments.text, "--output", arguments.output]
    refuse_missing_folder(arguments.encoder)
    if arguments.device is not None:
        check_device(arguments.device)
    with contextlib.redirect_stdout(sys.stderr):  # the Trainer prints its log, which is not the result
        record = train_masked_lm_head(
            arguments.encoder,
            load_dataset("text", data_files=arguments.text, split="train"),
            arguments.output,
            **{name: getattr(arguments, name) for name in settings},
            heldout_words=read_word_file(arguments.heldout_words) if arguments.heldout_words else (),
            save_steps=arguments.save_steps,
            device=arguments.device,
            command=shlex.join([*command, *options]),
            show_progress=not arguments.json,
        )
    if arguments.json:
        print(json.dumps(asdict(record)))
        return
    print(f"Wrote a masked language model to {arguments.output}: {record.steps:,} steps in {record.seconds:,.0f} s.")
    for name, score in (("Before", record.before), ("After", record.after)):
        print(f"{name}: perplexity {score.perplexity:,.1f}, accuracy {score.accuracy:.3f}")
    num_short = record.text["num_short_blocks_left_out"]
    if num_short:
        print(f"Note: {num_short:,} texts or ends of texts were too short and are left out.")
