"""`bertram wnlampro`: `evaluate` and `build`."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.imports import needs_extra
from ..utils.names import MODES
from .options import check_device, loading

if TYPE_CHECKING:
    from ..evaluation.wnlampro import Band, WnlamproEntry
    from ..evaluation.wnlampro_scoring import PairedTest, SubsetScore


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "wnlampro",
        help="ask a masked language model about rare words, or build such questions",
        description="WNLaMPro asks a masked language model for words that stand in a relation to a rare word, as in "
        '"a lingonberry is a [MASK]".',
        epilog="Example: bertram wnlampro evaluate --model my-masked-lm --probe probe.txt --vectors my-vectors",
    )
    actions = command.add_subparsers(required=True, metavar="ACTION")
    evaluate = actions.add_parser("evaluate", help="score a model on a probe")
    evaluate.add_argument("--model", required=True, metavar="NAME", help="folder or Hub name of a masked-LM")
    evaluate.add_argument("--probe", required=True, metavar="FILE", help="file in the format of WNLaMPro")
    evaluate.add_argument("--vectors", metavar="FOLDER", help="word vectors to inject; scored beside the model alone")
    evaluate.add_argument("--mode", choices=MODES, default="replace", help="default: replace, as in the paper")
    evaluate.add_argument("--split", choices=("dev", "test"), help="default: both")
    evaluate.add_argument("--device", default="cpu", help="such as cuda (default: cpu)")
    evaluate.add_argument("--json", action="store_true", help="print scores for scripts, and no progress bars")
    evaluate.set_defaults(run=run_evaluate)
    build = actions.add_parser(
        "build",
        help="build a probe from WordNet and the counts of a corpus",
        description="Builds a probe of WNLaMPro's kind; its rules are ours, so that scores cannot be compared with "
        "published ones.",
        epilog="Example: bertram wnlampro build --counts my-corpus --tokenizer my-masked-lm --output probe.txt",
    )
    build.add_argument("--counts", required=True, metavar="FOLDER", help="a corpus that `bertram corpus` wrote")
    build.add_argument("--tokenizer", required=True, metavar="NAME", help="model whose tokens the targets must be")
    build.add_argument("--output", required=True, metavar="FILE", help="file to write")
    build.add_argument("--wordnet", metavar="FOLDER", help="WordNet's plain files (default: where it is installed)")
    build.add_argument(
        "--max-entries", type=int, default=250, metavar="N", help="for each relation and frequency band (default: 250)"
    )
    build.add_argument("--min-count", type=int, default=1, metavar="N", help="of keywords (default: 1)")
    build.add_argument("--dev-share", type=float, default=0.2, metavar="X", help="of word families (default: 0.2)")
    build.add_argument("--seed", type=int, default=0, help="another seed gives other entries (default: 0)")
    build.add_argument("--json", action="store_true", help="print a summary for scripts, and no progress bars")
    build.set_defaults(run=run_build)


def run_evaluate(arguments: argparse.Namespace) -> None:
    """Scores a model, and if there are vectors the same model with them."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    from ..evaluation.wnlampro import drop_frequent_corruptions, read_wnlampro
    from ..evaluation.wnlampro_scoring import evaluate_wnlampro
    from ..induction import WordVectors
    from ..injection import BertramEmbeddingInjector
    from ..utils.tables import format_columns

    entries = read_wnlampro(arguments.probe, arguments.split, keep_frequent_corruptions=True)
    num_read = len(entries)
    entries = drop_frequent_corruptions(entries)
    if arguments.vectors is not None and find_spec("scipy") is None:  # told before the work, not after it
        raise ValueError('The t-test needs scipy, which is missing. Run: pip install "bertram-hf[evaluation]"')
    vectors = None if arguments.vectors is None else WordVectors.from_pretrained(arguments.vectors)
    device = check_device(arguments.device)
    with loading(arguments.model):
        tokenizer = AutoTokenizer.from_pretrained(arguments.model)
        model = AutoModelForMaskedLM.from_pretrained(arguments.model).to(device)
    show_progress = not arguments.json
    systems = {"model": evaluate_wnlampro(model, tokenizer, entries, show_progress=show_progress)}
    tests: dict[Band, PairedTest] | None = None
    if vectors is not None:
        injector = BertramEmbeddingInjector(model, tokenizer, vectors, arguments.mode)
        name = f"with vectors ({arguments.mode})"
        systems[name] = evaluate_wnlampro(injector, injector.tokenizer, entries, show_progress=show_progress)
        tests = compare_bands(entries, systems[name].reciprocal_ranks, systems["model"].reciprocal_ranks)
    if arguments.json:
        result: dict[str, Any] = {name: scores.to_dict() for name, scores in systems.items()}
        tested = None if tests is None else {band: asdict(test) for band, test in tests.items()}
        result |= {"num_left_out": num_read - len(entries), "tests": tested}
        print(json.dumps(result))
        return
    for name, scores in systems.items():
        injected = "" if scores.num_injected is None else f", {scores.num_injected:,} keywords injected"
        print(f"{name}: {scores.overall.num_entries:,} entries{injected}")
        rows = [("", "entries", "MRR", *(f"P@{k}" for k in scores.overall.precision_at))]
        rows += [_format_row(str(subset), score) for subset, score in scores.bands.items()]
        rows += [_format_row(str(subset), score) for subset, score in scores.relations.items()]
        rows.append(_format_row("all", scores.overall))
        print(format_columns(rows, right_aligned=range(1, len(rows[0]))))
    for band, test in (tests or {}).items():
        print(f"{band}: MRR differs by {test.mean_difference:+.4f} (paired t-test: p = {test.p_value:.2g}).")
    if num_read > len(entries):
        print(f"Note: {num_read - len(entries):,} misspellings that occur 10 times or more are left out, as released.")


