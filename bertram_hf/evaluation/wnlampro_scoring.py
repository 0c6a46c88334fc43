"""Scores of a masked language model on WNLaMPro: mean reciprocal rank, precision, and a test of two systems."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..injection.injector import BertramEmbeddingInjector
from ..utils.imports import needs_extra
from .cloze import predict_clozes
from .wnlampro import BANDS, RELATIONS, Band, Relation, WnlamproEntry, fill_patterns

logger = logging.getLogger(__name__)
NUM_PREDICTIONS = 100  # the released evaluation looks no further
PRECISION_AT = (3, 10)


@dataclass(frozen=True)
class EntryScore:
    """Reciprocal rank of one entry's best target, and precision at several k; each of the best pattern."""

    reciprocal_rank: float
    precision_at: dict[int, float]


@dataclass(frozen=True)
class SubsetScore:
    """Means over entries; None if there is no entry, where the released evaluation writes -1."""

    num_entries: int
    mrr: float | None
    precision_at: dict[int, float | None]


@dataclass(frozen=True)
class WnlamproScores:
    """Scores of one system.

    Attributes:
        overall: Over all entries.
        bands: By frequency of the keyword.
        relations: By relation.
        bands_and_relations: By both.
        reciprocal_ranks: Of each entry, by id; `paired_t_test` takes them.
        num_injected: How many entries' keywords were seen as injected vectors; None without an injector.
    """

    overall: SubsetScore
    bands: dict[Band, SubsetScore]
    relations: dict[Relation, SubsetScore]
    bands_and_relations: dict[Band, dict[Relation, SubsetScore]]
    reciprocal_ranks: dict[str, float]
    num_injected: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class PairedTest:
    """A two-sided paired t-test: is the mean difference of reciprocal ranks (first minus second) more than chance?"""

    num_entries: int
    mean_difference: float
    statistic: float
    p_value: float


def evaluate_wnlampro(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    entries: Iterable[WnlamproEntry],
    *,
    precision_at: Sequence[int] = PRECISION_AT,
    max_tokens_per_batch: int | None = None,
    show_progress: bool = True,
) -> WnlamproScores:
    """Asks a masked language model all patterns of all entries, and scores the answers.

    Args:
        model: The masked language model, or a [`BertramEmbeddingInjector`] around it.
        tokenizer: Its tokenizer; an injector's is `injector.tokenizer`.
        entries: From [`read_wnlampro`] or [`build_probe`].
        precision_at: For which k to compute precision.
        max_tokens_per_batch: Limit of padded tokens; by default what suits the device.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Raises:
        ValueError: If there are no entries, or a keyword holds one of the tokenizer's special tokens.

    Example:
        >>> from bertram_hf.evaluation import read_wnlampro
        >>> injector = BertramEmbeddingInjector(masked_lm, tokenizer, vectors)
        >>> scores = evaluate_wnlampro(injector, injector.tokenizer, read_wnlampro("WNLaMPro.txt"))
        >>> scores.overall.num_entries, scores.num_injected
        (2, 2)
    """
    entries = list(entries)
    if not entries:
        raise ValueError("Expected entries to evaluate; got none. Check the file and the split.")
    _check_keywords(tokenizer, entries)
    texts = [fill_patterns(e.keyword.word, e.relation, mask_token=tokenizer.mask_token) for e in entries]
    num_injected = _count_injected(model, tokenizer, texts) if isinstance(model, BertramEmbeddingInjector) else None
    answers = iter(
        predict_clozes(
            model,
            tokenizer,
            [text for patterns in texts for text in patterns],
            num_predictions=max([NUM_PREDICTIONS, *precision_at]),
            max_tokens_per_batch=max_tokens_per_batch,
            show_progress=show_progress,
        )
    )
    predictions = {e.id: [next(answers) for _ in patterns] for e, patterns in zip(entries, texts, strict=True)}
    return score_wnlampro(entries, predictions, precision_at=precision_at, num_injected=num_injected)


def score_wnlampro(
    entries: Sequence[WnlamproEntry],
    predictions: Mapping[str, Sequence[Sequence[str]]],
    *,
    precision_at: Sequence[int] = PRECISION_AT,
    num_injected: int | None = None,
) -> WnlamproScores:
    """Scores predictions, by entry's id, of each pattern; a warning tells of entries without any, which take no part.

    Raises:
        ValueError: If two entries have one id.
    """
    if len({entry.id for entry in entries}) < len(entries):
        raise ValueError(f"Expected each entry once; {len(entries)} entries share ids. Score one file at a time.")
    scores = {
        entry.id: score_entry(entry, predictions[entry.id], precision_at=precision_at)
        for entry in entries
        if entry.id in predictions
    }
    if len(scores) < len(entries):
        logger.warning(f"{len(entries) - len(scores)} of {len(entries)} entries have no predictions and take no part.")

    def average(band: Band | None = None, relation: Relation | None = None) -> SubsetScore:
        chosen = [e.id for e in entries if band in (None, e.band) and relation in (None, e.relation)]
        return average_scores([scores[entry_id] for entry_id in chosen if entry_id in scores], precision_at)

    return WnlamproScores(
        overall=average(),
        bands={band: average(band) for band in BANDS},
        relations={relation: average(None, relation) for relation in RELATIONS},
        bands_and_relations={band: {relation: average(band, relation) for relation in RELATIONS} for band in BANDS},
        reciprocal_ranks={entry_id: score.reciprocal_rank for entry_id, score in scores.items()},
        num_injected=num_injected,
    )


