"""Configuration of a BERTRAM network: which parts it has and which encoder it sits on."""

import json
import os
from collections.abc import Collection, Iterable
from typing import Any, Literal, get_args

from huggingface_hub.dataclasses import strict
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

Mode = Literal["form", "context", "shallow", "replace", "add", "add-quotes", "pieces"]
ContextEncoder = Literal["transformer", "bag-of-words"]
FormEncoder = Literal["ngram", "lstm", "cnn"]
ContextWeighting = Literal["attentive", "uniform", "scored"]
ContextLayers = Literal["last", "all"]
# Every system of the paper's tables is one point of the same configuration space.
PRESETS: dict[str, dict[str, Any]] = {
    "bertram-form": {"mode": "form"},
    "bertram-context": {"mode": "context"},
    "bertram-shallow": {"mode": "shallow"},
    "bertram-replace": {"mode": "replace"},
    "bertram-add": {"mode": "add"},
    "bertram-add-quotes": {"mode": "add-quotes"},
    # The paper's future work: "a character-level CNN similar to the one of Kim et al. (2016)".
    "bertram-add-cnn": {"mode": "add", "form_encoder": "cnn"},
    # Mimick (Pinter et al., 2017): spelling only, read by a character BiLSTM.
    "mimick": {"mode": "form", "form_encoder": "lstm"},
    # A La Carte (Khodak et al., 2018): one linear map of the average of all context words.
    "a-la-carte": {
        "mode": "context",
        "context_encoder": "bag-of-words",
        "context_weighting": "uniform",
        "output_bias": False,
    },
    # Form-context model (Schick & Schütze, 2018) and Attentive Mimicking (2019).
    "fcm": {"mode": "shallow", "context_encoder": "bag-of-words", "context_weighting": "uniform"},
    "attentive-mimicking": {"mode": "shallow", "context_encoder": "bag-of-words"},
    # Not in the paper: the encoder reads the word's own pieces where the word stands, beside the mask.
    "bertram-pieces": {"mode": "pieces", "context_layers": "all", "context_weighting": "scored"},
}
# Look-alikes: words of 3 to 12 letters (longer ones count as 12), and 21 types of one error; see `LookAlikes`.
NUM_LENGTHS = 10
TWO_ERRORS = 21
NUM_ERROR_TYPES = TWO_ERRORS + 1
MAX_JSON_DEPTH = 50
FIX = "Save or download the checkpoint again."
# Fields without which a saved model would load, but give other vectors.
REQUIRED_FIELDS = (
    *("model_type", "text_config", "mode", "context_encoder", "context_layers", "form_encoder", "context_weighting"),
    *("form_strength", "second_map", "output_norm", "look_alikes", "embedding_size"),
)


