"""What a card says of each kind of folder: summary, code, facts and limits."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..induction.word_vectors import METADATA_NAME, VECTORS_NAME
from ..injection.saving import PACKS_FOLDER, InjectorSettings
from ..tokenization_form import FORM_VOCAB_NAME
from ..utils.files import read_json
from ..utils.names import CONFIG_NAME, MASKED_LM_NAME, PROCESSOR_NAME
from .folders import count_parameters, is_hub_name, read_shapes

MAX_WORDS_SHOWN = 10
WHERE_VECTORS_STAND = {
    "replace": "in place of the word",
    "slash": "after the word and a slash",
    "auto": "after the word and a slash; in place of misspellings",
}
SOURCES = {"form": "their spelling", "context": "a few contexts"}


@dataclass
class Description:
    """What is particular to one kind of folder."""

    summary: str
    code: str
    usage: str
    facts: dict[str, Any]
    limits: list[str]
    metadata: dict[str, Any] = field(default_factory=dict)


def describe_model(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes a BERTRAM model."""
    config = read_json(folder / CONFIG_NAME)
    mode, is_slim = config["mode"], not config.get("encoder_included", True)
    recorded = config.get("encoder_name_or_path")
    is_named = recorded is not None and is_hub_name(recorded)
    encoder = base_model or (recorded if is_named else None)
    needs_encoder = is_slim and not is_named
    argument = f', encoder="{encoder or "your-encoder"}"' if needs_encoder else ""
    contexts = "[]" if mode == "form" else '["She peeled a kumquat.", "A kumquat tastes sour."]'
    code = f"""import bertram_hf
from transformers import AutoModel, AutoProcessor

model = AutoModel.from_pretrained({_quote(name)}{argument})
processor = AutoProcessor.from_pretrained({_quote(name)})
vectors = bertram_hf.induce_vectors(model, processor, {{"kumquat": {contexts}}})
vectors["kumquat"]  # a tensor of the size {config["embedding_size"]}
"""
    usage = "`bertram_hf.BertramEmbeddingInjector` puts the vectors into a model with these input embeddings."
    if is_slim:
        source = f"It is loaded from `{recorded}`" if is_named else "It has to be given as `encoder=`"
        usage += (
            f"\n\nThis checkpoint is slim: it does not hold the whole encoder. {source}; `encoder=` takes a name, "
            "a folder or a loaded model, and one with other embeddings is refused."
        )
    if "auto_map" in config:
        usage += "\n\nWithout bertram_hf, `trust_remote_code=True` loads model and processor with the code beside them."
    sizes = count_parameters(folder)
    unit = "n-grams" if config.get("form_encoder") == "ngram" else "characters"
    facts = {
        "mode": mode,
        "encoder": encoder or (config.get("text_config") or {}).get("model_type"),
        "contexts are read by": config.get("context_encoder") if mode != "form" else None,
        "layers that are read": config.get("context_layers") if mode != "form" else None,
        "contexts are weighted": config.get("context_weighting") if mode != "form" else None,
        "spelling is read by": config.get("form_encoder") if mode != "context" else None,
        unit: config["form_vocab_size"] - 2 if mode != "context" else None,  # without UNK and PAD
        "misspellings of known words": "are looked for" if config.get("look_alikes") else None,
        "size of a vector": config["embedding_size"],
        "parameters in this checkpoint": sum(sizes.values()),
        "of these in the encoder": sum(size for key, size in sizes.items() if key.startswith("encoder.")) or None,
        "embedding space": config.get("embedding_fingerprint"),
    }
    limits = [
        "The vectors fit models with the input embeddings of this encoder, and no others.",
        "A word has one vector, in which its senses are mixed.",
    ]
    if mode == "context":
        limits.append("The spelling is not read: a word without contexts gets no vector.")
    if mode == "form":
        limits.append("Contexts are not read: words that look alike get similar vectors.")
    else:
        limits.append("A vector says what the contexts say; few, untypical or biased contexts give such a vector.")
    about = f" for `{encoder}`" if encoder else ""
    return Description(
        f"A BERTRAM model{about}: it gives words that the encoder does not know, or knows badly, vectors in its input "
        f"embedding space, from {SOURCES.get(mode, 'their spelling and contexts')}.",
        code,
        usage,
        facts,
        limits,
        {"library_name": "transformers", "pipeline_tag": "feature-extraction", "base_model": encoder},
    )