def score_entry(
    entry: WnlamproEntry, predictions: Sequence[Sequence[str]], *, precision_at: Sequence[int] = PRECISION_AT
) -> EntryScore:
    """Scores the predictions of one entry's patterns; of each measure, the best pattern counts.

    A target that is predicted twice counts once, as released.

    Example:
        >>> from bertram_hf.evaluation import read_wnlampro
        >>> entry = read_wnlampro("WNLaMPro.txt")[0]
        >>> score_entry(entry, [["tree", "fruit"]], precision_at=[1, 2])
        EntryScore(reciprocal_rank=0.5, precision_at={1: 0.0, 2: 0.5})
    """
    targets = {target.word for target in entry.targets}
    ranks = [
        next((1 / rank for rank, word in enumerate(words[:NUM_PREDICTIONS], start=1) if word in targets), 0.0)
        for words in predictions
    ]
    precision = {
        k: max((len(targets.intersection(words[:k])) / k for words in predictions), default=0.0) for k in precision_at
    }
    return EntryScore(max(ranks, default=0.0), precision)


def average_scores(scores: Sequence[EntryScore], precision_at: Sequence[int] = PRECISION_AT) -> SubsetScore:
    """Returns the means over entries."""
    precision = {k: _mean([score.precision_at[k] for score in scores]) for k in precision_at}
    return SubsetScore(len(scores), _mean([score.reciprocal_rank for score in scores]), precision)


def paired_t_test(first: Mapping[str, float], second: Mapping[str, float]) -> PairedTest:
    """Tests whether two systems' reciprocal ranks differ, as the paper does (Table 1, p < 0.05).

    Args:
        first: Reciprocal ranks by entry's id, such as `WnlamproScores.reciprocal_ranks`.
        second: Those of the other system, of the same entries.

    Raises:
        ImportError: If SciPy is missing.
        ValueError: If the entries are not the same, or fewer than two.

    Example:
        >>> test = paired_t_test({"a": 0.5, "b": 1.0, "c": 0.5}, {"a": 0.1, "b": 0.5, "c": 0.2})
        >>> round(test.mean_difference, 3), round(test.p_value, 3)
        (0.4, 0.02)
    """
    with needs_extra("evaluation", "The t-test"):
        from scipy.stats import ttest_rel
    if first.keys() != second.keys():
        number = len(first.keys() ^ second.keys())
        raise ValueError(f"Expected the same entries of both systems; {number} are of one only. Use one probe file.")
    if len(first) < 2:
        raise ValueError(f"Expected at least two entries for a test; got {len(first)}.")
    differences = [first[entry_id] - second[entry_id] for entry_id in first]
    mean = sum(differences) / len(differences)
    if len(set(differences)) == 1 and mean == 0:  # SciPy gives NaN
        return PairedTest(len(differences), 0.0, 0.0, 1.0)
    result = ttest_rel(list(first.values()), [second[entry_id] for entry_id in first])
    return PairedTest(len(differences), mean, float(result.statistic), float(result.pvalue))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _check_keywords(tokenizer: PreTrainedTokenizerBase, entries: Iterable[WnlamproEntry]) -> None:
    for entry in entries:
        special = next((token for token in tokenizer.all_special_tokens if token in entry.keyword.word), None)
        if special is not None:
            raise ValueError(
                f"Expected keywords without special tokens; entry {entry.id!r} has {special!r} in "
                f"{entry.keyword.word!r:.100}. Leave it out."
            )


def _count_injected(
    injector: BertramEmbeddingInjector, tokenizer: PreTrainedTokenizerBase, texts: Sequence[Sequence[str]]
) -> int:
    """Returns how many entries have an injected word; warns if words of the patterns themselves are injected."""
    pattern_words = {word for relation in RELATIONS for word in " ".join(fill_patterns("", relation)).split()}
    words = sorted(word for word in pattern_words if word.isalpha())
    first_id = injector.table.first_id

    def is_injected(some_texts: Sequence[str]) -> list[bool]:
        return [max(ids, default=0) >= first_id for ids in tokenizer(list(some_texts), verbose=False)["input_ids"]]

    taken = [word for word, injected in zip(words, is_injected(words), strict=True) if injected]
    if taken:
        logger.warning(
            f"Words of the patterns have injected vectors, too: {', '.join(taken)}. The released evaluation replaces "
            "the keyword only; take these vectors away for comparable scores."
        )
    return sum(is_injected([patterns[0] for patterns in texts]))