def compare_bands(
    entries: Sequence[WnlamproEntry], first: Mapping[str, float], second: Mapping[str, float]
) -> dict[Band, PairedTest]:
    """Compares the reciprocal ranks of two systems in each band that has two entries, as the paper does."""
    from ..evaluation.wnlampro import BANDS
    from ..evaluation.wnlampro_scoring import paired_t_test

    ids = {band: [entry.id for entry in entries if entry.band == band] for band in BANDS}
    return {
        band: paired_t_test(*({entry_id: ranks[entry_id] for entry_id in found} for ranks in (first, second)))
        for band, found in ids.items()
        if len(found) > 1
    }


def run_build(arguments: argparse.Namespace) -> None:
    """Builds a probe."""
    from transformers import AutoTokenizer

    from ..evaluation.wnlampro import write_wnlampro
    from ..rarification.wordnet import open_wordnet
    from ..words.pieces import PieceReader, vocabulary_words

    with needs_extra("train", "Reading a corpus"):
        from ..corpus.build import read_counts
        from ..reproduction.wnlampro_builder import build_probe
    with loading(arguments.tokenizer):
        tokenizer = AutoTokenizer.from_pretrained(arguments.tokenizer)
    probe = build_probe(
        open_wordnet(arguments.wordnet),
        read_counts([arguments.counts]),
        vocabulary_words(PieceReader(tokenizer)),
        seed=arguments.seed,
        max_entries=arguments.max_entries,
        dev_share=arguments.dev_share,
        min_count=arguments.min_count,
        show_progress=not arguments.json,
    )
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    write_wnlampro(probe.entries, arguments.output)
    numbers = Counter((entry.relation, entry.band) for entry in probe.entries)
    if arguments.json:
        summary = {f"{relation} {band}": number for (relation, band), number in numbers.items()}
        print(json.dumps({"entries": summary, "without_targets": probe.num_without_targets}))
        return
    print(f"Wrote {len(probe.entries):,} entries to {arguments.output}.")
    for (relation, band), number in numbers.items():
        print(f"  {relation}, {band}: {number:,}")
    for name, number in probe.num_without_targets.items():
        if number:
            print(f"Note: {number:,} of {probe.num_tried[name]:,} words tried for {name} had no targets.")


def _format_row(name: str, score: SubsetScore) -> tuple[str, ...]:
    values = (score.mrr, *score.precision_at.values())
    return (name, f"{score.num_entries:,}", *("-" if value is None else f"{value:.3f}" for value in values))
