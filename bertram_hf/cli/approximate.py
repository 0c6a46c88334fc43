"""`bertram approximate`."""

import argparse
import json
import time
from typing import Any

from ..utils.files import only_writer, read_word_file
from ..utils.names import DEFAULT_ITERATIONS, PRECISIONS
from .options import check_device, loading


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "approximate",
        help="find one vector that does what a word's several pieces do",
        description="One-token approximation: for each word, finds the vector with which the encoder computes the same "
        "around the word as with its pieces. It needs no texts. The vectors are training targets for words that are "
        "frequent in your corpus but have no token of their own. Interrupted runs resume with the same command. As "
        "released, and far slower: --optimizer adam --tolerance 0, for RoBERTa also --iterations 8000.",
        epilog="Example: bertram approximate bert-base-uncased words.txt my-targets",
    )
    command.add_argument("encoder", metavar="ENCODER", help="folder or Hub name of an encoder with its tokenizer")
    command.add_argument("words", metavar="WORDS", help="text file with one word on each line")
    command.add_argument("output", metavar="OUTPUT", help="folder to write")
    command.add_argument("--optimizer", choices=("lbfgs", "adam"), default="lbfgs", help="default: lbfgs")
    command.add_argument(
        "--iterations",
        type=int,
        metavar="N",
        help=f"steps for each word (default: {DEFAULT_ITERATIONS['lbfgs']}, or {DEFAULT_ITERATIONS['adam']} for adam)",
    )
    command.add_argument(
        "--templates", type=int, default=8, metavar="N", help="pairs of random words around a word (default: 8)"
    )
    command.add_argument("--learning-rate", type=float, default=1e-3, metavar="X", help="of adam (default: 0.001)")
    command.add_argument(
        "--tolerance",
        type=float,
        default=1e-3,
        metavar="X",
        help="a word is done when its loss falls by less than this share; 0: never (default: 0.001)",
    )
    command.add_argument("--batch-size", type=int, default=128, metavar="N", help="words at a time (default: 128)")
    command.add_argument("--seed", type=int, default=0, help="another seed gives other random words (default: 0)")
    command.add_argument(
        "--dtype",
        choices=PRECISIONS,
        help="precision of the encoder; auto: bfloat16 where the device is fast at it (default: auto for lbfgs)",
    )
    command.add_argument("--device", default="cpu", help="such as cuda (default: cpu)")
    command.add_argument("--skip-errors", action="store_true", help="leave out words that cannot have a vector")
    command.add_argument("--json", action="store_true", help="print a summary for scripts")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Approximates the words of a text file."""
    words = read_word_file(arguments.words)
    if not words:
        raise ValueError(f"Expected one word on each line of {arguments.words}; it has none.")
    from transformers import AutoModel, AutoTokenizer

    from ..approximation import approximate_vectors

    started = time.perf_counter()
    device = check_device(arguments.device)
    with loading(arguments.encoder):
        encoder = AutoModel.from_pretrained(arguments.encoder)
        tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)
    with only_writer(arguments.output):
        vectors = approximate_vectors(
            encoder.to(device),
            tokenizer,
            words,
            output=arguments.output,
            optimizer=arguments.optimizer,
            iterations=arguments.iterations,
            num_templates=arguments.templates,
            learning_rate=arguments.learning_rate,
            tolerance=arguments.tolerance,
            batch_size=arguments.batch_size,
            seed=arguments.seed,
            dtype=arguments.dtype,
            errors="skip" if arguments.skip_errors else "raise",
            show_progress=not arguments.json,
        )
    if arguments.json:
        seconds = round(time.perf_counter() - started, 2)
        print(json.dumps({"words": len(vectors), "failed": vectors.failed, "seconds": seconds}))
        return
    print(f"Wrote {len(vectors)} vectors to {arguments.output}.")
    for word, reason in vectors.failed.items():
        print(f"No vector for {word!r}: {reason}")
