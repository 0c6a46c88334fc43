"""`bertram rarify`."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.files import read_json, read_utf8, write_json
from ..utils.names import DICTIONARIES
from .options import check_device, loading, read_options

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from ..rarification import Substitutions

BASELINE, BASELINE_RECORD = "baseline", "baseline.json"
SUBSTITUTIONS, TEST, SUMMARY = "substitutions.tsv", "test", "summary.json"
UNNAMED_CLASS = re.compile(r"LABEL_\d+")  # how Transformers calls classes that have no names


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "rarify",
        help="make a test set in which rare words decide",
        description="Dataset rarification: in texts that a classifier gets right, replaces the words on which its "
        "answer rests by rare synonyms or misspellings. With --train the classifier is trained first, on at least a "
        "third of the texts; a finished one is not trained again.",
        epilog="Example: bertram rarify bert-base-uncased news.tsv --train --wordnet --counts my-corpus --output rare",
    )
    command.add_argument(
        "model", metavar="MODEL", help="folder or Hub name of a classifier, or with --train an encoder"
    )
    command.add_argument(
        "inputs", nargs="*", metavar="FILE", help=".tsv, .csv, .jsonl or .parquet; none with --dataset"
    )
    command.add_argument("--output", required=True, metavar="FOLDER", help="folder to write")
    command.add_argument("--dataset", nargs="+", default=[], metavar="NAME", help="of the Hub: NAME [CONFIG [SPLIT]]")
    command.add_argument("--text-column", default="text", metavar="NAME", help="default: text")
    command.add_argument("--pair-column", metavar="NAME", help="second texts, for text pairs")
    command.add_argument("--label-column", default="label", metavar="NAME", help="default: label")
    command.add_argument("--limit", type=int, metavar="N", help="use N texts, drawn at random")
    command.add_argument("--train", action="store_true", help="train the classifier first")
    command.add_argument(
        "--training-arguments", type=read_options, default={}, metavar="JSON", help="for the Trainer, over the paper's"
    )
    command.add_argument("--substitutions", metavar="FILE", help="words, substitutes and perhaps kinds, between tabs")
    command.add_argument("--wordnet", action="store_true", help="replace words by rare synonyms of WordNet")
    command.add_argument(
        "--misspellings",
        action="append",
        default=[],
        metavar="SOURCE",
        help=f"replace some words by misspellings: {', '.join(DICTIONARIES)} or a file; may be given more than once",
    )
    command.add_argument(
        "--counts", metavar="PATH", help="folder of `bertram corpus`, or a file with words and counts between tabs"
    )
    command.add_argument("--max-count", type=int, default=100, metavar="N", help="rare is less often (default: 100)")
    command.add_argument(
        "--keep-known",
        action="store_true",
        help="use synonyms and misspellings also if the model has a token for them (default: only if it has none)",
    )
    command.add_argument("--misspelling-share", type=float, default=0.1, metavar="X", help="of words (default: 0.1)")
    command.add_argument("--max-masked", type=int, default=5, metavar="N", help="words replaced (default: at most 5)")
    command.add_argument("--max-length", type=int, default=128, metavar="N", help="tokens of a text (default: 128)")
    command.add_argument("--seed", type=int, default=0, help="default: 0")
    command.add_argument("--device", default="cpu", help="such as cuda, to mask words on (default: cpu)")
    command.add_argument("--json", action="store_true", help="print a summary for scripts, and no progress bars")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Rarifies a data set."""
    from datasets import ClassLabel
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    from ..rarification.baseline import check_columns
    from ..rarification.datasets import load_labelled_texts
    from ..rarification.rarify import generate, split_candidates

    output, device = Path(arguments.output), check_device(arguments.device)
    with loading(arguments.model):
        tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    texts = load_labelled_texts(
        arguments.inputs,
        dataset=arguments.dataset,
        label_column=arguments.label_column,
        max_texts=arguments.limit,
        seed=arguments.seed,
    )
    if not isinstance(texts.features[arguments.label_column], ClassLabel):
        raise ValueError(f"Expected several labels in column {arguments.label_column!r}; all texts have the same.")
    columns = {"text_column": arguments.text_column, "pair_column": arguments.pair_column}
    check_columns(texts, **columns, label_column=None)
    try:
        substitutions = build_substitutions(arguments, texts, tokenizer)
    except ImportError as error:
        raise ValueError(str(error)) from error  # so that it is shown as an error of the input
    output.mkdir(parents=True, exist_ok=True)
    substitutions.write(output / SUBSTITUTIONS)
    summary: dict[str, Any] = {"model": arguments.model, "seed": arguments.seed, "texts": len(texts)}
    if not arguments.train:
        texts = match_labels(texts, AutoConfig.from_pretrained(arguments.model), arguments)
    split = split_candidates(
        texts,
        substitutions,
        **columns,
        misspelling_share=arguments.misspelling_share,
        min_train_share=1 / 3 if arguments.train else 0,
        seed=arguments.seed,
    )
    if arguments.train:
        with contextlib.redirect_stdout(sys.stderr):  # the Trainer prints its log, which is not the result
            model, summary["training"] = train_or_load(arguments, tokenizer, split.train, output)
        summary["training_texts"] = len(split.train)
    else:
        model = AutoModelForSequenceClassification.from_pretrained(arguments.model)
    test = generate(
        split.candidates,
        model.to(device),
        tokenizer,
        substitutions,
        **columns,
        label_column=arguments.label_column,
        max_length=arguments.max_length,
        max_masked=arguments.max_masked,
        misspelling_share=arguments.misspelling_share,
        seed=arguments.seed,
        show_progress=not arguments.json,
    )
    test.dataset.save_to_disk(output / TEST, num_shards=1)  # without rows there would be no file otherwise
    summary |= {"substitutions": substitutions.count_kinds(), **asdict(test.summary)}
    write_json(output / SUMMARY, summary)
    if arguments.json:
        print(json.dumps(summary))
        return
    counted = test.summary
    print(f"Wrote {counted.num_rarified:,} rarified texts of {counted.num_candidates:,} candidates to {output / TEST}.")
    notes = {
        "candidates have no word that can be masked": counted.num_without_words,
        "candidates are classified wrongly as they are": counted.num_wrong_at_start,
        "candidates have their words beyond --max-length": counted.num_truncated,
        "candidates are classified correctly without these words too": counted.num_not_flipped,
    }
    for text, number in notes.items():
        if number:
            print(f"Note: {number:,} {text}.")


