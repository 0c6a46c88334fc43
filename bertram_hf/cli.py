"""The `bertram` command."""

import argparse
import json
import sys
from pathlib import Path

from transformers import AutoModel, AutoProcessor

import bertram_hf
from bertram_hf.original_checkpoint import convert_original


def convert(arguments: argparse.Namespace) -> None:
    """Converts a released checkpoint and says what is special about it."""
    converted = convert_original(arguments.source, tokenizer=arguments.tokenizer)
    converted.model.save_pretrained(arguments.destination)
    converted.processor.save_pretrained(arguments.destination)
    if arguments.json:
        summary = {
            "destination": arguments.destination,
            "mode": converted.model.config.mode,
            "prefix": converted.processor.prefix,
            "notes": converted.notes,
        }
        print(json.dumps(summary))
        return
    print(f"Wrote a BERTRAM of mode {converted.model.config.mode!r} to {arguments.destination}.")
    for note in converted.notes:
        print(f"Note: {note}")


def induce(arguments: argparse.Namespace) -> None:
    """Induces vectors for the words of a JSON-lines file."""
    contexts: dict[str, list[str]] = {}
    with open(arguments.contexts, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
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
    model = AutoModel.from_pretrained(arguments.model)
    processor = AutoProcessor.from_pretrained(arguments.model)
    vectors = bertram_hf.induce_vectors(model, processor, contexts, errors="skip" if arguments.skip_errors else "raise")
    if arguments.word2vec:
        Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
        vectors.save_word2vec(arguments.output)
    else:
        vectors.save_pretrained(arguments.output)
    num_dropped = sum(map(len, vectors.dropped_contexts.values()))
    if arguments.json:
        summary = {"words": len(vectors), "failed": vectors.failed, "dropped_contexts": num_dropped}
        print(json.dumps(summary))
        return
    print(f"Wrote {len(vectors)} vectors to {arguments.output}; {num_dropped} contexts were not used.")
    for word, reason in vectors.failed.items():
        print(f"No vector for {word!r}: {reason}")


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="bertram", description="Vectors for words that a BERT-family model does not know."
    )
    parser.add_argument("--version", action="version", version=f"bertram-hf {bertram_hf.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser(
        "convert-original",
        help="convert a checkpoint of the released code",
        description="Converts a checkpoint of timoschick/bertram. Nothing in it is unpickled or run.",
        epilog="Example: bertram convert-original bertram-add-for-bert-base-uncased my-bertram",
    )
    command.add_argument("source", metavar="SRC", help="folder with pytorch_model.bin and the JSON files")
    command.add_argument("destination", metavar="DST", help="folder to write")
    command.add_argument("--tokenizer", help="folder or name of the encoder's tokenizer, if it is not found by itself")
    command.add_argument("--json", action="store_true", help="print a summary for scripts")
    command.set_defaults(run=convert)

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
    command.add_argument("--json", action="store_true", help="print a summary for scripts")
    command.set_defaults(run=induce)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs the command line. Returns 0, or 1 after an error that is the input's."""
    arguments = build_parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except (OSError, ValueError, TypeError) as error:
        print(f"bertram: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
