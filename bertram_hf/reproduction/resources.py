"""What the tasks of an evaluation share: the encoder, the trained systems, contexts and counts."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ..configuration_bertram import PRESETS
from ..corpus.build import read_counts
from ..corpus.contexts import CorpusContexts, build_source
from ..corpus.settings import CorpusSource
from ..evaluation.embedding import SentenceEmbedder
from ..processing_context import is_uncased
from ..training.recipe import Recipe
from ..training.run import train_recipe
from ..utils.distributed import join_processes
from .recipe import DefinitionTask, EvaluatedSystem, EvaluationRecipe, TermTask
from .rows import ResultRows, add_options, file_name
from .systems import DrawnVectors, VectorSource, name_model

logger = logging.getLogger(__name__)
TASKS = ("recovery", "misspellings", "similarity", "definitions", "terms", "wnlampro", "rarified", "natural")


class Resources:
    """What the tasks of one evaluation recipe share, each made when it is first asked for.

    Args:
        recipe: The recipe.
        systems: Names of the systems to evaluate; by default all of the recipe.
        seeds: Seeds to run; by default all of the recipe.
        command: The command that runs the whole recipe, for the record.
        show_progress: Whether to show progress bars.

    Raises:
        ValueError: If the recipe has no system of such a name, or a system is a preset and no training recipe is given.
    """

    def __init__(
        self,
        recipe: EvaluationRecipe,
        *,
        systems: Sequence[str] = (),
        seeds: Sequence[int] = (),
        command: str | None = None,
        show_progress: bool = True,
    ) -> None:
        self.recipe, self.command, self.show_progress = recipe, command, show_progress
        names = [system.name for system in recipe.systems]
        unknown = [name for name in systems if name not in names]
        if unknown:
            raise ValueError(f"There is no system {unknown[0]!r} in the recipe. Systems: {', '.join(names)}.")
        self.systems = [system for system in recipe.systems if not systems or system.name in systems]
        self.seeds = list(seeds) or recipe.seeds
        self.output, self.work = Path(recipe.output), Path(recipe.work)
        self._trained: dict[int, dict[str, Path]] = {}  # the folders of the presets among the systems, by seed
        self._contexts: dict[str, dict[str, list[str]]] = {}  # of the words of a task, by its name
        self._drawn: dict[tuple[str, str, int], DrawnVectors] = {}  # by task, model and seed
        needs_training = [system.name for system in self.systems if system.model in PRESETS]
        if needs_training and recipe.training is None:
            raise ValueError(
                f"training: {needs_training[0]} is a preset, which a training recipe must train; got none."
            )

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The encoder's tokenizer."""
        return AutoTokenizer.from_pretrained(self.recipe.encoder)

    @cached_property
    def encoder(self) -> PreTrainedModel:
        """The encoder, on the device of this process."""
        return AutoModel.from_pretrained(self.recipe.encoder).eval().to(join_processes().device)

    @cached_property
    def embedder(self) -> SentenceEmbedder:
        """Embeds texts with the encoder; what it embeds without injection serves all systems."""
        return SentenceEmbedder(self.encoder, self.tokenizer, show_progress=self.show_progress)

    @property
    def lower_case(self) -> bool:
        """Whether the encoder reads words in lower case."""
        return is_uncased(self.tokenizer)

    @property
    def vocabulary(self) -> torch.Tensor:
        """(V, H), the encoder's input embeddings."""
        return self.encoder.get_input_embeddings().weight.detach().float()

    def command_of(self, task: str) -> str | None:
        """Returns the command that runs one task, or one rarified set."""
        return add_options(self.command, ["--only", task])

    def rows_of(self, task: str, *, file: str | None = None, items: bool = False) -> ResultRows:
        """Returns the rows of one task, or one classification set.

        Args:
            task: Its name.
            file: What its files are called, if not as the task.
            items: Whether a row has an entry for each text or question, so that the file to share is compressed.
        """
        name = file_name(file or task)
        published = self.output / f"{name}.jsonl{'.gz' if items else ''}"
        return ResultRows(self.work / "rows" / name, published, command=self.command_of(task))

    @cached_property
    def counts(self) -> Counter[str]:
        """How often words occur in the corpora."""
        return read_counts(
            build_source(
                source, self.work / f"corpus-counts-{index}", lower_case=True, show_progress=self.show_progress
            )
            for index, source in enumerate(self.recipe.corpora)
        )

    def runs(self) -> Iterator[tuple[EvaluatedSystem, int]]:
        """Yields each chosen system with each of its seeds; what is not trained here has one seed."""
        for system in self.systems:
            for seed in self.seeds if system.model in PRESETS else self.seeds[:1]:
                yield system, seed

    @property
    def recipe_seeds(self) -> list[int]:
        """The seeds of the recipe, and those chosen besides."""
        return list(dict.fromkeys([*self.recipe.seeds, *self.seeds]))

    def recipe_runs(self) -> Iterator[tuple[EvaluatedSystem, int]]:
        """Yields each system of the recipe with each seed, for whatever results there are."""
        return product(self.recipe.systems, self.recipe_seeds)

    def training_recipe(self, presets: Sequence[str], seed: int) -> Recipe:
        """Returns the recipe by which presets are trained."""
        assert self.recipe.training is not None  # as the constructor has checked
        output = self.work / "training" / f"seed-{seed}"
        changes = {"systems": list(presets), "seed": seed, "output": str(output), "encoder": self.recipe.encoder}
        return Recipe.load(self.recipe.training, changes)

    def describe_model(self, system: EvaluatedSystem, seed: int) -> Any:
        """Returns what a system's model depends on, as JSON holds it: a preset on how it is trained, so that nothing
        need be trained to know that a result is up to date; any other on its weights."""
        if system.model not in PRESETS:
            return name_model(system.model)
        if self.recipe.training is None:  # not chosen, as the constructor has checked: no result is up to date
            return None
        settings = asdict(self.training_recipe([system.model], seed))
        left_out = ["output", "features", "save_layers"]
        if PRESETS[system.model]["mode"] != "pieces":
            left_out += ["pieces", "definitions"]
        return {name: value for name, value in settings.items() if name not in left_out}

    def model_of(self, system: EvaluatedSystem, seed: int) -> str:
        """Returns the folder or name of a system's model, which is trained if it is a preset."""
        if system.model not in PRESETS:
            return system.model
        if seed not in self._trained:
            presets = dict.fromkeys(each.model for each in self.systems if each.model in PRESETS)
            command = f"bertram train {self.recipe.training} --set seed={seed}"
            recipe = self.training_recipe(list(presets), seed)
            self._trained[seed] = train_recipe(recipe, command=command, show_progress=self.show_progress)
        return str(self._trained[seed][system.model])

    def vectors_of(self, system: EvaluatedSystem, seed: int) -> VectorSource:
        """Returns where a system's vectors come from."""
        return VectorSource(self.model_of(system, seed), self.encoder, self.tokenizer)

    def find_contexts(self, sources: Sequence[CorpusSource], words: Iterable[str], folder: Path) -> CorpusContexts:
        """Returns the contexts of words in corpora, which are built in a folder unless they are there."""
        words = sorted(set(words))
        folders = [
            build_source(
                source,
                folder / f"contexts-{index}",
                words=words,
                frequent_words=False,
                lower_case=self.lower_case,
                show_progress=self.show_progress,
            )
            for index, source in enumerate(sources)
        ]
        return CorpusContexts(folders)

    def contexts_of(self, source: CorpusSource, words: Sequence[str], name: str) -> dict[str, list[str]]:
        """Returns the contexts of a task's words, looked up once; a word that never occurs has none."""
        if name in self._contexts:
            return self._contexts[name]
        found = self.find_contexts([source], words, self.work / name)
        missing = sum(word not in found for word in words)
        if missing:
            logger.warning("%d of %d words of %s never occur in its corpus.", missing, len(words), name)
        self._contexts[name] = {word: found.get(word) for word in words}
        return self._contexts[name]

    def draw_vectors(
        self,
        name: str,
        task: DefinitionTask | TermTask,
        contexts: Mapping[str, Sequence[str]],
        system: EvaluatedSystem,
        seed: int,
    ) -> DrawnVectors:
        """Returns a system's vectors for a task, drawn once: systems that differ in the mode share them."""
        key = (name, system.model, seed)
        if key not in self._drawn:
            self._drawn[key] = DrawnVectors(
                self.vectors_of(system, seed),
                contexts,
                num_contexts=task.num_contexts,
                num_draws=task.num_draws,
                seed=seed,
                show_progress=self.show_progress,
            )
        return self._drawn[key]