@strict
class BertramConfig(PreTrainedConfig):
    """Describes a [`BertramModel`].

    Args:
        text_config: Configuration of the encoder, as an object or a dict with `model_type`. Default: `BertConfig()`.
        mode: How form and context are combined (Section 3.2 of the paper). `"add-quotes"` is the RoBERTa variant of
            the appendix. In `"pieces"`, which is not in the paper, the encoder reads the word's own pieces in place of
            the word, followed by "/ [MASK]"; a word without contexts is read alone.
        context_encoder: `"transformer"` reads the encoder at the masked word; `"bag-of-words"` averages the input
            embeddings of the context (FCM, Attentive Mimicking, A La Carte).
        context_layers: Which layers of the transformer are read: `"last"`, as in the paper, or `"all"`, side by side,
            so that the output map learns its own mix of them.
        form_encoder: `"ngram"` averages n-gram embeddings; `"lstm"` (Mimick) and `"cnn"` read characters.
        context_weighting: `"attentive"` (Attentive Mimicking), `"uniform"`, or `"scored"`: a softmax over a learned
            score of each context.
        output_bias: Whether the output map A·v + b has the b.
        form_strength: If given, a word's vector is s·(A·v + b) + (1 - s)·(F·form + c) with s = n / (n + form_strength)
            for n contexts: the spelling counts as much as so many contexts (modes replace, add and add-quotes). Not in
            the paper, where the spelling reaches these modes through the encoder only, however few the contexts are.
            In mode pieces, whose every context holds the spelling, it only gives the s of `second_map`.
        second_map: Whether `form_strength` comes with a second map, so that A·v + b becomes A·v + b + s·(A'·v + b'):
            the more contexts there are, the less noise is in v, and the finer it can be read. Not in the paper.
        output_norm: If given, induced vectors are scaled to this distance from the mean of the encoder's embeddings, so
            that they are as long as the vocabulary's however few the contexts are. Not in the paper.
        look_alikes: Whether the vectors of known words that a word may be a misspelling of are mixed into its own; see
            [`LookAlikeMixture`]. Not in the paper.
        piece_strength: If given, contexts are read twice in mode pieces, with the word's pieces and with
            `hidden_token_id` in their place, and a word's vector is (1 - s)·shown + s·hidden with s =
            n / (n + piece_strength) for n contexts. A network knows the spelling of its training words too well, and
            so trusts that of other words too much.
        agreement_threshold: If given, s is multiplied by sigmoid(agreement_slope · (agreement_threshold - a)), where a
            is the cosine between what the pieces say alone and what the contexts say without them, minus the
            vocabulary's mean: the pieces of a technical term tell its meaning, those of an invented name do not.
        agreement_slope: How sharply pieces are divided into these two kinds.
        misleading_agreement: In mode pieces: a word whose vector has a smaller cosine with what its pieces say alone,
            minus the vocabulary's mean, is better replaced by its vector than read beside it. None for no word.
        hidden_token_id: The token that hides pieces, the unknown one.
        reliability: Coefficients by which the reliability of a vector is estimated; see `assess_vectors`.
        form_vocab_size: Number of n-grams or characters, UNK (0) and PAD (1) included; not used in mode pieces.
        embedding_size: Size of the induced vectors, the encoder's input embedding size. Read from `text_config` if
            not given.
        character_embedding_size: Size of a character embedding (`"lstm"`, `"cnn"`).
        character_hidden_size: Size of each LSTM direction (`"lstm"`).
        ngram_dropout: In training, the share of n-grams that is dropped (`"ngram"`).
        freeze_encoder: Whether the encoder is frozen and always in eval mode, as in the paper. If not, its layers are
            trained, in mode pieces without dropout unless gradients are checkpointed; its input embeddings, whose space
            the vectors are for, never are.
        freeze_form: Whether the form part is frozen (the paper's third stage for `"add"`).
        encoder_name_or_path: Where the encoder came from; a slim checkpoint loads it from there.
        encoder_included: `False` in a slim checkpoint: the weights file does not hold the encoder.
        embedding_fingerprint: Fingerprint of the input embeddings that the vectors belong to.
        initializer_range: Standard deviation of new weights.

    Example:
        >>> from bertram_hf import BertramConfig
        >>> BertramConfig(mode="add").embedding_size
        768
        >>> BertramConfig.from_preset("a-la-carte").context_encoder
        'bag-of-words'
    """

    model_type = "bertram"
    sub_configs = {"text_config": AutoConfig}

    text_config: Any = None  # a dict or None becomes a config on construction
    mode: str = "add"
    context_encoder: str = "transformer"
    context_layers: str = "last"
    form_encoder: str = "ngram"
    context_weighting: str = "attentive"
    output_bias: bool = True
    form_strength: float | int | None = None
    second_map: bool = False
    output_norm: float | int | None = None
    look_alikes: bool = False
    piece_strength: float | int | None = None
    agreement_threshold: float | int | None = None
    agreement_slope: float | int = 12.0
    misleading_agreement: float | int | None = 0.6
    hidden_token_id: int | None = None
    reliability: list[float] | None = None
    form_vocab_size: int = 2
    embedding_size: Any = None  # None becomes a number on construction
    character_embedding_size: int = 20
    character_hidden_size: int = 50
    ngram_dropout: float = 0.1
    freeze_encoder: bool = True
    freeze_form: bool = False
    encoder_name_or_path: str | None = None
    encoder_included: bool = True
    embedding_fingerprint: str | None = None
    initializer_range: float = 0.02

    def __post_init__(self, **kwargs: Any) -> None:
        if self.text_config is None:
            self.text_config = CONFIG_MAPPING["bert"]()
        elif isinstance(self.text_config, dict):
            text_config = dict(self.text_config)
            model_type = text_config.pop("model_type", "bert")
            if not isinstance(model_type, str) or model_type not in CONFIG_MAPPING:
                raise ValueError(
                    f"text_config names the encoder type {model_type!r}, which this version of Transformers does not "
                    "know. Install a version that does, or register its config with AutoConfig first."
                )
            self.text_config = CONFIG_MAPPING[model_type](**text_config)
        elif not isinstance(self.text_config, PreTrainedConfig):
            raise ValueError(
                f"text_config must be the encoder's configuration or a dict; got {type(self.text_config).__name__}."
            )
        if self.embedding_size is None:
            self.embedding_size = getattr(self.text_config, "embedding_size", None) or self.text_config.hidden_size
        super().__post_init__(**kwargs)
        self.validate_choices()

    def validate_choices(self) -> None:
        """Raises a ValueError that lists the choices if a closed field holds something else.

        Called on construction and, by `@strict`, before saving.
        """
        for name, choices in (
            ("mode", get_args(Mode)),
            ("context_encoder", get_args(ContextEncoder)),
            ("form_encoder", get_args(FormEncoder)),
            ("context_weighting", get_args(ContextWeighting)),
            ("context_layers", get_args(ContextLayers)),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}.")
        if self.context_encoder == "bag-of-words" and self.mode not in ("form", "context", "shallow"):
            raise ValueError(f"Mode {self.mode!r} puts the form into a transformer's input; a bag of words has none.")
        if self.form_strength is not None and (
            self.form_strength <= 0 or not (self.encoder_reads_form or (self.reads_pieces and self.second_map))
        ):
            raise ValueError(
                "form_strength must be positive, and the mode replace, add, add-quotes, or pieces with second_map; got "
                f"{self.form_strength} and {self.mode!r}."
            )
        if self.second_map and self.form_strength is None:
            raise ValueError("second_map needs form_strength, which says how contexts are counted; got None.")
        if self.output_norm is not None and (self.output_norm <= 0 or not self.has_context):
            raise ValueError(
                f"output_norm must be positive, and the model must read contexts; got {self.output_norm} and mode "
                f"{self.mode!r}."
            )
        if self.piece_strength is not None and (
            self.piece_strength <= 0 or self.hidden_token_id is None or not self.reads_pieces
        ):
            raise ValueError(
                "piece_strength must be positive, and needs hidden_token_id and the mode pieces; got "
                f"{self.piece_strength}, {self.hidden_token_id} and {self.mode!r}."
            )
        if self.agreement_threshold is not None and self.piece_strength is None:
            raise ValueError("agreement_threshold needs piece_strength, whose share it changes; got None.")
        if self.misleading_agreement is not None and not 0 < self.misleading_agreement <= 1:
            raise ValueError(f"misleading_agreement must lie in (0, 1] or be None; got {self.misleading_agreement}.")
        if self.agreement_slope <= 0:
            raise ValueError(f"agreement_slope must be positive; got {self.agreement_slope}.")
        if self.hidden_token_id is not None and self.hidden_token_id < 0:
            raise ValueError(f"hidden_token_id must be a token of the vocabulary; got {self.hidden_token_id}.")
        if self.look_alikes and not self.has_context:
            raise ValueError("look_alikes needs the encoder's embeddings, which a model of mode 'form' does not have.")
        if self.reliability is not None and (len(self.reliability) != 5 or not self.has_context):
            raise ValueError(
                f"reliability must be five numbers, and the model must read contexts; got {self.reliability} and mode "
                f"{self.mode!r}."
            )
        if not 0.0 <= self.ngram_dropout < 1.0:
            raise ValueError(f"ngram_dropout must lie in [0, 1); got {self.ngram_dropout}.")
        if type(self.embedding_size) is not int or self.embedding_size < 1:
            raise ValueError(f"embedding_size must be a positive whole number; got {self.embedding_size!r}.")
        if self.form_vocab_size < 2:
            raise ValueError(f"form_vocab_size counts UNK and PAD, so it is at least 2; got {self.form_vocab_size}.")

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """Builds the configuration from the content of a config.json.

        Raises:
            ValueError: If a field cannot be used.
        """
        try:
            return super().from_dict(config_dict, **kwargs)
        except (StrictDataclassError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise ValueError(
                f"config.json must describe a BERTRAM model; it cannot be used: {' '.join(str(error).split())} Correct "
                "the field, or save or download the model again."
            ) from error

    @classmethod
    def _dict_from_json_file(cls, json_file: str | os.PathLike) -> dict[str, Any]:
        return cls._decode_special_floats(read_json_file(json_file, required=REQUIRED_FIELDS))

    @property
    def has_form(self) -> bool:
        """Whether the network gives a vector to a word without contexts."""
        return self.mode != "context"

    @property
    def has_form_encoder(self) -> bool:
        """Whether a part of its own reads the spelling, as n-grams or characters."""
        return self.has_form and not self.reads_pieces

    @property
    def reads_pieces(self) -> bool:
        """Whether the encoder reads the word's own pieces."""
        return self.mode == "pieces"

    @property
    def has_context(self) -> bool:
        """Whether the network has a context part, and so an encoder."""
        return self.mode != "form"

    @property
    def encoder_reads_form(self) -> bool:
        """Whether the form vector is part of the encoder's input, so that it changes what contexts say."""
        return self.mode in ("replace", "add", "add-quotes")

    @property
    def needs_mean(self) -> bool:
        """Whether the network compares vectors after the vocabulary's mean is subtracted."""
        return self.output_norm is not None or self.look_alikes or self.agreement_threshold is not None

    @property
    def context_size(self) -> int:
        """Size of one reading of a context, before the output map."""
        if self.context_encoder == "bag-of-words":
            return self.embedding_size
        num_layers = self.text_config.num_hidden_layers if self.context_layers == "all" else 1
        size = num_layers * self.text_config.hidden_size
        # At the mask and over the pieces; the input embeddings of the pieces: their mean, the first and the last one.
        return 2 * size + 3 * self.embedding_size if self.reads_pieces else size

    @property
    def readings_size(self) -> int:
        """Size of all readings of a context, side by side."""
        return self.context_size if self.piece_strength is None else 2 * self.context_size

    @classmethod
    def from_preset(cls, name: str, **overrides: Any) -> "BertramConfig":
        """Returns the configuration of one of the paper's systems.

        Args:
            name: A key of `PRESETS`, such as `"bertram-add"`, `"mimick"` or `"attentive-mimicking"`.
            overrides: Further fields, such as `text_config` or `form_vocab_size`.
        """
        return cls(**preset_fields(name), **overrides)


def preset_fields(name: str) -> dict[str, Any]:
    """Returns the fields that the preset `name` fixes.

    Raises:
        ValueError: If there is no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"There is no preset {name!r}. Presets: {', '.join(PRESETS)}.")
    return PRESETS[name]


def read_json_file(path: str | os.PathLike, *, required: Collection[str] = ()) -> dict[str, Any]:
    """Returns the JSON object in a file of a checkpoint.

    Args:
        path: The file.
        required: Keys that it must have.

    Raises:
        ValueError: If there is no such object, or a key is missing.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} must hold JSON; it cannot be read: {error}. {FIX}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(content).__name__}. {FIX}")
    values: list[Any] = [content]
    depth = 0
    while values:  # level by level, as whatever reads the content further is recursive
        values = [item for value in values if isinstance(value, dict | list) for item in _items(value)]
        depth += 1
        if depth > MAX_JSON_DEPTH:
            raise ValueError(f"{path} must nest at most {MAX_JSON_DEPTH} levels deep; it is deeper. {FIX}")
    missing = [key for key in required if key not in content]
    if missing:
        raise ValueError(f"{path} must have {', '.join(required)}; {', '.join(missing)} is missing. {FIX}")
    return content


def _items(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
