"""The three stages of training (Section 3.3 of the paper), from a recipe to finished models."""

import copy
import hashlib
import json
import logging
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer, set_seed

from ..configuration_bertram import BertramConfig, preset_fields
from ..evaluation.reliability import fit_reliability
from ..induction.batching import encode_words
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..processing_look_alikes import LookAlikes
from ..tokenization_form import FormTokenizer
from ..utils.distributed import join_processes
from ..utils.hashing import derive_seed, fingerprint, hash_model
from ..utils.models import half_precision
from ..words.families import word_family
from ..words.pieces import PieceReader, vocabulary_words
from .batches import WordCollator, count_repetitions
from .data import TrainingData, prepare_data
from .fusion import NETWORK_FIELDS, context_part, form_part, fuse, replace_fields
from .inputs import prepare_inputs
from .look_alikes import FITTING_VERSION, fit_look_alikes
from .losses import EncoderLoss
from .pieces import PieceCollator
from .recipe import SET_AFTER_TRAINING, LookAlikeSettings, PieceStageSettings, Recipe, StageSettings
from .record import SystemWriter
from .ridge import start_from_ridge
from .stage import check_trainer_fields, read_record, train_stage, write_record
from .trainer import heldout_batches

logger = logging.getLogger(__name__)
DEVELOPMENT_CONTEXTS = (1, 4, 16)


def train_recipe(recipe: Recipe, *, command: str | None = None, show_progress: bool = True) -> dict[str, Path]:
    """Trains the systems of a recipe. What is finished is not done again, so the same call goes on after a kill.

    Each system is saved in a folder of its name inside `recipe.output`: the model without the frozen encoder, its
    processor, and `training.json` with data, stages and scores.

    Args:
        recipe: The recipe.
        command: The command that was given, for the record.
        show_progress: Whether to show progress bars.

    Returns:
        The folder of each system.

    Example:
        >>> train_recipe(Recipe.load("recipe.yaml"))  # doctest: +SKIP
        {'bertram-add': PosixPath('out/bertram-add')}
    """
    return TrainingRun(recipe, command=command, show_progress=show_progress).train()