def build_substitutions(
    arguments: argparse.Namespace, texts: Dataset, tokenizer: PreTrainedTokenizerBase
) -> Substitutions:
    """Reads or finds the substitutes of the words of a data set."""
    from ..rarification import Substitutions
    from ..rarification.rarify import read_rows
    from ..rarification.sources import find_substitutes
    from ..words.splitting import split_words

    needs_counts = arguments.wordnet or bool(arguments.misspellings)
    if not needs_counts and not arguments.substitutions:
        raise ValueError("Expected substitutes; got none. Give --substitutions, --wordnet or --misspellings.")
    if needs_counts and not arguments.counts:
        raise ValueError("Expected --counts with --wordnet and --misspellings, to know which words are rare; got none.")
    found = Substitutions.read(arguments.substitutions) if arguments.substitutions else Substitutions()
    if not needs_counts:
        return found
    counts = read_any_counts(arguments.counts)
    rows = read_rows(texts, arguments.text_column, arguments.pair_column)
    words = dict.fromkeys(word.lower() for row in rows for text in row for word in split_words(text))
    return found | find_substitutes(
        words,
        counts,
        tokenizer,
        synonyms=arguments.wordnet,
        misspellings=arguments.misspellings,
        max_count=arguments.max_count,
        only_unknown=not arguments.keep_known,
        show_progress=not arguments.json,
    )


