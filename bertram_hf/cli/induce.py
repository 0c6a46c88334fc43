"""`bertram induce`."""

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoProcessor
from transformers.utils.logging import disable_progress_bar

from ..corpus.build import load_contexts
from ..induction.checks import check_is_bertram
from ..induction.resumable import WORDS_PER_PART, ResumableInduction
from ..induction.word_vectors import WordVectors
from ..utils.files import read_utf8

NUM_SHOWN = 10


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "induce",
        help="induce vectors for words with contexts",
        description='Reads JSON lines such as {"word": "kumquat", "contexts": ["She peeled a kumquat."]}, or a folder '
        "that `bertram corpus` wrote. Killed? The same command goes on where it was. Several processes: torchrun "
        "--nproc_per_node 2 -m bertram_hf.cli induce ...",
        epilog="Example: bertram induce my-bertram words.jsonl my-vectors",
    )
    command.add_argument("model", metavar="MODEL", help="folder or Hub name of a BERTRAM model")
    command.add_argument("contexts", metavar="CONTEXTS", help="JSON-lines file, or folder of `bertram corpus`")
    command.add_argument("output", metavar="OUTPUT", help="folder to write, or a file with --word2vec")
    command.add_argument("--encoder", metavar="NAME", help="folder or Hub name of the encoder of a slim model")
    command.add_argument("--max-contexts", type=int, metavar="N", help="use the first N contexts of each word")
    command.add_argument("--no-look-alikes", action="store_true", help="take no word for a misspelling")
    command.add_argument("--device", help="such as cuda:1 (default: a GPU if there is one)")
    command.add_argument("--word2vec", action="store_true", help="write the word2vec text format")
    command.add_argument("--skip-errors", action="store_true", help="leave out words that cannot have a vector")
    command.add_argument(
        "--words-per-part",
        type=int,
        default=WORDS_PER_PART,
        metavar="N",
        help=f"words between two savings (default: {WORDS_PER_PART})",
    )
    command.add_argument("--json", action="store_true", help="print a summary for scripts, and no progress bars")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Induces vectors for the words of a file or a corpus."""
    for name in ("max_contexts", "words_per_part"):
        number = getattr(arguments, name)
        if number is not None and number < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1; got {number}.")
    contexts = read_contexts(arguments.contexts)
    if arguments.max_contexts is not None:
        contexts = {word: texts[: arguments.max_contexts] for word, texts in contexts.items()}
    process = join_others()
    is_main = process is None or process.is_main_process
    if arguments.json or not is_main:
        disable_progress_bar()  # of loading weights
    loading = {"encoder": arguments.encoder} if arguments.encoder else {}
    device = arguments.device or (process.device if process else "cuda" if torch.cuda.is_available() else "cpu")
    model = AutoModel.from_pretrained(arguments.model, **loading)
    check_is_bertram(model)  # before a processor is looked for, which an encoder has not
    processor = AutoProcessor.from_pretrained(arguments.model)
    folder = Path(f"{arguments.output}.parts")
    parts = ResumableInduction(
        model.to(device),
        processor,
        contexts,
        folder,
        words_per_part=arguments.words_per_part,
        errors="skip" if arguments.skip_errors else "raise",
        look_alikes=not arguments.no_look_alikes,
    )
    rank, number = (process.process_index, process.num_processes) if process else (0, 1)
    parts.induce(rank=rank, num_processes=number, show_progress=is_main and not arguments.json)
    if process is not None:
        process.wait_for_everyone()
    if not is_main:
        return
    vectors = parts.join()
    if arguments.word2vec:
        Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
        vectors.save_word2vec(arguments.output)
    else:
        vectors.save_pretrained(arguments.output)
    shutil.rmtree(folder, ignore_errors=True)
    report(vectors, arguments)


def read_contexts(path: str) -> dict[str, list[str]]:
    """Reads words with their contexts from JSON lines, or from a folder that `build_corpus` wrote.

    Raises:
        ValueError: If a line is of another form, with its number, or there is no word.
    """
    contexts: dict[str, list[str]] = {}
    if Path(path).is_dir():
        contexts = {row["word"]: row["contexts"] for row in load_contexts(path)}
    else:
        for number, line in enumerate(read_utf8(path).split("\n"), start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                if not isinstance(entry["contexts"], list):
                    raise TypeError(f"contexts must be a list; got {entry['contexts']!r:.80}")
                contexts.setdefault(entry["word"], []).extend(entry["contexts"])
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise ValueError(
                    f'Line {number} of {path} must look like {{"word": "kumquat", "contexts": ["..."]}}: {error!r}'
                ) from error
    if not contexts:
        raise ValueError(f"Expected words with contexts in {path}; there are none.")
    return contexts


def join_others() -> Any:
    """Returns this process among those that `torchrun` has started; None if it is alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return None
    from ..utils.distributed import join_processes

    return join_processes()


def report(vectors: WordVectors, arguments: argparse.Namespace) -> None:
    """Prints what was written and what to know of it."""
    num_dropped = sum(map(len, vectors.dropped_contexts.values()))
    likely = {word: next(iter(known)) for word, known in vectors.look_alikes.items() if max(known.values()) > 0.5}
    alone = [word for word in vectors.words if not vectors.used_contexts.get(word) and word not in likely]
    if arguments.json:
        summary = {"words": len(vectors), "failed": vectors.failed, "dropped_contexts": num_dropped}
        print(json.dumps(summary | {"misspellings": likely, "words_without_contexts": alone}))
        return
    print(f"Wrote {len(vectors)} vectors to {arguments.output}; {num_dropped} contexts were not used.")
    if likely:
        print(f"Taken for misspellings: {_list([f'{word!r} ({known})' for word, known in likely.items()])}.")
    if alone:
        print(
            f"From their spelling alone, which says little: {_list([f'{word!r:.40}' for word in alone])}. "
            "Give contexts, or leave them out."
        )
    for word, reason in vectors.failed.items():
        print(f"No vector for {word!r:.40}: {reason}")


def _list(items: Sequence[str]) -> str:
    more = f" and {len(items) - NUM_SHOWN} more" if len(items) > NUM_SHOWN else ""
    return ", ".join(items[:NUM_SHOWN]) + more
