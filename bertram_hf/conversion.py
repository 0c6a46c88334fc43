"""Conversion of checkpoints in the format of the released code (timoschick/bertram)."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertTokenizer,
    PreTrainedTokenizerBase,
    RobertaConfig,
    RobertaTokenizer,
)

from .configuration_bertram import BertramConfig
from .modeling_bertram import BertramModel
from .modeling_slim import embedding_fingerprint
from .processing_bertram import PREFIX_OF_MODE, BertramProcessor
from .tokenization_form import FormTokenizer

FAMILIES = {"bert": (BertConfig, BertTokenizer), "roberta": (RobertaConfig, RobertaTokenizer)}
WEIGHT_NAMES = {
    "linear": "output_map",
    "reliability_measure.linear": "context_attention.projection",
    "ngram_processor.ngram_embeddings": "form_encoder.embeddings",
    "shallow_combination.linear": "gate",
}
TOKENIZER_FILES = ("vocab.txt", "vocab.json", "tokenizer.json")


@dataclass
class ConvertedCheckpoint:
    """A released checkpoint as our classes.

    Attributes:
        model: The model.
        processor: Its processor, with white-space matching.
        notes: What a user should know about this checkpoint.
    """

    model: BertramModel
    processor: BertramProcessor
    notes: list[str]


def convert_original(source: str | Path, *, tokenizer: str | Path | None = None) -> ConvertedCheckpoint:
    """Reads a folder in the released format; nothing in it is unpickled or run.

    Args:
        source: Folder with `pytorch_model.bin`, `config.json`, `bertram_config.json`, `input_processor.json` and
            `input_processor.json.vocab`.
        tokenizer: Name or path of the encoder's tokenizer. Default: what the checkpoint names, looked for in the
            current folder, in the checkpoint's folder and the two above it, and then as a name on the Hub.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the files do not fit together.
    """
    folder = Path(source)
    for name in ("pytorch_model.bin", "config.json", "bertram_config.json", "input_processor.json"):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} is not a checkpoint of the released code: it has no {name}.")
    settings = _read_state(folder / "bertram_config.json")
    text = _read_state(folder / "input_processor.json")
    family = settings["transformer_cls"]
    if family not in FAMILIES:
        raise ValueError(f"The checkpoint's encoder is {family!r}; the released code knows {', '.join(FAMILIES)}.")
    config_class, _ = FAMILIES[family]
    encoder_settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    text_config = config_class(**{key: value for key, value in encoder_settings.items() if key in ENCODER_SETTINGS})
    weights = _rename_weights(
        torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True), prefix=family
    )
    form = _read_form_vocab(folder, text) if settings["mode"] != "context" else None
    model = _build_model(settings, text, text_config, weights, form)
    processor = BertramProcessor(
        _load_tokenizer(folder, tokenizer or text["bert_model"], family),
        form=form,
        max_length=text["max_seq_length"],
        prefix=PREFIX_OF_MODE.get(text["mode"], "none"),
        match="whitespace",
        separator=text.get("sep_symbol", ":"),
    )
    notes = _notes(settings["mode"], text["mode"], processor.prefix)
    unused = sorted({key.partition(".")[0] for key in weights.keys() - model.state_dict().keys()} - {"encoder"})
    if unused:
        notes.append(f"Mode {settings['mode']!r} does not use these parts of the checkpoint: {', '.join(unused)}.")
    return ConvertedCheckpoint(model, processor, notes)


# Fields of the old config.json that still mean something.
ENCODER_SETTINGS = (
    "attention_probs_dropout_prob",
    "hidden_act",
    "hidden_dropout_prob",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "layer_norm_eps",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "type_vocab_size",
    "vocab_size",
)


def _read_state(path: Path) -> dict[str, Any]:
    """Reads what jsonpickle wrote as plain JSON, in the flat layout or the one of Python 3.11 with `py/state`."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return content.get("py/state", content)


