"""`bertram corpus`."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from ..utils.files import read_word_file
from .options import loading, read_options


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "corpus",
        help="count words and sample sentences for them",
        description="Counts the words of a corpus and, for each frequent or given word, takes a random sample of the "
        "sentences it stands in. Interrupted runs resume with the same command.",
        epilog="Example: bertram corpus novels/*.txt my-corpus --encoder bert-base-uncased",
    )
    command.add_argument(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="text, .jsonl, .csv, .tsv or .parquet files, folders with them, or quoted patterns; none with --dataset",
    )
    command.add_argument("output", metavar="OUTPUT", help="folder to write")
    case = command.add_mutually_exclusive_group(required=True)
    case.add_argument("--encoder", metavar="NAME", help="model whose tokenizer tells whether case counts")
    case.add_argument("--lower-case", action="store_true", help="count Kumquat as kumquat (sentences keep their case)")
    case.add_argument("--keep-case", action="store_true", help="tell Kumquat from kumquat")
    command.add_argument(
        "--words", metavar="FILE", help="words to sample for, one on each line (default: all frequent ones)"
    )
    command.add_argument(
        "--min-count", type=int, metavar="N", help="frequent is so often (default: 100, or with --words no others)"
    )
    command.add_argument("--max-words", type=int, metavar="N", help="at most so many frequent words")
    command.add_argument("--max-contexts", type=int, default=64, metavar="N", help="sentences a word (default: 64)")
    command.add_argument("--seed", type=int, default=0, help="another seed gives other samples (default: 0)")
    command.add_argument(
        "--unit",
        choices=("auto", "line", "paragraph"),
        default="auto",
        help="whether a sentence ends with its line, or lines are wrapped (default: decided for each file)",
    )
    command.add_argument(
        "--text-column", default="text", metavar="NAME", help="of JSONL, CSV, TSV, Parquet and datasets (default: text)"
    )
    command.add_argument("--dataset", metavar="NAME", help="stream a dataset of the Hub instead of reading files")
    command.add_argument("--config", metavar="NAME", help="the dataset's configuration")
    command.add_argument("--split", default="train", help="the dataset's split (default: train)")
    command.add_argument("--workers", type=int, default=1, metavar="N", help="tasks that run at once (default: 1)")
    command.add_argument(
        "--executor",
        choices=("local", "ray", "slurm"),
        default="local",
        help="where tasks run (default: local); slurm submits jobs, and when they have run, run the command again",
    )
    command.add_argument("--executor-options", type=read_options, default={}, metavar="JSON", help="for datatrove")
    command.add_argument("--json", action="store_true", help="print a summary for scripts, and no progress bars")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Builds a corpus."""
    if bool(arguments.inputs) == bool(arguments.dataset):
        raise ValueError(
            f"Expected input files or --dataset; got {'both' if arguments.dataset else 'neither'}. "
            "Give INPUT... OUTPUT, or --dataset NAME OUTPUT."
        )
    from ..corpus import build_corpus

    inputs = arguments.inputs
    if arguments.dataset:
        from datasets import load_dataset

        inputs = load_dataset(arguments.dataset, arguments.config, split=arguments.split, streaming=True)
    words = None
    if arguments.words:
        words = read_word_file(arguments.words)
    lower_case = arguments.lower_case
    if arguments.encoder:
        from transformers import AutoTokenizer

        from ..processing_context import is_uncased

        with loading(arguments.encoder):
            lower_case = is_uncased(AutoTokenizer.from_pretrained(arguments.encoder))
    summary = build_corpus(
        inputs,
        arguments.output,
        lower_case=lower_case,
        words=words,
        min_count=arguments.min_count,
        max_words=arguments.max_words,
        max_contexts=arguments.max_contexts,
        seed=arguments.seed,
        unit=arguments.unit,
        text_column=arguments.text_column,
        executor=arguments.executor,
        num_workers=arguments.workers,
        executor_options=arguments.executor_options,
        show_progress=not arguments.json,
    )
    if summary is None:
        text = "Submitted the Slurm jobs. When they have run, the same command prints the summary."
        print(json.dumps({"submitted": True}) if arguments.json else text)
        return
    if arguments.json:
        print(json.dumps(asdict(summary)))
        return
    print(
        f"Wrote {summary.num_contexts:,} sentences for {summary.num_words:,} words, and the counts of "
        f"{summary.num_different_words:,} words, to {arguments.output}."
    )
    notes = {
        "lines or rows were not valid and are left out": summary.num_invalid_lines,
        "lines of more than 1 MB were cut": summary.num_long_lines,
        "documents had no text": summary.num_empty_documents,
        "sentences had too few words and are left out": summary.num_short_sentences,
        "sentences had too many words; a window around the word is used": summary.num_cut_sentences,
        "sentences had too many characters and are left out": summary.num_overlong_sentences,
        "sentences repeat another and are used once": summary.num_duplicate_sentences,
    }
    for text, number in notes.items():
        if number:
            print(f"Note: {number:,} {text}.")
    if summary.num_missing_words:
        shown = ", ".join(map(repr, summary.missing_words[:5]))
        print(
            f"Note: words without a sentence: {summary.num_missing_words:,}, such as {shown}. `bertram induce` makes "
            "vectors of given words from their spelling alone."
        )
