"""`bertram induce`."""

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import Any

from transformers import AutoModel, AutoProcessor
from transformers.utils.logging import disable_progress_bar

from ..induction import induce_vectors
from ..word_files import read_utf8

NUM_SHOWN = 10


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "induce",
        help="induce vectors for words with contexts",
        description='Reads JSON lines such as {"word": "kumquat", "contexts": ["She peeled a kumquat."]}.',
        epilog="Example: bertram induce my-bertram words.jsonl my-vectors",
    )
    command.add_argument("model", metavar="MODEL", help="folder or Hub name of a BERTRAM model")
    command.add_argument("contexts", metavar="CONTEXTS", help="JSON-lines file")
    command.add_argument("output", metavar="OUTPUT", help="folder to write, or a file with --word2vec")
    command.add_argument("--word2vec", action="store_true", help="write the word2vec text format")
    command.add_argument("--skip-errors", action="store_true", help="leave out words that cannot have a vector")
    command.add_argument("--json", action="store_true", help="print a summary for scripts, and no progress bars")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Induces vectors for the words of a JSON-lines file."""
    contexts: dict[str, list[str]] = {}
    for number, line in enumerate(read_utf8(arguments.contexts).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            contexts.setdefault(entry["word"], []).extend(entry["contexts"])
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(
                f'Line {number} of {arguments.contexts} must look like {{"word": "kumquat", "contexts": ["..."]}}: '
                f"{error!r}"
            ) from error
    if arguments.json:
        disable_progress_bar()  # of loading weights
    model = AutoModel.from_pretrained(arguments.model)
    processor = AutoProcessor.from_pretrained(arguments.model)
    vectors = induce_vectors(
        model,
        processor,
        contexts,
        errors="skip" if arguments.skip_errors else "raise",
        show_progress=not arguments.json,
    )
    if arguments.word2vec:
        Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
        vectors.save_word2vec(arguments.output)
    else:
        vectors.save_pretrained(arguments.output)
    num_dropped = sum(map(len, vectors.dropped_contexts.values()))
    likely = {word: next(iter(known)) for word, known in vectors.look_alikes.items() if max(known.values()) > 0.5}
    if arguments.json:
        summary = {"words": len(vectors), "failed": vectors.failed, "dropped_contexts": num_dropped}
        print(json.dumps(summary | {"misspellings": likely}))
        return
    print(f"Wrote {len(vectors)} vectors to {arguments.output}; {num_dropped} contexts were not used.")
    if likely:
        listed = ", ".join(f"{word!r} ({known})" for word, known in islice(likely.items(), NUM_SHOWN))
        more = f" and {len(likely) - NUM_SHOWN} more" if len(likely) > NUM_SHOWN else ""
        print(f"Taken for misspellings: {listed}{more}.")
    for word, reason in vectors.failed.items():
        print(f"No vector for {word!r}: {reason}")
