"""The facts of a card for each kind of folder; the words are in `templates`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..configuration_bertram import REQUIRED_FIELDS, read_json_file
from ..induction.word_vectors import METADATA_NAME, VECTORS_NAME, read_metadata
from ..injection.saving import PACKS_FOLDER, InjectorSettings
from ..tokenization_form import FORM_VOCAB_NAME, FormTokenizer
from ..utils.files import read_json
from ..utils.names import CONFIG_NAME, MASKED_LM_NAME, PROCESSOR_NAME
from .folders import count_parameters, is_hub_name, read_shapes
from .remote_code import has_remote_code

MAX_WORDS_SHOWN = 10
WHERE_VECTORS_STAND = {
    "replace": "replace the word",
    "slash": "follow the word and a slash",
    "auto": "follow the word and a slash; replace misspellings and words whose pieces mislead",
}
SOURCES = {"form": "their spelling", "context": "a few contexts", "pieces": "their word pieces and contexts"}


@dataclass
class Description:
    """What is particular to one folder.

    Attributes:
        facts: Variables of the template.
        details: Rows of the card's table; those that are None are left out.
        metadata: What the card's header has beside, or instead of, what all cards have.
    """

    facts: dict[str, Any]
    details: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict)


def describe_model(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes a BERTRAM model."""
    config = read_json_file(folder / CONFIG_NAME, required=REQUIRED_FIELDS)
    mode, is_slim = config["mode"], not config.get("encoder_included", True)
    recorded = config.get("encoder_name_or_path")
    is_named = recorded is not None and is_hub_name(recorded)
    encoder = base_model or (recorded if is_named else None)
    facts = {
        "name": _quote(name),
        "encoder": encoder,
        "encoder_name": recorded,
        "encoder_is_named": is_named,
        "encoder_argument": f', encoder="{encoder or "your-encoder"}"' if is_slim and not is_named else "",
        "mode": mode,
        "sources": SOURCES.get(mode, "their spelling and contexts"),
        "contexts": "[]" if mode == "form" else '["She peeled a kumquat.", "A kumquat tastes sour."]',
        "embedding_size": config["embedding_size"],
        "is_slim": is_slim,
        "has_code": has_remote_code(folder),
        "look_alikes": config["look_alikes"],
    }
    sizes = count_parameters(folder)
    unit = "n-grams" if config["form_encoder"] == "ngram" else "characters"
    reads_units = mode not in ("context", "pieces")
    details = {
        "mode": mode,
        "encoder": encoder or config["text_config"].get("model_type"),
        "context encoder": config["context_encoder"] if mode != "form" else None,
        "context layers": config["context_layers"] if mode != "form" else None,
        "context weighting": config["context_weighting"] if mode != "form" else None,
        "form encoder": config["form_encoder"] if reads_units else None,
        unit: config["form_vocab_size"] - 2 if reads_units else None,  # without UNK and PAD
        "misspelling detection": "yes" if config["look_alikes"] else None,
        "vector size": config["embedding_size"],
        "parameters in this checkpoint": sum(sizes.values()),
        "of these in the encoder": sum(size for key, size in sizes.items() if key.startswith("encoder.")) or None,
        "embedding space": config.get("embedding_fingerprint"),
    }
    metadata = {"library_name": "transformers", "pipeline_tag": "feature-extraction", "base_model": encoder}
    return Description(facts, details, metadata)


def describe_processor(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes a processor without a model."""
    settings = read_json(folder / PROCESSOR_NAME)
    form = FormTokenizer.from_file(folder / FORM_VOCAB_NAME) if (folder / FORM_VOCAB_NAME).is_file() else None
    details = {
        "word matching": settings.get("match"),
        "longest context in tokens": settings.get("max_length"),
        "spelling units": f"{len(form) - 2:,} {form.unit}s" if form else None,  # without UNK and PAD
    }
    return Description({"name": _quote(name)}, details)


def describe_words(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes word vectors."""
    words = read_metadata(folder / METADATA_NAME)
    facts = {
        "name": _quote(name),
        "num_words": f"{len(words['words']):,}",
        "encoder": base_model or words.get("encoder"),
        "base_model": base_model,
    }
    details = {
        "words": len(words["words"]),
        "such as": _list_words(words["words"]),
        "vector size": read_shapes(folder / VECTORS_NAME)["embeddings"][-1],
        "embedding space": words.get("embedding_fingerprint"),
    }
    return Description(facts, details)


def describe_injected(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes an injected model."""
    settings = InjectorSettings.load(folder)
    packs = {pack: read_metadata(folder / PACKS_FOLDER / pack / METADATA_NAME)["words"] for pack in settings.packs}
    words = list(dict.fromkeys(word for pack in packs.values() for word in pack))
    facts = {"name": _quote(name), "model_class": settings.model_class, "num_words": f"{len(words):,}"}
    details = {
        "model": settings.model_class,
        "vectors": WHERE_VECTORS_STAND[settings.mode],
        "words": len(words),
        "such as": _list_words(words),
        "packs": ", ".join(f"{pack} ({len(pack_words):,})" for pack, pack_words in packs.items()),
    }
    return Description(facts, details)


def describe_masked_lm(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes a masked language model whose head was trained on an encoder."""
    config, record = read_json(folder / CONFIG_NAME), read_json(folder / MASKED_LM_NAME)
    encoder = base_model or record["settings"]["encoder"]
    details = {
        "model": (config.get("architectures") or [None])[0],
        "encoder": encoder,
        "parameters": sum(count_parameters(folder).values()),
        "embedding space": record.get("embedding_fingerprint"),
    }
    metadata = {"library_name": "transformers", "pipeline_tag": "fill-mask", "base_model": base_model}
    return Description({"name": _quote(name), "encoder": encoder}, details, metadata)


def _quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _list_words(words: Sequence[str]) -> str:
    shown = ", ".join(f"`{word}`" for word in words[:MAX_WORDS_SHOWN])
    return shown + (", ..." if len(words) > MAX_WORDS_SHOWN else "")
