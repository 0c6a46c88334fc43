"""The probe of rare words without training (Section 5.2): WNLaMPro, asked with every system's vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from datasets import load_dataset
from transformers import AutoModelForMaskedLM, PreTrainedModel, PreTrainedTokenizerBase

from .evaluated_systems import ORIGINAL, PLAIN, EvaluatedSystem, name_model
from .evaluation_recipe import WnlamproTask
from .injection import BertramEmbeddingInjector
from .markdown_table import format_rows
from .masked_lm import train_masked_lm_head
from .paired_scores import SIGNIFICANCE, mark_best
from .pieces import PieceReader
from .rare_words import normalize_spelling
from .result_rows import ResultRows, write_json
from .training_data import vocabulary_words
from .wnlampro import WnlamproEntry, drop_frequent_corruptions, parse_entry, read_wnlampro, write_wnlampro
from .wnlampro_builder import build_probe
from .wnlampro_scoring import evaluate_wnlampro, paired_t_test
from .word_vectors import WordVectors
from .wordnet import open_wordnet

if TYPE_CHECKING:
    from .reproduction import Reproduction


class WnlamproEvaluation:
    """The work on one probe.

    Args:
        run: The evaluation that this is a part of: its encoder, systems and corpora are used.
        task: The probe and the masked language model.
    """

    def __init__(self, run: "Reproduction", task: WnlamproTask) -> None:
        self.run, self.task = run, task
        self.folder = run.work / "wnlampro"
        self._vectors: dict[tuple[str, int], WordVectors] = {}  # systems that differ in the mode share them

    @cached_property
    def entries(self) -> list[WnlamproEntry]:
        """The test entries whose keywords are rare enough; of the given file, or built from WordNet and counts."""
        if self.task.probe is not None:
            entries = read_wnlampro(self.task.probe, "test")
        else:
            depends_on = {"max_entries": self.task.max_entries, **self._settings}
            row = ResultRows(self.run.output / "wnlampro" / "probe").make("built", 0, depends_on, self._build)
            entries = drop_frequent_corruptions(
                entry for entry in map(parse_entry, row["entries"]) if entry.split == "test"
            )
        return [entry for entry in entries if entry.band in self.task.bands]

    @property
    def _settings(self) -> dict[str, Any]:
        recipe = self.run.recipe
        return {"corpora": [asdict(source) for source in recipe.corpora], "encoder": name_model(recipe.encoder)}

    def _build(self) -> dict[str, Any]:
        """Builds a probe and returns it in the published format."""
        probe = build_probe(
            open_wordnet(self.task.wordnet),
            self.run.counts,
            vocabulary_words(PieceReader(self.run.tokenizer)),
            max_entries=self.task.max_entries,
            show_progress=self.run.show_progress,
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
        folder = self.folder / "masked-lm"
        train_masked_lm_head(
            self.run.recipe.encoder,
            load_dataset("text", data_files=self.task.texts, split="train"),
            folder,
            max_steps=self.task.max_steps,
            show_progress=self.run.show_progress,
        )
        return str(folder)

    @cached_property
    def model(self) -> PreTrainedModel:
        """The masked language model.

        Raises:
            ValueError: If its input embeddings are not the encoder's, which vectors are made for.
        """
        model = AutoModelForMaskedLM.from_pretrained(self.model_name).to(self.run.encoder.device)
        if not torch.equal(model.get_input_embeddings().weight.detach().float(), self.run.vocabulary):
            raise ValueError(
                f"wnlampro.model: expected the input embeddings of {self.run.recipe.encoder}, for which vectors are "
                f"made; {self.model_name} has others. Train a head with `bertram masked-lm`."
            )
        return model

    @cached_property
    def contexts(self) -> dict[str, list[str]]:
        """Contexts of all keywords."""
        words = list({normalize_spelling(entry.keyword.word, self.run.lower_case) for entry in self.entries})
        found = self.run.find_contexts(self.run.recipe.corpora, words, self.folder)
        return {word: found.get(word)[: self.run.recipe.max_contexts] for word in sorted(words)}

    def evaluate(self, rows: ResultRows) -> dict[str, list[dict[str, Any]]]:
        """Returns the scores of each system, for each of its seeds; what is indomain has no texts here."""
        settings = self._settings | {
            "task": asdict(self.task),
            "entries": [str((entry.id, entry.keyword, entry.targets)) for entry in self.entries],
            "max_contexts": self.run.recipe.max_contexts,
            "masked_lm": None if self.task.model is None else name_model(self.task.model),
        }
        results: dict[str, list[dict[str, Any]]] = {}
        for system, seed in self.run.runs():
            if not system.indomain and system.model != ORIGINAL:
                depends_on = settings | {"system": asdict(system), "model": self.run.describe_model(system, seed)}
                row = rows.make(system.name, seed, depends_on, partial(self._ask, system, seed))
                results.setdefault(system.name, []).append(row)
        return results

    def _ask(self, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
        """Scores the masked language model with one system's vectors."""
        if system.model == PLAIN:
            return self._score(self.model, self.run.tokenizer)
        key = (system.model, seed)
        if key not in self._vectors:
            source = self.run.vectors_of(system, seed)
            self._vectors[key] = source.induce(self.contexts, show_progress=self.run.show_progress)
        vectors = self._vectors[key]
        injector = BertramEmbeddingInjector(self.model, self.run.tokenizer, vectors, mode=system.mode)
        try:
            scores = self._score(injector, injector.tokenizer)
        finally:
            injector.remove()
        return scores | {"words": len(self.contexts), "words_without_vector": len(vectors.failed)}

    def _score(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
        return evaluate_wnlampro(model, tokenizer, self.entries, show_progress=self.run.show_progress).to_dict()

    def write(self, path: Path, results: Mapping[str, Sequence[Mapping[str, Any]]], *, command: str | None) -> None:
        """Writes the table of the paper: MRR of each system for each band, as Markdown and JSON.

        Args:
            path: The beginning of the file names.
            results: What `evaluate` returned.
            command: The command, for the record.
        """
        compared = {
            band: compare_ranks(
                {name: average_ranks(rows) for name, rows in results.items()},
                [entry.id for entry in self.entries if entry.band == band],
            )
            for band in self.task.bands
        }
        sizes = {band: sum(entry.band == band for entry in self.entries) for band in self.task.bands}
        table = [
            {"model": name, "seeds": len(rows)}
            | {
                f"{band} ({sizes[band]})": mark_best(f"{entry['mrr']:.3f}", entry["is_best"], entry["p_value"])
                for band in compared
                if (entry := compared[band].get(name))
            }
            for name, rows in results.items()
        ]
        text = (
            "# WNLaMPro\n\nMean reciprocal rank on the test entries (their number in brackets), means over seeds.\n"
            f"Best underlined; bold: not surely worse, by a paired t-test (p >= {SIGNIFICANCE}).\n"
            f"Command: `{command}`\n\n"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".md").write_text(text + format_rows(table) + "\n", encoding="utf-8")
        write_json(path.with_suffix(".json"), compared)


def average_ranks(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Returns for each entry the mean of its reciprocal ranks over seeds."""
    return {
        entry_id: sum(row["reciprocal_ranks"][entry_id] for row in rows) / len(rows)
        for entry_id in rows[0]["reciprocal_ranks"]
    }


def compare_ranks(ranks: Mapping[str, Mapping[str, float]], entry_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Compares systems with the best one on some entries, by a paired t-test; nothing if there are fewer than two.

    Example:
        >>> ranks = {"plain": {"a": 0.1, "b": 0.5, "c": 0.2}, "bertram": {"a": 0.5, "b": 1.0, "c": 0.5}}
        >>> compared = compare_ranks(ranks, ["a", "b", "c"])
        >>> compared["bertram"]["is_best"], round(compared["plain"]["p_value"], 3)
        (True, 0.02)
    """
    if len(entry_ids) < 2:
        return {}
    chosen = {name: {entry_id: values[entry_id] for entry_id in entry_ids} for name, values in ranks.items()}
    means = {name: sum(values.values()) / len(values) for name, values in chosen.items()}
    best = max(means, key=lambda name: means[name])
    return {
        name: {
            "mrr": means[name],
            "is_best": means[name] == means[best],
            "p_value": paired_t_test(values, chosen[best]).p_value,
        }
        for name, values in chosen.items()
    }