def describe_processor(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes a processor without a model."""
    settings = read_json(folder / PROCESSOR_NAME)
    form = read_json(folder / FORM_VOCAB_NAME) if (folder / FORM_VOCAB_NAME).is_file() else None
    code = f"""import bertram_hf  # which makes the processor known
from transformers import AutoProcessor

processor = AutoProcessor.from_pretrained({_quote(name)})
batch = processor(["kumquat"], [["She peeled a kumquat."]])
"""
    facts = {
        "words are found by": settings.get("match"),
        "longest context in tokens": settings.get("max_length"),
        "units of spelling": f"{len(form['vocab']) - 2:,} {form['unit']}s" if form else None,  # without UNK and PAD
    }
    return Description(
        "The processor of a BERTRAM model: it makes words and their contexts ready for the model.",
        code,
        "The model is not here.",
        facts,
        ["It fits models with the same tokenizer and the same units of spelling."],
    )


def describe_words(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes word vectors."""
    words = read_json(folder / METADATA_NAME)
    code = f"""from bertram_hf import WordVectors

vectors = WordVectors.from_pretrained({_quote(name)})
vectors.words, vectors.embeddings
"""
    if base_model:
        code += f"""
from bertram_hf import BertramEmbeddingInjector
from transformers import AutoModel, AutoTokenizer

model, tokenizer = AutoModel.from_pretrained("{base_model}"), AutoTokenizer.from_pretrained("{base_model}")
injector = BertramEmbeddingInjector(model, tokenizer, vectors)
outputs = injector(**injector.tokenizer("a text with your words", return_tensors="pt"))
"""
    encoder = base_model or words.get("encoder")
    about = f" of `{encoder}`" if encoder else " of one model"
    return Description(
        f"Vectors of {len(words['words']):,} words in the input embedding space{about}, induced with BERTRAM.",
        code,
        "`bertram_hf.BertramEmbeddingInjector` puts the vectors into a model with these input embeddings.",
        {
            "words": len(words["words"]),
            "such as": _list_words(words["words"]),
            "size of a vector": read_shapes(folder / VECTORS_NAME)["embeddings"][-1],
            "embedding space": words.get("embedding_fingerprint"),
        },
        [
            "The vectors fit models with the same input embeddings, and no others.",
            "A word has one vector, in which its senses are mixed.",
        ],
    )


def describe_injected(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes an injected model."""
    settings = InjectorSettings.load(folder)
    packs = {pack: read_json(folder / PACKS_FOLDER / pack / METADATA_NAME)["words"] for pack in settings.packs}
    words = list(dict.fromkeys(word for pack in packs.values() for word in pack))
    code = f"""from bertram_hf import BertramEmbeddingInjector

injector = BertramEmbeddingInjector.from_pretrained({_quote(name)})
outputs = injector(**injector.tokenizer("a text with your words", return_tensors="pt"))
"""
    return Description(
        f"A {settings.model_class} in which {len(words):,} words have input vectors of their own, induced with "
        "BERTRAM.",
        code,
        "`AutoModel`, `AutoTokenizer` and `pipeline` load it after `import bertram_hf`, and refuse it without.",
        {
            "model": settings.model_class,
            "vectors stand": WHERE_VECTORS_STAND[settings.mode],
            "words": len(words),
            "such as": _list_words(words),
            "packs": ", ".join(f"{pack} ({len(pack_words):,})" for pack, pack_words in packs.items()),
        },
        ["A word has one vector, in which its senses are mixed."],
    )


def describe_masked_lm(folder: Path, name: str, base_model: str | None) -> Description:
    """Describes a masked language model whose head was trained on an encoder."""
    config, record = read_json(folder / CONFIG_NAME), read_json(folder / MASKED_LM_NAME)
    encoder = base_model or record["settings"]["encoder"]
    code = f"""from transformers import pipeline

fill = pipeline("fill-mask", model={_quote(name)})
fill(f"a lion is a kind of {{fill.tokenizer.mask_token}}.")
"""
    return Description(
        f"A masked language model on `{encoder}`, which has no masked-LM head: the head and the layers below it are "
        "trained, the input embeddings are the encoder's, so that vectors induced for the encoder can be injected.",
        code,
        "`bertram_hf.BertramEmbeddingInjector` puts vectors of rare words into it.",
        {
            "model": (config.get("architectures") or [None])[0],
            "encoder": encoder,
            "parameters": sum(count_parameters(folder).values()),
            "embedding space": record.get("embedding_fingerprint"),
        },
        [
            "It is made to ask what a model understands of a rare word, not as a language model of its own.",
            "Its layers are no longer those of the encoder: do not use it for the encoder's own task.",
        ],
        {"library_name": "transformers", "pipeline_tag": "fill-mask", "base_model": base_model},
    )


def _quote(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _list_words(words: Sequence[str]) -> str:
    shown = ", ".join(f"`{word}`" for word in words[:MAX_WORDS_SHOWN])
    return shown + (", ..." if len(words) > MAX_WORDS_SHOWN else "")
