"""The downstream evaluation (Section 5.3): one classification set, rarified and classified by every system."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache, cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from datasets import Dataset, load_from_disk
from transformers import AutoModelForSequenceClassification, PreTrainedModel, set_seed

from .evaluated_systems import PLAIN, EvaluatedSystem, VectorSource, name_model
from .evaluation_recipe import RarifiedTask
from .labelled_texts import load_labelled_texts
from .rare_substitutes import find_substitutes
from .rare_words import split_words
from .rarification import rarify, read_rows
from .rarified_evaluation import count_rare_words, evaluate_rarified, rare_words, rarified_texts, subset_masks
from .rarified_tables import RarifiedAnswers
from .result_rows import ResultRows, file_name, write_json
from .substitutions import Substitutions
from .training_data import CorpusContexts
from .word_vectors import WordVectors

if TYPE_CHECKING:
    from .reproduction import Reproduction

SUMMARY_NAME = "rarification.json"


class RarifiedEvaluation:
    """The work on one classification set.

    Args:
        run: The evaluation that this is a part of: its encoder, systems and corpora are used.
        task: The classification set.
    """

    def __init__(self, run: "Reproduction", task: RarifiedTask) -> None:
        self.run, self.task = run, task
        self.folder = run.work / "rarified" / file_name(task.name)

    @property
    def _settings(self) -> dict[str, Any]:
        """All that is said of the set, the corpora and the encoder, as JSON holds it."""
        recipe = self.run.recipe
        corpora = [asdict(source) for source in recipe.corpora]
        return json.loads(json.dumps({"task": asdict(self.task), "corpora": corpora, "encoder": recipe.encoder}))

    @cached_property
    def texts(self) -> Dataset:
        """The whole set, or `max_texts` of it; labels are class numbers."""
        task = self.task
        return load_labelled_texts(
            task.inputs, dataset=task.dataset, label_column=task.label_column, max_texts=task.max_texts
        )

    @cached_property
    def substitutions(self) -> Substitutions:
        """Rare substitutes of the set's words."""
        task, path = self.task, self.folder / "substitutions.tsv"
        record_path = self.folder / "substitutions.json"
        if path.is_file() and record_path.is_file() and json.loads(record_path.read_text("utf-8")) == self._settings:
            return Substitutions.read(path)
        rows = read_rows(self.texts, task.text_column, task.pair_column)
        found = find_substitutes(
            (word.lower() for row in rows for text in row for word in split_words(text)),
            self.run.counts,
            self.run.tokenizer,
            synonyms=task.synonyms,
            misspellings=task.misspellings,
            max_count=task.max_count,
            show_progress=self.run.show_progress,
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        found.write(path)
        write_json(record_path, self._settings)
        return found

    @cached_property
    def contexts(self) -> CorpusContexts:
        """Contexts of all substitutes."""
        words = [text.lower() for _, text, _ in self.substitutions.entries()]
        return self.run.find_contexts(self.run.recipe.corpora, words, self.folder)

    def rarified(self, seed: int) -> tuple[PreTrainedModel, Dataset]:
        """Returns the classifier of a seed and its rarified set, made as far as they are not there yet."""
        task, folder = self.task, self.folder / f"seed-{seed}"
        summary_path = folder / SUMMARY_NAME
        made_from = {
            "settings": self._settings,
            "substitutions": hash_text("".join(map("\t".join, self.substitutions.entries()))),
        }
        if summary_path.is_file() and json.loads(summary_path.read_text("utf-8"))["made_from"] == made_from:
            model = AutoModelForSequenceClassification.from_pretrained(folder / "model")
            return model.to(self.run.encoder.device), load_from_disk(folder / "data")
        shutil.rmtree(folder, ignore_errors=True)
        set_seed(seed)
        num_labels = len(set(self.texts[task.label_column]))
        model = AutoModelForSequenceClassification.from_pretrained(self.run.recipe.encoder, num_labels=num_labels)
        result = rarify(
            self.texts,
            model,
            self.run.tokenizer,
            self.substitutions,
            text_column=task.text_column,
            pair_column=task.pair_column,
            label_column=task.label_column,
            max_length=task.max_length,
            misspelling_share=task.misspelling_share,
            seed=seed,
            training_arguments={"disable_tqdm": not self.run.show_progress} | task.trainer,
            show_progress=self.run.show_progress,
        )
        model.save_pretrained(folder / "model")
        result.test.dataset.save_to_disk(folder / "data", num_shards=1)  # so that an empty set has a file too
        summary = {
            "made_from": made_from,
            "texts": len(self.texts),
            "training_texts": len(result.split.train),
            "candidates": len(result.split.candidates),
            **asdict(result.test.summary),
            "training": result.training,
            "substitutions": self.substitutions.count_kinds(),
        }
        write_json(summary_path, summary)  # last: what is not marked is made again
        return model, result.test.dataset

    def contexts_for(self, rarified: Dataset, *, indomain: bool) -> dict[str, list[str]]:
        """Returns the contexts of all rare words: from the corpora, and from the test texts if these serve too."""
        words = rare_words(rarified, lower_case=self.run.lower_case)
        limit = self.run.recipe.max_contexts
        found = {word: self.contexts.get(word)[:limit] for word in words}
        if indomain:
            for text in chain(*rarified_texts(rarified)):
                for word in {word.lower() if self.run.lower_case else word for word in split_words(text)}:
                    if word in found:
                        found[word].append(text)
        return found

    def evaluate(self, rows: ResultRows) -> list[RarifiedAnswers]:
        """Returns what each system answers on the rarified set of each seed."""
        answers = []
        for seed in self.run.seeds:
            model, rarified = self.rarified(seed)
            subsets = subset_masks(rarified)
            data = hash_text(json.dumps([rarified["rarified_text"][:], rarified["label"][:]]))
            correct = {}
            induce = cache(partial(self._induce, rarified))  # systems that differ in the mode share vectors
            for system in self.run.systems:
                name = self.run.model_of(system, seed)
                depends_on = self._settings | {
                    "system": asdict(system),
                    "model": name_model(name),
                    "max_contexts": self.run.recipe.max_contexts,
                    "data": data,
                }
                compute = partial(self._classify, model, rarified, subsets, system, name, induce)
                row = rows.make(system.name, seed, depends_on, compute)
                correct[system.name] = np.array([answer == "1" for answer in row["correct"]])
            originals = read_rows(rarified, "text", "pair" if "pair" in rarified.column_names else None)
            answers.append(RarifiedAnswers(correct, subsets, count_rare_words(rarified, self.run.counts), originals))
        return answers

    def _induce(self, rarified: Dataset, name: str, indomain: bool) -> tuple[WordVectors | None, dict[str, int]]:
        """Returns a model's vectors of the rare words, none for the plain model, and facts about them."""
        if name == PLAIN:
            return None, {}
        contexts = self.contexts_for(rarified, indomain=indomain)
        source = VectorSource(name, self.run.encoder, self.run.tokenizer)
        vectors = source.induce(contexts, show_progress=self.run.show_progress)
        return vectors, {
            "words": len(contexts),
            "words_with_contexts": sum(map(bool, contexts.values())),
            "words_without_vector": len(vectors.failed),
        }

    def _classify(
        self,
        model: PreTrainedModel,
        rarified: Dataset,
        subsets: Mapping[str, np.ndarray],
        system: EvaluatedSystem,
        name: str,
        induce: Callable[[str, bool], tuple[WordVectors | None, dict[str, int]]],
    ) -> dict[str, Any]:
        """Classifies the rarified set with one system's vectors."""
        vectors, facts = induce(name, system.indomain)
        answers = evaluate_rarified(
            model, self.run.tokenizer, rarified, vectors, mode=system.mode, max_length=self.task.max_length
        )
        accuracies = {subset: float(answers[mask].mean()) if mask.any() else None for subset, mask in subsets.items()}
        return facts | {"accuracy": accuracies, "correct": "".join("1" if answer else "0" for answer in answers)}


def hash_text(text: str) -> str:
    """Returns a name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