class TrainingRun:
    """The work on one recipe; see `train_recipe`."""

    def __init__(self, recipe: Recipe, *, command: str | None = None, show_progress: bool = True) -> None:
        check_trainer_fields(recipe)
        self.recipe, self.command = recipe, command
        self.output = Path(recipe.output)
        self.process = join_processes()
        self.show_progress = show_progress and self.process.is_main_process
        self.tokenizer = AutoTokenizer.from_pretrained(recipe.encoder)
        self.encoder = AutoModel.from_pretrained(recipe.encoder).eval().to(self.process.device)
        self.vocabulary = self.encoder.get_input_embeddings().weight.detach().float()
        with self.process.main_process_first():
            self.data: TrainingData = prepare_data(
                recipe, self.encoder, self.tokenizer, show_progress=self.show_progress
            )
        self._prepare_inputs = partial(prepare_inputs, data=self.data, recipe=recipe, show_progress=self.show_progress)
        self._encoder_hash = hash_model(self.encoder)

    def train(self) -> dict[str, Path]:
        """Trains all systems. Returns their folders."""
        folders = {}
        writer = SystemWriter(self.recipe, self.data, self.encoder, self.process, self.command, self.show_progress)
        for preset in self.recipe.systems:
            config = self.configure(preset)
            if config.mode == "form":
                model, stages = self.train_form(config), [self.stage_folder("form", config)]
            elif config.mode == "context":
                model, stages = self.train_context(config), [self.stage_folder("context", config)]
            elif config.mode == "pieces":
                model = self.train_pieces(preset, config)
                stages = [self.stage_folder(preset, config)]
                if self.recipe.look_alikes is not None:
                    stages.append(self.stage_folder(f"{preset}-look-alikes", config))
            else:
                model = self.train_combined(preset, config)
                names = ["form", preset] if self.recipe.context is None else ["context", "form", preset]
                if self.recipe.look_alikes is not None:
                    names.append(f"{preset}-look-alikes")
                stages = [self.stage_folder(name, config) for name in names]
            folders[preset] = writer.finish(preset, model, stages)
        return folders

    def configure(self, preset: str) -> BertramConfig:
        """Returns the configuration of a system: the preset's fields, and those of the recipe that fit its mode."""
        shared = dict(self.recipe.model)
        if shared.get("output_norm") == "vocabulary":
            vectors = self.data.targets.embeddings - self.vocabulary.mean(dim=0).cpu()
            shared["output_norm"] = round(vectors.norm(dim=1).median().item(), 4)
        mode = preset_fields(preset)["mode"]
        if not BertramConfig(mode=mode).encoder_reads_form and mode != "pieces":
            shared.pop("form_strength", None)
            shared.pop("second_map", None)
        if mode == "form":
            shared.pop("output_norm", None)
        return BertramConfig(**shared | preset_fields(preset))

    def train_context(self, config: BertramConfig) -> BertramModel:
        """First stage: A, b and the weighting of contexts, with masked contexts that hold no form vector."""
        assert self.recipe.context is not None  # as Recipe has checked
        config = context_part(config)
        model, processor = self.new_model(config, "context")
        makers = self._prepare_inputs(model, processor, self.recipe.context)
        return self._train(model, processor, makers, self.recipe.context, self.stage_folder("context", config))

    def train_form(self, config: BertramConfig, *, fold: int | None = None) -> BertramModel:
        """Second stage: the form part alone, on all training words or on those outside a fold."""
        config = form_part(config)
        model, processor = self.new_model(config, "form")
        settings = replace(self.recipe.form, min_contexts=0, max_contexts=0)
        folder, words = self.stage_folder("form", config), self.data.train
        if fold is not None:
            folder = folder.with_name(f"{folder.name}-without-fold-{fold}")
            words = [word for word in words if self.fold_of(word) != fold]
        makers = self._prepare_inputs(model, processor, settings, words=words)
        return self._train(model, processor, makers, settings, folder)

    def fold_of(self, word: str) -> int:
        """Returns the fold of a word's family."""
        return derive_seed(self.recipe.seed, "fold", word_family(word)) % self.recipe.form_folds

    def unseen_forms(self, config: BertramConfig, processor: BertramProcessor) -> torch.Tensor:
        """Returns the form vectors (W, H) of all training words, each from a form part that was trained without it."""
        forms = torch.empty(len(self.data.train), self.vocabulary.shape[1])
        for fold in range(self.recipe.form_folds):
            model = self.train_form(config, fold=fold).eval()
            rows = [row for row, word in enumerate(self.data.train) if self.fold_of(word) == fold]
            if rows:
                with torch.no_grad():
                    words = [self.data.train[row] for row in rows]
                    forms[rows] = encode_words(model, processor, words).cpu()
        return forms

    def train_combined(self, preset: str, config: BertramConfig) -> BertramModel:
        """Third stage: both parts, fused into the system's mode."""
        parts = (
            [self.train_form(config)]
            if self.recipe.context is None
            else [self.train_context(config), self.train_form(config)]
        )
        settings = self.recipe.combined_stage(preset)
        # "For add, we additionally found it helpful to freeze the form part in the third training stage."
        freeze_form = config.mode in ("add", "add-quotes") if settings.freeze_form is None else settings.freeze_form
        model, processor = self.new_model(replace_fields(config, freeze_form=freeze_form), preset)
        fuse(model, *parts)
        forms = self.unseen_forms(config, processor) if self.recipe.form_folds and freeze_form else None
        folder = self.stage_folder(preset, config)
        makers = self._prepare_inputs(model, processor, settings, forms=forms)
        model = self._train(model, processor, makers, settings, folder)
        if self.recipe.look_alikes is None:
            return model
        return self.train_look_alikes(model, processor, makers[0], folder, self.recipe.look_alikes)

    def train_pieces(self, preset: str, config: BertramConfig) -> BertramModel:
        """The only stage of a model that reads the pieces of words."""
        settings = self.recipe.pieces
        config = replace_fields(config, freeze_encoder=settings.freeze_encoder)
        model, processor = self.new_model(config, preset)
        model.encoder_dtype = half_precision(settings.encoder_dtype, self.process.device)
        folder = self.stage_folder(preset, config)
        makers = self._prepare_inputs(model, processor, settings)
        model = self._train(model, processor, makers, settings, folder)
        if settings.piece_strength is not None:  # both readings are trained, each by itself
            model.config.piece_strength = settings.piece_strength
            model.config.agreement_threshold = settings.agreement_threshold
            model.config.misleading_agreement = settings.misleading_agreement
            model.config.hidden_token_id = self.tokenizer.unk_token_id
            if not hasattr(model, "vocabulary_mean"):  # which the agreement is measured from
                mean = model.get_input_embeddings().weight.detach().float().mean(dim=0)
                model.register_buffer("vocabulary_mean", mean)
        if len(makers) > 1:
            model.config.reliability = self.fit_reliability(model, processor, makers[1].contexts.words, folder)
        if self.recipe.look_alikes is None:
            return model
        return self.train_look_alikes(model, processor, makers[0].as_induced(), folder, self.recipe.look_alikes)

    def fit_reliability(
        self, model: BertramModel, processor: BertramProcessor, words: Sequence[str], trained: Path
    ) -> list[float]:
        """Learns on development words how reliable vectors are, and notes it in the stage's folder."""
        with self.process.main_process_first():  # the others then read what it has noted
            record = read_record(trained)
            mixture = [model.config.piece_strength, model.config.agreement_threshold]
            if "reliability" not in record or record.get("mixture") != mixture:
                record["mixture"] = mixture
                record["reliability"] = fit_reliability(
                    model,
                    processor,
                    {word: self.data.contexts[word] for word in words},
                    self.data.targets,
                    seed=self.recipe.seed,
                    show_progress=self.show_progress,
                )
                write_record(trained, record)
        return record["reliability"]

    def encoder_loss(self, settings: StageSettings, dtype: torch.dtype | None) -> EncoderLoss | None:
        """Returns the loss through the original encoder, if a stage has one."""
        if not isinstance(settings, PieceStageSettings) or not settings.has_probes:
            return None
        encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        if self.process.device.type == "cpu":
            encoder.set_attn_implementation("eager")  # twice as fast, where texts are short and gradients are wanted
        return EncoderLoss(
            encoder,
            self.tokenizer.mask_token_id,
            meaning=settings.meaning,
            restoring=settings.restoring,
            dtype=dtype,
        )

    def train_look_alikes(
        self,
        model: BertramModel,
        processor: BertramProcessor,
        inputs: WordCollator,
        trained: Path,
        settings: LookAlikeSettings,
    ) -> BertramModel:
        """Last stage: which words are misspellings of known ones; on top of the stage in the folder `trained`.

        It learns from training words; the model then knows all words of the vocabulary.
        """
        letters_only = [word for word in self.data.train if word.isalpha()]
        pieces = PieceReader(self.tokenizer).split(letters_only)
        known = {word: ids[0] for word, ids in zip(letters_only, pieces, strict=True) if len(ids) == 1}
        processor.look_alikes = LookAlikes(list(known), list(known.values()))
        occurrences = np.array([self.data.contexts.counts[word] for word in inputs.contexts.words])
        content = [FITTING_VERSION, read_record(trained)["fingerprint"], asdict(settings), self.recipe.seed]
        content += [
            known,
            occurrences.tolist(),
            *([model.config.piece_strength, model.config.agreement_threshold] if model.config.piece_strength else []),
        ]
        made_from = fingerprint(content)
        folder = trained.with_name(f"{trained.name}-look-alikes")
        with self.process.main_process_first():  # the others then load what it has saved
            record = read_record(folder)
            if record.get("fingerprint") != made_from:
                shutil.rmtree(folder, ignore_errors=True)
                start = time.perf_counter()
                mixing, loss = fit_look_alikes(model, processor, inputs, occurrences, settings, seed=self.recipe.seed)
                processor.look_alikes = self.all_words()
                mixing.save_pretrained(folder, include_encoder=model.trained_encoder)
                processor.save_pretrained(folder)
                seconds = round(time.perf_counter() - start, 1)
                write_record(folder, {"fingerprint": made_from, "train_loss": loss, "seconds": seconds})
        return BertramModel.from_pretrained(folder, encoder=model.encoder)

    def all_words(self) -> LookAlikes:
        """Returns all words of letters that the tokenizer has a token for, also those that are never trained on: what a
        word may be a misspelling of."""
        reader = PieceReader(self.tokenizer)
        words = vocabulary_words(reader)
        return LookAlikes(words, [ids[0] for ids in reader.split(words)])

    def stage_folder(self, stage: str, config: BertramConfig) -> Path:
        """Returns the folder of a stage. Systems share the first two stages if these are the same for them."""
        name = stage
        if stage == "context":
            bias = "" if config.output_bias else "-no-bias"
            name = f"context-{config.context_encoder}-{config.context_layers}-{config.context_weighting}{bias}"
        elif stage == "form":
            name = f"form-{config.form_encoder}"
        return self.output / "stages" / name

    def new_model(self, config: BertramConfig, name: str) -> tuple[BertramModel, BertramProcessor]:
        """Starts a model on the encoder, with weights that depend on seed and name only, and its processor."""
        recipe = self.recipe
        processor = BertramProcessor.from_encoder(
            self.tokenizer,
            mode=config.mode,
            form_words=[],
            form_encoder=config.form_encoder,
            max_length=recipe.max_length,
        )
        if config.has_form_encoder:
            processor.form = FormTokenizer.from_words(
                map(processor.normalize_word, self.data.train),
                unit="ngram" if config.form_encoder == "ngram" else "character",
                min_count=recipe.form_min_count,
            )
        set_seed(derive_seed(recipe.seed, name, num_bytes=4))
        fields = {name: getattr(config, name) for name in NETWORK_FIELDS}
        fields["form_vocab_size"] = len(processor.form) if processor.form is not None else 2
        model = BertramModel.from_encoder(
            self.encoder, encoder_name_or_path=recipe.encoder_name or str(recipe.encoder), **fields
        )
        return model, processor

    def _train(
        self,
        model: BertramModel,
        processor: BertramProcessor,
        makers: Sequence[WordCollator],
        settings: StageSettings,
        folder: Path,
    ) -> BertramModel:
        """Trains a model on the inputs that `_prepare_inputs` returned, as far as that is not done yet."""
        recipe, config = self.recipe, model.config
        train = makers[0].contexts
        occurrences = np.array([self.data.contexts.counts[word] for word in train.words])
        made_from = self._fingerprint(model, processor, makers, settings, occurrences)
        heldout = None
        if len(makers) > 1:
            numbers = (0, *DEVELOPMENT_CONTEXTS) if config.reads_pieces else DEVELOPMENT_CONTEXTS
            heldout = heldout_batches(makers[1], numbers if config.has_context else (0,))
        record = read_record(folder)
        # A run that was killed before its first checkpoint starts here again.
        is_finished = record.get("fingerprint") == made_from and record.get("finished")
        if settings.ridge is not None and not is_finished:
            if makers[0].features is None and not config.reads_pieces:
                raise ValueError("A ridge start needs cached features: set cache: true, and freeze what it depends on.")
            start_from_ridge(
                model,
                makers[0],
                penalty=settings.ridge,
                min_contexts=settings.min_contexts,
                max_contexts=settings.max_contexts,
                max_words=getattr(settings, "ridge_words", None),
                seed=recipe.seed,
            )
        return train_stage(
            model,
            processor,
            makers[0],
            occurrences,
            settings=settings,
            folder=folder,
            fingerprint=made_from,
            vocabulary=self.vocabulary,
            heldout=heldout,
            encoder_loss=self.encoder_loss(settings, model.encoder_dtype),
            seed=recipe.seed,
        )

    def _fingerprint(
        self,
        model: BertramModel,
        processor: BertramProcessor,
        makers: Sequence[WordCollator],
        settings: StageSettings,
        occurrences: np.ndarray,
    ) -> str:
        """Names all that a stage's result depends on."""
        digest = hashlib.sha256()
        keys = [maker.contexts.key for maker in makers]
        config = {name: getattr(model.config, name) for name in NETWORK_FIELDS}
        form = [] if processor.form is None else processor.form.vocab
        start = {name: value for name, value in model.state_dict().items() if not name.startswith("encoder.")}
        stage = {name: value for name, value in asdict(settings).items() if name not in SET_AFTER_TRAINING}
        for part in (config, stage, self.recipe.seed, *keys, form, self._encoder_hash):
            digest.update(json.dumps(part, sort_keys=True, default=str).encode())
        for tensor in (makers[0].targets, makers[0].form_embeddings):
            digest.update(b"" if tensor is None else tensor.numpy().tobytes())
        if self.data.definitions and isinstance(makers[0], PieceCollator):
            digest.update(json.dumps([self.data.definitions.get(word) for word in makers[0].contexts.words]).encode())
        if isinstance(makers[0], PieceCollator):
            digest.update(makers[0].cuts.key.encode())
        digest.update(count_repetitions(occurrences, settings.max_repetitions).astype(np.int64).tobytes())
        for name, value in sorted(start.items()):
            digest.update(name.encode() + value.cpu().numpy().tobytes())
        return digest.hexdigest()[:32]