def _rename_weights(weights: dict[str, torch.Tensor], *, prefix: str) -> dict[str, torch.Tensor]:
    renamed: dict[str, torch.Tensor] = {}
    for key, value in weights.items():
        if key.startswith(f"{prefix}."):
            key = "encoder." + key.removeprefix(f"{prefix}.").replace("word_embeddings.embedding.", "word_embeddings.")
            key = key.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
            if ".pooler." in key or key.endswith("position_ids"):
                continue
        else:
            module, _, parameter = key.rpartition(".")
            if module not in WEIGHT_NAMES:
                raise ValueError(f"pytorch_model.bin holds the weight {key!r}, which the released code does not write.")
            key = f"{WEIGHT_NAMES[module]}.{parameter}"
        renamed[key] = value
    return renamed


def _read_form_vocab(folder: Path, text: dict[str, Any]) -> FormTokenizer:
    path = folder / "input_processor.json.vocab"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no {path.name}, from which the n-gram vocabulary is built.")
    with open(path, encoding="utf-8") as lines:
        words = [line.split()[0] for line in lines if line.strip()]
    return FormTokenizer.from_words(
        words, min_length=text["nmin"], max_length=text["nmax"], min_count=text["ngram_threshold"]
    )


def _build_model(
    settings: dict[str, Any],
    text: dict[str, Any],
    text_config: Any,
    weights: dict[str, torch.Tensor],
    form: FormTokenizer | None,
) -> BertramModel:
    word_embeddings = weights.get("encoder.embeddings.word_embeddings.weight")
    config = BertramConfig(
        text_config=text_config,
        mode=settings["mode"],
        embedding_size=settings["output_size"],
        form_vocab_size=2 if form is None else len(form),
        ngram_dropout=text.get("ngram_dropout") or 0.0,
        encoder_name_or_path=text["bert_model"],
        embedding_fingerprint=None if word_embeddings is None else embedding_fingerprint(word_embeddings),
    )
    if form is not None:
        num_rows = len(weights["form_encoder.embeddings.weight"])
        if num_rows != len(form):
            raise ValueError(
                f"input_processor.json.vocab gives {len(form)} n-grams, but the checkpoint has embeddings for "
                f"{num_rows}. The vocabulary belongs to another checkpoint."
            )
    model = BertramModel(config)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    # Other parts than the mode's are left, as in the released code: its training can switch a model's mode.
    unexpected = [key for key in unexpected if config.has_context and key.startswith("encoder.")]
    if missing or unexpected:
        raise ValueError(
            f"The weights do not fit mode {config.mode!r}: missing {sorted(missing)}, "
            f"not expected {sorted(unexpected)}."
        )
    return model.eval()


def _load_tokenizer(folder: Path, name: str | Path, family: str) -> PreTrainedTokenizerBase:
    places = [Path(), folder, *folder.resolve().parents[:2]]
    for path in (place / name for place in places):
        if any((path / file).is_file() for file in TOKENIZER_FILES):
            # The family's class: an old folder has no model_type for AutoTokenizer to go by.
            return FAMILIES[family][1].from_pretrained(path)
    try:
        return AutoTokenizer.from_pretrained(str(name))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"The checkpoint's tokenizer {str(name)!r} is neither a folder here or beside the checkpoint nor to be had "
            "from the Hub. Give its folder or name with --tokenizer."
        ) from error


def _notes(mode: str, text_mode: str | None, prefix: str) -> list[str]:
    expected = PREFIX_OF_MODE.get(mode, "none")
    if prefix == expected:
        return []
    written = {"none": "no prefix", "colon": 'the prefix of "add"', "quotes": 'the prefix of "add-quotes"'}[prefix]
    return [
        f"The model's mode is {mode!r}, but its input processor was saved with mode {text_mode!r}: it writes "
        f"{written}, so that the form vector overwrites a token of the context. The released pipeline makes such "
        "checkpoints, and this one was trained and measured that way; the conversion keeps it."
    ]
