"""`bertram induce`."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.files import only_writer, read_utf8, read_word_file
from ..utils.names import PRECISIONS, WORDS_PER_PART
from .options import check_device, loading

if TYPE_CHECKING:
    from ..induction import WordVectors

NUM_SHOWN = 10


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "induce",
        help="induce vectors for words, from their sentences or their spelling alone",
        description='Reads JSON lines such as {"word": "kumquat", "contexts": ["She peeled a kumquat."]}, with or '
        'instead of "contexts" also "definitions": ["a small sour citrus fruit"], a folder '
        "that `bertram corpus` wrote, or a .txt file with one word on each line, whose vectors come from their "
        "spelling alone. Interrupted runs resume with the same command. Several processes: torchrun --nproc_per_node 2 "
        "-m bertram_hf.cli induce ...",
        epilog="Example: bertram induce my-bertram words.jsonl my-vectors",
    )
    command.add_argument("model", metavar="MODEL", help="folder or Hub name of a BERTRAM model")
    command.add_argument(
        "contexts", metavar="CONTEXTS", help="JSON-lines file, folder of `bertram corpus`, or .txt file of words"
    )
    command.add_argument("output", metavar="OUTPUT", help="folder to write, or a file with --word2vec")
    command.add_argument("--encoder", metavar="NAME", help="folder or Hub name of the encoder of a slim model")
    command.add_argument(
        "--max-contexts", type=int, metavar="N", help="use the first N contexts of each word, and all definitions"
    )
    command.add_argument("--no-look-alikes", action="store_true", help="disable misspelling detection")
    command.add_argument("--device", help="such as cuda:1 (default: a GPU if there is one)")
    command.add_argument(
        "--dtype",
        choices=PRECISIONS,
        help="precision of the encoder; auto: bfloat16 where the device is fast at it (default: auto on a GPU)",
    )
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
    from datasets import disable_progress_bars
    from transformers import AutoModel, AutoProcessor
    from transformers.utils.logging import disable_progress_bar

    from ..corpus import check_case
    from ..induction import ResumableInduction, add_definitions
    from ..induction.checks import check_is_bertram
    from ..induction.induce import encoder_in
    from ..processing_context import is_uncased
    from ..utils.distributed import Processes

    disable_progress_bars()  # of reading a corpus
    disable_progress_bar()  # of loading weights
    contexts, definitions = read_contexts(arguments.contexts)
    if arguments.max_contexts is not None:
        contexts = {word: texts[: arguments.max_contexts] for word, texts in contexts.items()}
    contexts = add_definitions(contexts, definitions)
    processes = Processes()
    device = arguments.device or processes.device
    check_device(device)
    with loading(arguments.model, arguments.encoder):
        model = AutoModel.from_pretrained(
            arguments.model, **({"encoder": arguments.encoder} if arguments.encoder else {})
        )
        check_is_bertram(model)  # before a processor is looked for, which an encoder has not
        processor = AutoProcessor.from_pretrained(arguments.model)
    failed: dict[str, str] = {}
    if Path(arguments.contexts).is_dir():
        if model.config.has_context:
            check_case([arguments.contexts], is_uncased(processor.tokenizer))
        if not model.config.has_form:  # the corpus had no sentence for them, which is no mistake in the input
            reason = "the corpus has no sentence for it, and a context-only model cannot do without."
            failed = {word: f"{word!r}: {reason}" for word, texts in contexts.items() if not texts}
            contexts = {word: texts for word, texts in contexts.items() if texts}
    folder = Path(f"{arguments.output}.parts")
    model.to(device)
    writing = only_writer(arguments.output) if processes.is_main else nullcontext()
    with writing, encoder_in(model, arguments.dtype):
        parts = ResumableInduction(
            model,
            processor,
            contexts,
            folder,
            words_per_part=arguments.words_per_part,
            errors="skip" if arguments.skip_errors else "raise",
            look_alikes=not arguments.no_look_alikes,
        )
        show_progress = processes.is_main and not arguments.json
        parts.induce(rank=processes.rank, num_processes=processes.number, show_progress=show_progress)
        processes.wait()
        if not processes.is_main:
            return
        vectors = parts.join()
        vectors.failed |= failed
        if arguments.word2vec:
            vectors.save_word2vec(arguments.output)
        else:
            vectors.save_pretrained(arguments.output)
        shutil.rmtree(folder, ignore_errors=True)
    num_alone = sum(not texts for texts in contexts.values()) + len(failed)
    report(vectors, num_alone, arguments)


def read_contexts(path: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Reads words with their contexts from JSON lines or from a folder that `build_corpus` wrote, or words alone.

    Words that a corpus was asked for and has no sentence of have no contexts.

    Returns:
        The contexts and the definitions of each word.

    Raises:
        ValueError: If a line is of another form, with its number, or there is no word.
    """
    contexts: dict[str, list[str]] = {}
    definitions: dict[str, list[str]] = {}
    if Path(path).is_dir():
        from ..corpus import load_contexts, read_missing_words
        from ..corpus.build import CorpusSummary

        if CorpusSummary.load(path).num_words:  # a table without rows cannot be loaded
            contexts = {row["word"]: row["contexts"] for row in load_contexts(path)}
        contexts |= {word: [] for word in read_missing_words(path)}
    elif path.endswith(".txt") and not read_utf8(path).lstrip().startswith("{"):
        contexts = {word: [] for word in read_word_file(path)}
    else:
        from ..induction.word_lines import read_word_lines

        contexts, definitions = read_word_lines(path)
    if not contexts:
        raise ValueError(f"Expected words with contexts in {path}; there are none.")
    return contexts, definitions


def report(vectors: WordVectors, num_alone: int, arguments: argparse.Namespace) -> None:
    """Prints what was written, what to know of it, and how it is loaded."""
    dropped = {word: len(reasons) for word, reasons in vectors.dropped_contexts.items() if reasons}
    num_dropped = sum(dropped.values())
    misspelt = vectors.misspellings()
    likely = {word: next(iter(known)) for word, known in vectors.look_alikes.items() if word in misspelt}
    alone = [word for word in vectors.words if not vectors.used_contexts.get(word) and word not in likely]
    if arguments.json:
        summary = {"words": len(vectors), "failed": vectors.failed, "dropped_contexts": num_dropped}
        summary |= {"misspellings": likely, "words_without_contexts": alone, "words_without_sentence": num_alone}
        print(json.dumps(summary))
        return
    print(f"Wrote {len(vectors):,} vectors to {arguments.output}.")
    if dropped:
        listed = _list([f"{word!r:.40} ({number})" for word, number in dropped.items()])
        reasons = {reason for found in vectors.dropped_contexts.values() for reason in found.values()}
        print(f"{num_dropped:,} contexts were not used ({', '.join(sorted(reasons))}): {listed}.")
    if likely:
        print(f"Taken for misspellings: {_list([f'{word!r} ({known})' for word, known in likely.items()])}.")
    if alone:
        print(
            f"From their spelling alone, which says little: {_list([f'{word!r:.40}' for word in alone])}. "
            "Give contexts, or leave them out."
        )
    for word, reason in vectors.failed.items():
        print(f"No vector for {word!r:.40}: {reason}")
    if not arguments.word2vec:
        print(
            f'Load them: vectors = WordVectors.from_pretrained("{arguments.output}")\n'
            "Use them: injector = BertramEmbeddingInjector(model, tokenizer, vectors)"
        )


def _list(items: Sequence[str]) -> str:
    more = f" and {len(items) - NUM_SHOWN} more" if len(items) > NUM_SHOWN else ""
    return ", ".join(items[:NUM_SHOWN]) + more
