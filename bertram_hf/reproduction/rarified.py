"""The downstream evaluation (Section 5.3): one classification set, rarified and classified by every system."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from datasets import ClassLabel, Dataset, load_from_disk
from transformers import AutoModelForSequenceClassification, PreTrainedModel, set_seed

from ..corpus.contexts import CorpusContexts
from ..evaluation.rarified import count_rare_words, evaluate_rarified, rare_words, rarified_texts, subset_masks
from ..induction.piece_vectors import mean_piece_vectors
from ..induction.word_vectors import WordVectors
from ..rarification.datasets import load_labelled_texts
from ..rarification.rarify import rarify, read_rows
from ..rarification.replacement import match_case
from ..rarification.sources import find_substitutes
from ..rarification.substitutions import Substitutions
from ..utils.files import read_json, write_json
from ..utils.hashing import describe_files, fingerprint, hash_text
from ..words.splitting import split_words
from .intrinsic import misspell_contexts
from .rarified_tables import RarifiedAnswers
from .recipe import TEXTS, EvaluatedSystem, RarifiedTask
from .resources import Resources
from .rows import file_name
from .systems import ORIGINAL, PLAIN, name_model

SUMMARY_NAME = "rarification.json"
CASES = ("word", "Word", "WORD")


class RarifiedBenchmark:
    """The work on one classification set.

    Args:
        resources: The encoder, systems and corpora.
        task: The classification set.
    """

    def __init__(self, resources: Resources, task: RarifiedTask) -> None:
        self.resources, self.task = resources, task
        self.folder = resources.work / "rarified" / file_name(task.name)
        self.rows = resources.rows_of(task.name, file=f"rarified {task.name}", items=True)
        self._made: dict[int, tuple[PreTrainedModel, Dataset]] = {}  # of the seed at work
        self._induced: dict[tuple[int, str, bool], tuple[WordVectors, dict[str, int]]] = {}

    @property
    def _settings(self) -> dict[str, Any]:
        """All that is said of the set, the corpora and the encoder, as JSON holds it."""
        recipe = self.resources.recipe
        corpora = [asdict(source) for source in recipe.corpora]
        settings = {"task": asdict(self.task), "corpora": corpora, "encoder": name_model(recipe.encoder)}
        return json.loads(json.dumps(settings))

    @property
    def _made_from(self) -> dict[str, Any]:
        """What tells whether something in the work folder is up to date."""
        return {"settings": self._settings, "files": describe_files(self._settings)}

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
        record_path, made_from = self.folder / "substitutions.json", self._made_from
        if path.is_file() and record_path.is_file() and read_json(record_path) == made_from:
            return Substitutions.read(path)
        rows = read_rows(self.texts, task.text_column, task.pair_column)
        found = find_substitutes(
            (word.lower() for row in rows for text in row for word in split_words(text)),
            self.resources.counts,
            self.resources.tokenizer,
            synonyms=task.synonyms,
            misspellings=task.misspellings,
            given=task.substitutions,
            max_count=task.max_count,
            only_unknown=task.only_unknown,
            show_progress=self.resources.show_progress,
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        found.write(path)
        write_json(record_path, made_from)
        return found

    @cached_property
    def contexts(self) -> CorpusContexts:
        """Contexts of all substitutes."""
        words = [
            form
            for _, text, _ in self.substitutions.entries()
            for form in ([text.lower()] if self.resources.lower_case else [match_case(text, case) for case in CASES])
        ]
        return self.resources.find_contexts(self.resources.recipe.corpora, words, self.folder)

    def rarified(self, seed: int) -> tuple[PreTrainedModel, Dataset]:
        """Returns the classifier of a seed and its rarified set, made as far as they are not there yet."""
        if seed not in self._made:
            self._made = {seed: self._make(seed)}
        return self._made[seed]

    def _make(self, seed: int) -> tuple[PreTrainedModel, Dataset]:
        """Loads classifier and rarified set if they are there and up to date, else makes them."""
        task, folder = self.task, self.folder / f"seed-{seed}"
        summary_path = folder / SUMMARY_NAME
        made_from = self._made_from | {
            "substitutions": hash_text("".join(map("\t".join, self.substitutions.entries()))),
        }
        if summary_path.is_file() and read_json(summary_path)["made_from"] == made_from:
            model = AutoModelForSequenceClassification.from_pretrained(folder / "model")
            return model.to(self.resources.encoder.device), load_from_disk(folder / "data")
        shutil.rmtree(folder, ignore_errors=True)
        set_seed(seed)
        label = self.texts.features[task.label_column]
        num_labels = label.num_classes if isinstance(label, ClassLabel) else len(set(self.texts[task.label_column]))
        model = AutoModelForSequenceClassification.from_pretrained(self.resources.recipe.encoder, num_labels=num_labels)
        result = rarify(
            self.texts,
            model,
            self.resources.tokenizer,
            self.substitutions,
            text_column=task.text_column,
            pair_column=task.pair_column,
            label_column=task.label_column,
            max_length=task.max_length,
            max_masked=task.max_masked,
            misspelling_share=task.misspelling_share,
            seed=seed,
            training_arguments={"disable_tqdm": not self.resources.show_progress} | task.trainer,
            show_progress=self.resources.show_progress,
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
        words = rare_words(rarified, lower_case=self.resources.lower_case)
        limit = self.resources.recipe.max_contexts
        found = {word: self.contexts.get(word)[:limit] for word in words}
        if not self.resources.lower_case:  # a name or the first word of a sentence: as the word is written elsewhere
            lower = {word: word.lower() for word in words if not found[word]}
            found |= misspell_contexts(lower, {word: self.contexts.get(word)[:limit] for word in lower.values()})
        if indomain:
            for text in chain(*rarified_texts(rarified)):
                for word in {word.lower() if self.resources.lower_case else word for word in split_words(text)}:
                    if word in found:
                        found[word].append(text)
        return found

    def evaluate(self) -> None:
        """Lets the chosen systems answer on the rarified set of each chosen seed, as far as they have not yet.

        Raises:
            ValueError: If a system has answered on another set of the same seed, made elsewhere.
        """
        for seed in self.resources.seeds:
            options = ["--seed", str(seed)]
            texts = self.rows.make(TEXTS, seed, self._settings, partial(self._describe, seed), options=options)
            for system in self.resources.systems:
                depends_on = self._depends_on(system, seed)
                row = self.rows.make(system.name, seed, depends_on, partial(self._classify, seed, system))
                self._check_texts(row, texts)

    def list_answered(self, seeds: Sequence[int]) -> list[EvaluatedSystem]:
        """Returns the systems of the recipe that have answered for all of the seeds."""
        return [
            system
            for system in self.resources.recipe.systems
            if all(self.rows.find(system.name, seed, self._depends_on(system, seed)) is not None for seed in seeds)
        ]

    def find_answers(self, systems: Sequence[EvaluatedSystem], seeds: Sequence[int]) -> dict[int, RarifiedAnswers]:
        """Returns what systems have answered, for each of the seeds for which all of them have.

        Raises:
            ValueError: If a system has answered on another set of the same seed, made elsewhere.
        """
        answers = {}
        for seed in seeds:
            texts = self.rows.find(TEXTS, seed, self._settings)
            found = {
                system.name: self.rows.find(system.name, seed, self._depends_on(system, seed)) for system in systems
            }
            correct = {}
            for name, row in found.items():
                if texts is not None and row is not None:
                    self._check_texts(row, texts)
                    correct[name] = read_flags(row["correct"])
            if texts is not None and len(correct) == len(systems):
                subsets = {name: read_flags(flags) for name, flags in texts["subsets"].items()}
                answers[seed] = RarifiedAnswers(correct, subsets, texts["counts"], texts["originals"])
        return answers

    def _depends_on(self, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
        return self._settings | {
            "system": asdict(system),
            "model": self.resources.describe_model(system, seed),
            "max_contexts": self.resources.recipe.max_contexts,
        }

    def _check_texts(self, row: Mapping[str, Any], texts: Mapping[str, Any]) -> None:
        if row["texts"] != texts["hash"]:
            raise ValueError(
                f"Results of {row['system']} and others, seed {row['seed']}, are of different rarified sets of "
                f"{self.task.name}: they were made on different machines. Delete {self.rows.folder} "
                f"and {self.rows.published} and run again."
            )

    def _describe(self, seed: int) -> dict[str, Any]:
        """Returns what tables and figures need to know of a seed's rarified set."""
        _, rarified = self.rarified(seed)
        summary = read_json(self.folder / f"seed-{seed}" / SUMMARY_NAME)
        originals = read_rows(rarified, "text", "pair" if "pair" in rarified.column_names else None)
        return {
            "hash": hash_texts(rarified),
            "subsets": {name: write_flags(mask) for name, mask in subset_masks(rarified).items()},
            "counts": count_rare_words(rarified, self.resources.counts),
            "originals": [hash_text("\n".join(row))[:16] for row in originals],
            "rarification": {name: value for name, value in summary.items() if name != "made_from"},
        }

    def _classify(self, seed: int, system: EvaluatedSystem) -> dict[str, Any]:
        """Classifies the rarified set with one system's vectors."""
        model, rarified = self.rarified(seed)
        vectors, facts = self._induce(seed, system, rarified)
        answers = evaluate_rarified(
            model, self.resources.tokenizer, rarified, vectors, mode=system.mode, max_length=self.task.max_length
        )
        subsets = subset_masks(rarified)
        accuracies = {subset: float(answers[mask].mean()) if mask.any() else None for subset, mask in subsets.items()}
        return facts | {"accuracy": accuracies, "correct": write_flags(answers), "texts": hash_texts(rarified)}

    def _induce(
        self, seed: int, system: EvaluatedSystem, rarified: Dataset
    ) -> tuple[WordVectors | None, dict[str, int]]:
        """Returns a system's vectors of the rare words, none for the plain model, and facts about them. Systems that
        differ only in how vectors are injected share them."""
        if system.model == PLAIN:
            return None, {}
        if system.model == ORIGINAL:
            return self._original_vectors(rarified) if len(rarified) else None, {}
        key = (seed, system.model, system.indomain)
        if key not in self._induced:
            contexts = self.contexts_for(rarified, indomain=system.indomain)
            vectors = self.resources.vectors_of(system, seed).induce(
                contexts, show_progress=self.resources.show_progress
            )
            self._induced[key] = (
                vectors,
                {
                    "words": len(contexts),
                    "words_with_contexts": sum(map(bool, contexts.values())),
                    "words_without_vector": len(vectors.failed),
                },
            )
        return self._induced[key]

    def _original_vectors(self, rarified: Dataset) -> WordVectors:
        """Returns for each rare word the vector of a word that it replaces, the mean of pieces if there are several."""
        replaced = {
            word["substitute"].lower() if self.resources.lower_case else word["substitute"]: word["word"]
            for words in rarified["replaced"][:]
            for word in words
        }
        known = mean_piece_vectors(self.resources.encoder, self.resources.tokenizer, sorted(set(replaced.values())))
        embeddings = torch.stack([known[word] for word in replaced.values()])
        return WordVectors(list(replaced), embeddings, embedding_fingerprint=known.embedding_fingerprint)


def write_flags(flags: np.ndarray) -> str:
    """Returns truth values as a string, such as "0110"."""
    return "".join("1" if flag else "0" for flag in flags)


def read_flags(flags: str) -> np.ndarray:
    """Reads what `write_flags` wrote."""
    return np.array([flag == "1" for flag in flags], dtype=bool)


def hash_texts(rarified: Dataset) -> str:
    """Returns a name for a rarified set."""
    return fingerprint([*rarified_texts(rarified), rarified["label"][:]])