def read_any_counts(path: str) -> Counter[str]:
    """Reads word counts from a corpus folder, or from a file with a word and its count on each line."""
    if Path(path).is_dir():
        from ..corpus.build import read_counts

        return read_counts([path])
    counts: Counter[str] = Counter()
    for number, line in enumerate(read_utf8(path).splitlines(), start=1):
        word, _, count = line.partition("\t")
        if not count.strip().isdecimal():
            raise ValueError(f"{path}, line {number}: expected a word, a tab and its count; got {line!r:.80}.")
        counts[word.lower()] += int(count)
    return counts


def match_labels(texts: Dataset, config: PreTrainedConfig, arguments: argparse.Namespace) -> Dataset:
    """Returns the texts with the class numbers of a trained model."""
    from ..rarification.baseline import to_class_numbers

    column = arguments.label_column
    names = texts.features[column].names
    known = {name.lower(): name for name in config.label2id} | {name: name for name in config.label2id}
    found = [known.get(name, known.get(name.lower())) for name in names]
    if all(found):
        labels: list[Any] = [found[label] for label in texts[column]]
    elif all(name.isdecimal() for name in names):
        labels = [int(names[label]) for label in texts[column]]
    elif arguments.dataset and all(UNNAMED_CLASS.fullmatch(name) for name in config.label2id):
        return texts  # numbers of the Hub's dataset, which models with unnamed classes go by
    else:
        raise ValueError(
            f"Expected labels among the model's, {', '.join(config.label2id)}, or class numbers; got "
            f"{', '.join(names[:5])}. Set label2id in the model's config.json."
        )
    return to_class_numbers(texts.remove_columns(column).add_column(column, labels), config, label_column=column)


def train_or_load(
    arguments: argparse.Namespace, tokenizer: Any, train: Dataset, output: Path
) -> tuple[PreTrainedModel, Mapping[str, float]]:
    """Trains the baseline, or loads it if the same was trained before. Returns it and what the Trainer measured."""
    from transformers import AutoModelForSequenceClassification, set_seed

    from ..rarification.baseline import train_baseline
    from ..rarification.rarify import read_rows

    column = arguments.label_column
    rows = zip(read_rows(train, arguments.text_column, arguments.pair_column), train[column][:], strict=True)
    settings = {
        "model": arguments.model,
        "seed": arguments.seed,
        "max_length": arguments.max_length,
        "training_arguments": arguments.training_arguments,
        "texts": hashlib.sha256(json.dumps(list(rows)).encode()).hexdigest(),
    }
    record_path = output / BASELINE_RECORD
    if record_path.is_file():
        record = {"settings": {}, "training": {}} | read_json(record_path)
        if record["settings"] != settings:
            found = record["settings"] if isinstance(record["settings"], dict) else {}
            changed = ", ".join(name for name in settings if found.get(name) != settings[name])
            raise ValueError(
                f"Expected the settings with which {output / BASELINE} was trained; {changed} changed. "
                "Give another --output, or delete the folder."
            )
        return AutoModelForSequenceClassification.from_pretrained(output / BASELINE), record["training"]
    names = train.features[column].names
    set_seed(arguments.seed)  # for the new weights of the classifier
    model = AutoModelForSequenceClassification.from_pretrained(
        arguments.model,
        num_labels=len(names),
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
    )
    training = train_baseline(
        model,
        tokenizer,
        train,
        text_column=arguments.text_column,
        pair_column=arguments.pair_column,
        label_column=column,
        max_length=arguments.max_length,
        seed=arguments.seed,
        training_arguments={"disable_tqdm": arguments.json} | arguments.training_arguments,
    )
    model.save_pretrained(output / BASELINE)
    tokenizer.save_pretrained(output / BASELINE)
    write_json(record_path, {"settings": settings, "training": training})
    return model, training
