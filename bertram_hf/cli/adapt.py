"""`bertram adapt`."""

import argparse
import json
from typing import Any

from ..utils.files import read_word_file
from .options import check_device, loading, read_options


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "adapt",
        help="give a model the rare words of your texts, and tell whether it helps",
        description="Finds the words of texts that a model breaks into pieces, induces their vectors, and "
        "judges by the texts themselves whether the vectors help: titles or first sentences search the rest of their "
        "texts. Writes a model that loads as the given one does, with report.html and report.json. Interrupted runs "
        "resume with the same command. Several processes: torchrun --nproc_per_node 2 -m bertram_hf.cli adapt ...",
        epilog="Example: bertram adapt abstracts/*.jsonl --model all-MiniLM-L6-v2 --output my-model",
    )
    command.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="text, .jsonl, .csv, .tsv or .parquet files, folders with them, or quoted patterns",
    )
    command.add_argument("--model", required=True, metavar="NAME", help="folder or Hub name of your model")
    command.add_argument("--output", required=True, metavar="FOLDER", help="folder to write")
    command.add_argument("--bertram", metavar="NAME", help="BERTRAM model (default: the one on this machine that fits)")
    command.add_argument("--words", metavar="FILE", help="words and terms to include, one on each line")
    command.add_argument("--glossary", metavar="FILE", help="terms and definitions: .csv, .tsv, .jsonl or .parquet")
    command.add_argument("--aliases", metavar="FILE", help="short forms and what they stand for, in the same formats")
    command.add_argument("--text-column", default="text", metavar="NAME", help="of rows (default: text)")
    command.add_argument(
        "--title-column", metavar="NAME", help="of rows: what texts are searched by (default: their first sentence)"
    )
    command.add_argument("--min-count", type=int, default=2, metavar="N", help="words occur so often (default: 2)")
    command.add_argument("--max-words", type=int, default=20_000, metavar="N", help="at most (default: 20000)")
    command.add_argument("--max-contexts", type=int, default=8, metavar="N", help="sentences a word (default: 8)")
    command.add_argument(
        "--documents", type=int, default=5000, metavar="N", help="texts that vectors are judged by (default: 5000)"
    )
    command.add_argument("--no-inflections", action="store_true", help="kumquats gets a vector of its own")
    command.add_argument("--compare", action="store_true", help="also measure mean of pieces and untrained new tokens")
    command.add_argument("--device", help="such as cuda:1 (default: a GPU if there is one)")
    command.add_argument("--seed", type=int, default=0, help="of all choices (default: 0)")
    command.add_argument("--workers", type=int, default=1, metavar="N", help="tasks that read at once (default: 1)")
    command.add_argument(
        "--executor", choices=("local", "ray", "slurm"), default="local", help="where texts are read (default: local)"
    )
    command.add_argument("--executor-options", type=read_options, default={}, metavar="JSON", help="for datatrove")
    command.add_argument("--json", action="store_true", help="print the report for scripts, and no progress bars")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Adapts a model."""
    from datasets import disable_progress_bars
    from transformers.utils.logging import disable_progress_bar

    from ..adaptation import adapt
    from ..utils.distributed import Processes

    disable_progress_bars()  # of reading a corpus
    disable_progress_bar()  # of loading weights
    if arguments.device:
        check_device(arguments.device)
    with loading(arguments.model, arguments.bertram):
        adapted = adapt(
            arguments.inputs,
            arguments.model,
            arguments.output,
            bertram=arguments.bertram,
            words=read_word_file(arguments.words) if arguments.words else (),
            glossary=arguments.glossary,
            aliases=arguments.aliases,
            text_column=arguments.text_column,
            title_column=arguments.title_column,
            min_count=arguments.min_count,
            max_words=arguments.max_words,
            max_contexts=arguments.max_contexts,
            num_documents=arguments.documents,
            share_inflections=not arguments.no_inflections,
            compare=arguments.compare,
            executor=arguments.executor,
            num_workers=arguments.workers,
            executor_options=arguments.executor_options,
            device=arguments.device,
            seed=arguments.seed,
            show_progress=not arguments.json,
        )
    if adapted is None and not Processes().is_main:
        return
    if adapted is None:
        text = "Submitted the Slurm jobs. When they have run, run the same command again."
        print(json.dumps({"submitted": True}) if arguments.json else text)
        return
    if arguments.json:
        print(json.dumps({name: value for name, value in adapted.report.items() if name != "words"}))
        return
    print(adapted.verdict.headline)
    print(f"Injected {len(adapted.vectors):,} of {adapted.report['texts']['num_rare_words']:,} rare words.")
    for note in adapted.report["notes"]:
        print(f"Note: {note}")
    print(f"Wrote {arguments.output}; the whole report is {arguments.output}/report.html.")
