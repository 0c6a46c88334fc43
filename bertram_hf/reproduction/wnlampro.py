"""The probe of rare words without training (Section 5.2): WNLaMPro, asked with every system's vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from datasets import load_dataset
from transformers import AutoModelForMaskedLM, PreTrainedModel, PreTrainedTokenizerBase

from ..evaluation.statistics import SIGNIFICANCE, mark_best
from ..evaluation.wnlampro import WnlamproEntry, drop_frequent_corruptions, parse_entry, read_wnlampro, write_wnlampro
from ..evaluation.wnlampro_scoring import evaluate_wnlampro, paired_t_test
from ..induction.word_vectors import WordVectors
from ..injection.injector import BertramEmbeddingInjector
from ..masked_lm.train import train_masked_lm_head
from ..processing_context import is_uncased
from ..rarification.wordnet import open_wordnet
from ..training.data import read_words
from ..utils.files import read_json
from ..utils.hashing import hash_weights
from ..utils.names import MASKED_LM_NAME
from ..utils.tables import format_rows
from ..words.pieces import PieceReader, vocabulary_words
from ..words.splitting import normalize_spelling
from .recipe import PROBE, EvaluatedSystem, WnlamproTask
from .resources import Resources
from .rows import ResultRows
from .systems import ORIGINAL, PLAIN, name_model
from .wnlampro_builder import build_probe


class WnlamproBenchmark:
    """The work on one probe.

    Args:
        resources: The encoder, systems and corpora.
        task: The probe and the masked language model.
    """

    def __init__(self, resources: Resources, task: WnlamproTask) -> None:
        self.resources, self.task = resources, task
        self.folder = resources.work / "wnlampro"
        self.rows = resources.rows_of("wnlampro", items=True)
        self._vectors: dict[tuple[str, int], WordVectors] = {}  # systems that differ in the mode share them

    @cached_property
    def entries(self) -> list[WnlamproEntry]:
        """The test entries whose keywords are rare enough; of the given file, or built from WordNet and counts."""
        if self.task.probe is not None:
            entries = read_wnlampro(self.task.probe, "test")
        else:
            depends_on = {"max_entries": self.task.max_entries, "wordnet": self.task.wordnet, **self._settings}
            row = self.rows.make(PROBE, 0, depends_on, self._build, options=[])
            entries = drop_frequent_corruptions(
                entry for entry in map(parse_entry, row["entries"]) if entry.split == "test"
            )
        return [entry for entry in entries if entry.band in self.task.bands]

    @property
    def _settings(self) -> dict[str, Any]:
        recipe = self.resources.recipe
        return {"corpora": [asdict(source) for source in recipe.corpora], "encoder": name_model(recipe.encoder)}

    def _build(self) -> dict[str, Any]:
        """Builds a probe and returns it in the published format."""
        probe = build_probe(
            open_wordnet(self.task.wordnet),
            self.resources.counts,
            vocabulary_words(PieceReader(self.resources.tokenizer)),
            max_entries=self.task.max_entries,
            show_progress=self.resources.show_progress,
        )
        path = self.folder / "probe.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_wnlampro(probe.entries, path)
        return {"entries": path.read_text(encoding="utf-8").splitlines()}

    @cached_property
    def model_name(self) -> str:
        """Folder or Hub name of the masked language model, which is trained unless one is given."""
        if self.task.model is not None:
            return self.task.model
        folder = self.folder / f"masked-lm-{self.task.max_steps}-steps"
        train_masked_lm_head(
            self.resources.recipe.encoder,
            load_dataset("text", data_files=self.task.texts, split="train"),
            folder,
            max_steps=self.task.max_steps,
            heldout_words=read_words(self.task.heldout_words, is_uncased(self.resources.tokenizer)),
            command=self.resources.command_of("wnlampro"),
            show_progress=self.resources.show_progress,
        )
        return str(folder)

    @cached_property
    def model(self) -> PreTrainedModel:
        """The masked language model.

        Raises:
            ValueError: If its input embeddings are not the encoder's, which vectors are made for.
        """
        model = AutoModelForMaskedLM.from_pretrained(self.model_name).to(self.resources.encoder.device)
        if not torch.equal(model.get_input_embeddings().weight.detach().float(), self.resources.vocabulary):
            raise ValueError(
                f"wnlampro.model: expected the input embeddings of {self.resources.recipe.encoder}, for which vectors "
                f"are made; {self.model_name} has others. Train a head with `bertram masked-lm`."
            )
        return model

    @cached_property
    def head(self) -> dict[str, Any]:
        """What a row says of the masked language model: its weights and, if it has a record, its scores."""
        facts: dict[str, Any] = {"weights": hash_weights(self.model)[:32]}
        record = Path(self.model_name) / MASKED_LM_NAME
        if record.is_file():
            score = read_json(record)["after"]
            facts |= {name: round(score[name], 4) for name in ("perplexity", "accuracy")}
        return facts

    @cached_property
    def contexts(self) -> dict[str, list[str]]:
        """Contexts of all keywords."""
        words = list({normalize_spelling(entry.keyword.word, self.resources.lower_case) for entry in self.entries})
        found = self.resources.find_contexts(self.resources.recipe.corpora, words, self.folder)
        return {word: found.get(word)[: self.resources.recipe.max_contexts] for word in sorted(words)}

    def evaluate(self) -> dict[str, list[dict[str, Any]]]:
        """Asks with the chosen systems and seeds, as far as that is not done yet; what is indomain has no texts here.

        Returns:
            The rows of each system of the recipe that are there and up to date.

        Raises:
            ValueError: If there are none, or some are of another masked language model.
        """
        settings = self._settings | {
            "task": asdict(self.task),
            "entries": [str((entry.id, entry.keyword, entry.targets)) for entry in self.entries],
            "max_contexts": self.resources.recipe.max_contexts,
            "masked_lm": None if self.task.model is None else name_model(self.task.model),
        }

        def depends_on(system: EvaluatedSystem, seed: int) -> dict[str, Any]:
            return settings | {"system": asdict(system), "model": self.resources.describe_model(system, seed)}

        for system, seed in filter(_is_asked, self.resources.runs()):
            self.rows.make(system.name, seed, depends_on(system, seed), partial(self._ask, system, seed))
        results: dict[str, list[dict[str, Any]]] = {}
        for system, seed in filter(_is_asked, self.resources.recipe_runs()):
            row = self.rows.find(system.name, seed, depends_on(system, seed))
            if row is not None:
                results.setdefault(system.name, []).append(row)
        if not results:
            raise ValueError("wnlampro: expected a system that is neither indomain nor the original words; got none.")
        check_heads([row for found in results.values() for row in found], self.rows)
        return results

    def _ask(self, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
        """Scores the masked language model with one system's vectors."""
        facts: dict[str, Any] = {"head": self.head}
        if system.model == PLAIN:
            return self._score(self.model, self.resources.tokenizer) | facts
        key = (system.model, seed)
        if key not in self._vectors:
            source = self.resources.vectors_of(system, seed)
            self._vectors[key] = source.induce(self.contexts, show_progress=self.resources.show_progress)
        vectors = self._vectors[key]
        injector = BertramEmbeddingInjector(self.model, self.resources.tokenizer, vectors, mode=system.mode)
        try:
            scores = self._score(injector, injector.tokenizer)
        finally:
            injector.remove()
        return scores | facts | {"words": len(self.contexts), "words_without_vector": len(vectors.failed)}

    def _score(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
        return evaluate_wnlampro(model, tokenizer, self.entries, show_progress=self.resources.show_progress).to_dict()

    def report(self, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[str, dict[str, Any]]:
        """Returns the table of the paper, MRR of each system for each band and its precision, as Markdown and for JSON.

        Args:
            results: What `evaluate` returned.
        """
        command = self.rows.command
        ids = {band: [entry.id for entry in self.entries if entry.band == band] for band in self.task.bands}
        ranks = {name: average_ranks(rows) for name, rows in results.items()}
        compared = {band: compare_ranks(ranks, ids[band]) for band in ids}
        for band, entries in compared.items():
            for name, entry in entries.items():
                entry["precision_at"] = average_precision(results[name], band, ids[band])
        seeds = {name: [row["seed"] for row in rows] for name, rows in results.items()}
        table = []
        for name in results:
            row = {"model": name, "seeds": ", ".join(map(str, seeds[name]))}
            for band, entries in compared.items():
                if name in entries:
                    entry = entries[name]
                    mrr = mark_best(f"{entry['mrr']:.3f}", entry["is_best"], entry["p_value"])
                    row[f"{band} ({len(ids[band])}) MRR"] = mrr
                    row |= {f"{band} P@{k}": f"{value:.3f}" for k, value in entry["precision_at"].items()}
            table.append(row)
        head = next(iter(results.values()))[0].get("head", {})
        text = (
            "## WNLaMPro\n\nMean reciprocal rank on the test entries (their number in brackets) and precision at k, "
            "means over the seeds named.\n"
            f"Best underlined; bold: not significantly worse, by a paired t-test (p >= {SIGNIFICANCE}).\n"
        )
        if "perplexity" in head:
            text += f"Masked language model: perplexity {head['perplexity']:.1f}, accuracy {head['accuracy']:.3f}.\n"
        text += f"Command: `{command}`\n\n{format_rows(table)}\n"
        return text, {"command": command, "seeds": seeds, "head": head, "bands": compared}


def _is_asked(run: tuple[EvaluatedSystem, int]) -> bool:
    return not run[0].indomain and run[0].model != ORIGINAL


def check_heads(rows: Sequence[Mapping[str, Any]], kept: ResultRows) -> None:
    """Raises a ValueError if rows are of different masked language models, which cannot be compared."""
    heads = {row.get("head", {}).get("weights"): row for row in rows}
    if len(heads) > 1:
        names = [
            f"{row['system']}, seed {row['seed']} (perplexity {row.get('head', {}).get('perplexity', 'not known')})"
            for row in heads.values()
        ]
        raise ValueError(
            f"Results of WNLaMPro are of different masked language models: {'; '.join(names)}. They were made on "
            f"different machines or with other texts. Delete {kept.folder} and {kept.published} and run again."
        )


def average_precision(rows: Sequence[Mapping[str, Any]], band: str, entry_ids: Sequence[str]) -> dict[str, float]:
    """Returns the means over seeds of a band's precision at 1, whose entries have rank 1, and at 10."""
    first = [sum(row["reciprocal_ranks"][entry_id] == 1 for entry_id in entry_ids) / len(entry_ids) for row in rows]
    ten = [row["bands"][band]["precision_at"]["10"] for row in rows]
    return {"1": sum(first) / len(rows), "10": sum(ten) / len(rows)}


def average_ranks(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Returns for each entry the mean of its reciprocal ranks over seeds."""
    return {
        entry_id: sum(row["reciprocal_ranks"][entry_id] for row in rows) / len(rows)
        for entry_id in rows[0]["reciprocal_ranks"]
    }


def compare_ranks(ranks: Mapping[str, Mapping[str, float]], entry_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Compares systems with the best one on some entries, by a paired t-test, for which one entry is not enough.

    Example:
        >>> ranks = {"plain": {"a": 0.1, "b": 0.5, "c": 0.2}, "bertram": {"a": 0.5, "b": 1.0, "c": 0.5}}
        >>> compared = compare_ranks(ranks, ["a", "b", "c"])
        >>> compared["bertram"]["is_best"], round(compared["plain"]["p_value"], 3)
        (True, 0.02)
    """
    if not entry_ids:
        return {}
    chosen = {name: {entry_id: values[entry_id] for entry_id in entry_ids} for name, values in ranks.items()}
    means = {name: sum(values.values()) / len(values) for name, values in chosen.items()}
    best = max(means, key=lambda name: means[name])
    return {
        name: {
            "mrr": means[name],
            "is_best": means[name] == means[best],
            "p_value": paired_t_test(values, chosen[best]).p_value if len(values) > 1 else 1.0,
        }
        for name, values in chosen.items()
    }
