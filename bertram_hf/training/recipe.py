"""A training recipe: everything that `bertram train` needs to know, as one YAML file."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..configuration_bertram import PRESETS
from ..corpus.settings import CorpusSource
from ..utils.names import Precision
from ..utils.settings import build_settings, load_settings

# Of a trained model: changing them trains nothing anew.
SET_AFTER_TRAINING = ("piece_strength", "agreement_threshold", "misleading_agreement")


@dataclass(frozen=True)
class LossSettings:
    """Weights of the terms of [`MimickingLoss`]. The default is the paper's loss.

    Args:
        mse: Weight of the mean squared error over words and dimensions (Section 3.3).
        cosine: Weight of 1 - cosine between the two vectors, both minus the mean of the vocabulary's embeddings, which
            is common to all words and would make all cosines alike.
        contrastive: Weight of the cross-entropy of finding the target among the vocabulary by that cosine: the vector
            must not only be near its target, but nearer than to all other words.
        temperature: Of the contrastive term; cosines are divided by it.
    """

    mse: float = 1.0
    cosine: float = 0.0
    contrastive: float = 0.0
    temperature: float = 0.05

    def __post_init__(self) -> None:
        weights = (self.mse, self.cosine, self.contrastive)
        if min(weights) < 0 or max(weights) == 0 or self.temperature <= 0:
            raise ValueError(
                "Expected weights of 0 or more, one of them positive, and a positive temperature; got "
                f"mse={self.mse}, cosine={self.cosine}, contrastive={self.contrastive}, temperature={self.temperature}."
            )


@dataclass(frozen=True)
class StageSettings:
    """How one stage is trained: what is ours; `trainer` holds the fields of `transformers.TrainingArguments`.

    Args:
        contexts_per_batch: Contexts in a batch, cut at random into words, as in the paper; or
        words_per_batch: words in a batch.
        min_contexts: Least contexts of a word in a batch; 0 with `max_contexts` 0 trains the form alone.
        max_contexts: Most contexts of a word in a batch.
        max_repetitions: How often a word may appear in an epoch, each time with other contexts; once for every 100
            occurrences in the corpus.
        loss: The loss.
        cache: Whether what the frozen encoder says of each context is computed once and kept on disk.
        cache_dtype: `"float16"` or `"float32"`.
        cached_form_dropout: For modes whose encoder reads a frozen form vector: whether the cache is made with n-gram
            dropout, drawn once for each context. If not, the encoder sees whole form vectors, as in induction.
        freeze_form: Whether the form part is frozen in the third stage; if not given, in modes add and add-quotes.
        ridge: If given, A and b start from a ridge regression with this penalty, from the mean of the contexts.
        lazy_adam: Whether a form stage of n-grams is trained with SparseAdam, which touches only the rows of a batch.
        patience: Stop after so many evaluations on held-out words without a better `metric_for_best_model`, and keep
            the best model. Default of that metric: `mrr`.
        trainer: Fields of `TrainingArguments`, such as `num_train_epochs` and `learning_rate`.
    """

    contexts_per_batch: int | None = None
    words_per_batch: int | None = None
    min_contexts: int = 4
    max_contexts: int = 32
    max_repetitions: int = 5
    loss: LossSettings = field(default_factory=LossSettings)
    cache: bool = True
    cache_dtype: Literal["float16", "float32"] = "float16"
    cached_form_dropout: bool = False
    freeze_form: bool | None = None
    ridge: float | None = None
    lazy_adam: bool = False
    patience: int | None = None
    trainer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PieceStageSettings(StageSettings):
    """How a model of mode pieces is trained, in one stage.

    Args:
        freeze_encoder: Whether the encoder's layers stay as they are; its input embeddings always do.
        encoder_dtype: Precision in which the encoder is run; `"auto"` is bfloat16 where the device is fast at it.
        hard_share: Words of one token are cut as if unknown: so many of them without any token of their family, the
            others only without their own.
        random_share: So many words are cut at random, anew each time, or the network knows the cuts of its training
            words by heart.
        hidden_share: So many words with contexts are written as one unknown token, so that contexts must be read.
        bare_share: So many words of a batch come without a context.
        piece_strength: Of the trained model; see [`BertramConfig`].
        agreement_threshold: Of the trained model.
        misleading_agreement: Of the trained model.
        ridge_words: The ridge regression is made on at most so many words, as the encoder has to read them.
        meaning: Weight of definitions in [`EncoderLoss`]; words of several pieces need no target for it.
        restoring: Weight of texts in [`EncoderLoss`].
        max_untargeted: At most so many words of several pieces that have no target, drawn at random.
    """

    freeze_encoder: bool = True
    encoder_dtype: Precision = "auto"
    hard_share: float = 0.6
    random_share: float = 0.5
    hidden_share: float = 0.25
    bare_share: float = 0.1
    piece_strength: float | None = 8.0
    agreement_threshold: float | None = 0.1
    misleading_agreement: float | None = 0.6
    ridge_words: int = 4000
    meaning: float = 0.0
    restoring: float = 0.0
    max_untargeted: int | None = None

    def __post_init__(self) -> None:
        for name in ("hard_share", "random_share", "hidden_share", "bare_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1]; got {getattr(self, name)}.")

    @property
    def has_probes(self) -> bool:
        """Whether vectors are also judged by what they do in the original encoder."""
        return self.meaning > 0 or self.restoring > 0


@dataclass(frozen=True)
class LookAlikeSettings:
    """How a model learns which words are misspellings.

    Args:
        num_words: So many training words are drawn and misspelt, frequent ones more often: by the root of their
            number of occurrences. As many training words of several pieces, each as likely as any other, are the
            unknown words, of whose look-alikes none is meant; words of one piece if there are no others.
        misspelt_share: How many of the unknown words that the model will meet without a context are misspellings of
            known ones. Few misspellings are made again and again: with n contexts the odds are (1 + n)² times less.
        two_errors_share: How many of the misspellings have two errors.
        max_contexts: Most contexts of a word; none is as usual as one.
    """

    num_words: int = 3000
    misspelt_share: float = 0.3
    two_errors_share: float = 0.2
    max_contexts: int = 16

    def __post_init__(self) -> None:
        for name in ("misspelt_share", "two_errors_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1]; got {getattr(self, name)}.")


# The training details of the paper's appendix, for BERT-base.
PAPER_CONTEXT_STAGE = StageSettings(
    contexts_per_batch=48,
    trainer={"num_train_epochs": 5, "learning_rate": 5e-5, "warmup_steps": 0.1, "weight_decay": 0.01},
)
PAPER_FORM_STAGE = StageSettings(
    words_per_batch=64,
    min_contexts=0,
    max_contexts=0,
    trainer={"num_train_epochs": 20, "learning_rate": 0.01, "optim": "adamw_torch_fused"},
)
PAPER_COMBINED_STAGE = replace(PAPER_CONTEXT_STAGE, trainer={**PAPER_CONTEXT_STAGE.trainer, "num_train_epochs": 3})

# Not in the paper: what was best for an encoder that is no masked language model.
PIECE_STAGE = PieceStageSettings(
    words_per_batch=48,
    min_contexts=1,
    max_contexts=16,
    loss=LossSettings(mse=0.0, contrastive=1.0),
    meaning=0.3,
    restoring=5.0,
    ridge=1000.0,
    freeze_encoder=False,
    trainer={
        "num_train_epochs": 3,
        "learning_rate": 1.5e-4,
        "warmup_steps": 100,
        "weight_decay": 0.01,
        "max_grad_norm": 1.0,
    },
)


@dataclass(frozen=True)
class TargetSettings:
    """Which words are trained on. A word of one piece has the encoder's own embedding as its target.

    Args:
        whole_vocabulary: Whether words of one piece are trained on however rare they are in the corpus, as the encoder
            has seen them often; else `min_count` of the corpus holds for them too.
        min_length: Words with fewer letters are left out.
        min_contexts: Words with fewer sentences are left out.
        vectors: Folders or Hub names of vectors of the same encoder, such as `bertram approximate` writes; words of
            several pieces that stand there have them as their targets.
        approximate: Whether other words of several pieces get targets by one-token approximation.
        approximate_max_words: At most so many of them, the most frequent ones.
        approximation: Arguments of `approximate_vectors`, such as `optimizer` and `iterations`.
    """

    whole_vocabulary: bool = False
    min_length: int = 1
    min_contexts: int = 1
    vectors: list[str] = field(default_factory=list)
    approximate: bool = True
    approximate_max_words: int | None = None
    approximation: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class HeldoutSettings:
    """Which words are never trained on, nor words of their families.

    Args:
        words: A file of words, one on each line, that trained models are scored on.
        corpus: Where the contexts of these words come from; by default from the training corpora.
        num_contexts: Numbers of contexts to score with.
        num_draws: How many random choices of contexts are averaged.
        excluded: Files of more words that are never trained on, such as those of a benchmark.
        excluded_spellings: Files of words that are no training words without a target either, while others of their
            families may be, such as words that a benchmark takes for rare.
        development_share: Share of the other families that is held out to watch the training.
    """

    words: str | None = None
    corpus: CorpusSource | None = None
    num_contexts: list[int] = field(default_factory=lambda: [0, 1, 2, 4, 8, 16, 32])
    num_draws: int = 1
    excluded: list[str] = field(default_factory=list)
    excluded_spellings: list[str] = field(default_factory=list)
    development_share: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.development_share < 1:
            raise ValueError(f"development_share must lie in [0, 1); got {self.development_share}.")


@dataclass(frozen=True)
class Recipe:
    """A training recipe.

    Args:
        encoder: Name or folder of the encoder.
        output: Folder for all that is made.
        corpora: Where contexts come from; a word gets contexts from each.
        systems: Which models to train: names of presets, such as `bertram-add` or `mimick`.
        encoder_name: The encoder's name on the Hub, if `encoder` is a local folder; saved models load it from there.
        max_length: Longest input of the encoder, in tokens.
        model: Fields of `BertramConfig` that all systems share. `output_norm: vocabulary` stands for the median
            distance of the targets from the vocabulary's mean.
        targets: Which words are trained on.
        heldout: Which words are not.
        context: The first stage. Stages take what they do not say from the paper. Without it (null), the third stage
            must start from a ridge regression.
        form: The second stage.
        combined: The third stage.
        combined_for: Fields of the third stage that differ for a preset.
        pieces: The only stage of `bertram-pieces`.
        definitions: For `bertram-pieces`: a file of JSON lines with `word` and `definitions`. They serve as contexts
            and for `pieces.meaning`. A definition that holds a word of the same family is left out.
        form_folds: If given, so many more form parts are trained, each without one share of the word families, and a
            third stage with a frozen form part sees each word's form vector from the part that has not seen its family.
            A form part knows its own training words far too well: a third stage that sees these vectors trusts the
            spelling more than it should.
        look_alikes: If given, a last stage in which models that read contexts learn which words are misspellings of
            training words; see [`LookAlikeMixture`]. `{}` takes its defaults.
        features: Folder of the cached features; by default inside `output`. Runs that share a folder share what is the
            same for them.
        form_min_count: An n-gram is read if so many training words have it.
        dtype: Of the saved weights: float32 or float16.
        save_layers: Whether the encoder's layers are saved with a model. For an encoder that has the input embeddings
            of the one that `encoder_name` names and layers of its own, as `bertram masked-lm` makes one.
        seed: Seed of everything.
        description: Of the data, for the model card.

    Example:
        >>> recipe = Recipe("bert-base-uncased", "out", [CorpusSource(inputs=["novels/*.txt"])])
        >>> recipe.combined.trainer["num_train_epochs"]
        3
    """

    encoder: str
    output: str
    corpora: list[CorpusSource]
    systems: list[str] = field(default_factory=lambda: ["bertram-add"])
    encoder_name: str | None = None
    max_length: int = 96
    model: dict[str, Any] = field(default_factory=dict)
    targets: TargetSettings = field(default_factory=TargetSettings)
    heldout: HeldoutSettings = field(default_factory=HeldoutSettings)
    context: StageSettings | None = PAPER_CONTEXT_STAGE
    form: StageSettings = PAPER_FORM_STAGE
    combined: StageSettings = PAPER_COMBINED_STAGE
    combined_for: dict[str, dict[str, Any]] = field(default_factory=dict)
    pieces: PieceStageSettings = PIECE_STAGE
    definitions: str | None = None
    form_folds: int = 0
    look_alikes: LookAlikeSettings | None = None
    features: str | None = None
    form_min_count: int = 4
    dtype: str = "float32"
    save_layers: bool = False
    seed: int = 0
    description: str = ""

    def __post_init__(self) -> None:
        unknown = [name for name in [*self.systems, *self.combined_for] if name not in PRESETS]
        if unknown or not self.systems:
            raise ValueError(f"systems: expected some of {', '.join(PRESETS)}; got {unknown or 'none'}.")
        if not self.corpora:
            raise ValueError("corpora: expected at least one corpus; got none.")
        if self.dtype not in ("float32", "float16"):
            raise ValueError(f"dtype must be float32 or float16; got {self.dtype!r}.")
        if self.form_folds < 0 or self.form_folds == 1:
            raise ValueError(f"form_folds must be 0 or at least 2; got {self.form_folds}.")
        for preset in self.systems:
            mode = PRESETS[preset]["mode"]
            needs_context = mode == "context" or (
                mode not in ("form", "pieces") and self.combined_stage(preset).ridge is None
            )
            if self.context is None and needs_context:
                raise ValueError(f"context: {preset} needs a first stage, or `ridge` in its third one; got null.")
            stage = self.combined_stage(preset)
            if stage.cached_form_dropout and (self.form_folds or not stage.cache):
                raise ValueError(
                    f"cached_form_dropout: {preset} has {'form_folds' if self.form_folds else 'cache: false'}, where "
                    "the encoder sees whole form vectors; set one of the two back."
                )

    def combined_stage(self, preset: str) -> StageSettings:
        """Returns the third stage of a preset."""
        return build_settings(StageSettings, self.combined_for.get(preset, {}), f"combined_for.{preset}", self.combined)

    @classmethod
    def load(cls, path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> "Recipe":
        """Reads a YAML file.

        Args:
            path: The file.
            overrides: Values that replace or add to those of the file.

        Raises:
            ValueError: If the file is no YAML or has a field that no recipe has, with those that there are.
        """
        return load_settings(cls, path, overrides)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Recipe":
        """Makes a recipe of nested dictionaries, as a YAML file has them.

        Example:
            >>> content = {"encoder": "bert-base-uncased", "output": "out", "corpora": [{"inputs": ["a.txt"]}]}
            >>> Recipe.from_dict(content | {"context": {"trainer": {"num_train_epochs": 1}}}).context.trainer
            {'num_train_epochs': 1, 'learning_rate': 5e-05, 'warmup_steps': 0.1, 'weight_decay': 0.01}
        """
        return build_settings(cls, content)
