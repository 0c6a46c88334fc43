import json
import os
import subprocess
import sys

import pytest
import torch
from datasets import Dataset
from support.tiny_models import FAMILIES
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    pipeline,
)

from bertram_hf import BertramEmbeddingInjector, WordVectors

TEXT = "the old kumquat and a resigntaion"
HEADS = {
    "AutoModel": AutoModel,
    "AutoModelForMaskedLM": AutoModelForMaskedLM,
    "AutoModelForSequenceClassification": AutoModelForSequenceClassification,
}

# Loads folders in a process of its own: {"base": ...} -> what comes out for the text, or the error.
LOAD = """
import json, sys
{first}
import torch, transformers
from transformers import AutoTokenizer, pipeline
folders, text, trust = json.loads(sys.argv[1])
trust = {{"trust_remote_code": True}} if trust else {{}}
results = {{}}
def record(name, act):
    try:
        with torch.no_grad():
            results[name] = act()
    except Exception as error:
        results[name] = f"{{type(error).__name__}}: {{error}}"
def run(name, folder):
    model = getattr(transformers, name).from_pretrained(folder, **trust).eval()
    outputs = model(**AutoTokenizer.from_pretrained(folder, **trust)(text, return_tensors="pt"))
    return outputs[0].tolist()
for name, folder in folders.items():
    record(name.split("/")[0] + " " + name, lambda: run(name.split("/")[0], folder))
    record("tokenizer " + name, lambda: AutoTokenizer.from_pretrained(folder, **trust)(text)["input_ids"])
classifier = folders["AutoModelForSequenceClassification"]
def classify():
    return pipeline("text-classification", model=classifier, top_k=None, **trust)(text)
record("pipeline", classify)
print("\\n" + json.dumps(results))  # after a question that Transformers may ask
"""
WITHOUT_THE_PACKAGE = """
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "bertram_hf":
            raise ModuleNotFoundError("No module named 'bertram_hf'")
sys.meta_path.insert(0, Missing())
"""


def load_elsewhere(folders, *, first, trust=False):
    arguments = json.dumps([{name: str(folder) for name, folder in folders.items()}, TEXT, trust])
    process = subprocess.run(
        [sys.executable, "-c", LOAD.format(first=first), arguments],
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def make_vectors(size=32):
    torch.manual_seed(1)
    vectors = WordVectors(["kumquat", "resigntaion"], torch.randn(2, size) * 0.3)
    vectors.look_alikes["resigntaion"] = {"resignation": 0.9}
    return vectors


def make_injector(tokenizer, auto_class=AutoModelForSequenceClassification, family="bert", **settings):
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **FAMILIES[family], vocab_size=641, num_labels=3)
    model = auto_class.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    vectors = make_vectors(model.get_input_embeddings().embedding_dim)
    return BertramEmbeddingInjector(model, tokenizer, vectors, **settings)


@torch.no_grad()
def outputs_of(model, tokenizer, text=TEXT):
    return model.eval()(**tokenizer(text, return_tensors="pt"))[0]


def train_a_step(injector, folder):
    dataset = Dataset.from_dict({**injector.tokenizer([TEXT] * 4), "labels": [0, 1, 2, 0]})
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=1,
        save_steps=1,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    Trainer(model=injector, args=arguments, train_dataset=dataset, processing_class=injector.tokenizer).train()
    return folder / "checkpoint-1"


@pytest.fixture(scope="module")
def saved(bert_tokenizer, tmp_path_factory):
    """Injected models in folders, by the Auto class that loads each, and what each says of the text."""
    folders, expected = {}, {}
    for name, auto_class in HEADS.items():
        injector = make_injector(bert_tokenizer, auto_class)
        folders[name] = tmp_path_factory.mktemp(name)
        injector.save_pretrained(folders[name])
        expected[name] = outputs_of(injector, injector.tokenizer)
    injector = make_injector(bert_tokenizer)
    name = "AutoModelForSequenceClassification/checkpoint"
    folders[name] = train_a_step(injector, tmp_path_factory.mktemp("trainer"))
    expected[name] = outputs_of(injector, injector.tokenizer)
    return folders, expected


@pytest.mark.parametrize(
    ("first", "trust"),
    [("import bertram_hf", False), ("from bertram_hf import BertramEmbeddingInjector", True), ("", True)],
)
def test_a_fresh_process_gets_the_injected_model_and_tokenizer(saved, bert_tokenizer, first, trust):
    folders, expected = saved
    found = load_elsewhere(folders, first=first, trust=trust)
    ids = make_injector(bert_tokenizer).tokenizer(TEXT)["input_ids"]
    assert ids != bert_tokenizer(TEXT)["input_ids"]
    for name, values in expected.items():
        assert found[f"tokenizer {name}"] == ids, name
        torch.testing.assert_close(torch.tensor(found[f"{name.split('/')[0]} {name}"]), values)
    scores = sorted(score["score"] for score in found["pipeline"][0])
    probabilities = expected["AutoModelForSequenceClassification"].softmax(-1)[0].sort().values
    torch.testing.assert_close(torch.tensor(scores), probabilities)


@pytest.mark.parametrize(
    ("first", "trust", "message"),
    [
        ("", False, "Please pass the argument `trust_remote_code=True`"),
        (WITHOUT_THE_PACKAGE, False, "Please pass the argument `trust_remote_code=True`"),
        (WITHOUT_THE_PACKAGE, True, "pip install bertram_hf"),
    ],
)
def test_a_process_without_the_package_refuses(saved, first, trust, message):
    found = load_elsewhere(saved[0], first=first, trust=trust)
    assert len(found) == 2 * len(saved[0]) + 1
    for name, result in found.items():
        assert isinstance(result, str), name
        assert message in result, name


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "albert", "modernbert", "deberta"])
def test_auto_classes_give_back_the_injector(family, bert_tokenizer, roberta_tokenizer, tmp_path):
    plain = roberta_tokenizer if family == "roberta" else bert_tokenizer
    injector = make_injector(plain, family=family)
    injector.add({"town": torch.zeros(injector.table.embedding_dim)}, "removed")
    injector.add({"quokka": torch.ones(injector.table.embedding_dim) * 0.1}, "animals")
    injector.remove_pack("removed")  # rows are numbered anew
    injector.save_pretrained(tmp_path)
    loaded, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(tmp_path),
        AutoTokenizer.from_pretrained(tmp_path),
    )
    assert type(loaded) is BertramEmbeddingInjector
    assert type(loaded.model) is type(injector.model)
    assert (loaded.mode, list(loaded.packs)) == ("auto", ["default", "animals"])
    assert type(tokenizer) is type(plain)
    text = f"{TEXT}, a quokka in town"
    expected = outputs_of(injector, injector.tokenizer, text)
    torch.testing.assert_close(outputs_of(loaded, tokenizer, text), expected)
    torch.testing.assert_close(outputs_of(loaded, loaded.tokenizer, text), expected)
    before, after = injector.config.to_dict(), loaded.config.to_dict()
    assert {key for key in after if after[key] != before.get(key)} <= {"_name_or_path", "architectures"}


def test_arguments_reach_the_wrapped_model(bert_tokenizer, tmp_path):
    make_injector(bert_tokenizer).save_pretrained(tmp_path)
    settings = {"hidden_dropout_prob": 0.3, "attn_implementation": "eager", "dtype": torch.bfloat16}
    for load in (AutoModelForSequenceClassification, BertramEmbeddingInjector):
        loaded = load.from_pretrained(tmp_path, **settings)
        assert loaded.model.config.hidden_dropout_prob == 0.3
        assert loaded.model.config._attn_implementation == "eager"
        assert loaded.model.dtype == torch.bfloat16
    tokenizer = AutoTokenizer.from_pretrained(tmp_path, model_max_length=7, padding_side="left")
    assert (tokenizer.model_max_length, tokenizer.padding_side) == (7, "left")


def test_another_head_is_put_on_the_injected_encoder(bert_tokenizer, tmp_path):
    injector = make_injector(bert_tokenizer)
    injector.save_pretrained(tmp_path)
    torch.testing.assert_close(
        outputs_of(AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)),
        outputs_of(injector.model.bert, injector.tokenizer),
    )
    other = AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert outputs_of(other, other.tokenizer).shape == (1, len(injector.tokenizer(TEXT)["input_ids"]), 3)
    assert type(other.model).__name__ == "BertForTokenClassification"
    with pytest.raises(ValueError, match=r"BertConfig.* for this kind of AutoModel: AutoModelForImageClassification"):
        AutoModelForImageClassification.from_pretrained(tmp_path)


def test_what_was_loaded_saves_itself_again(bert_tokenizer, tmp_path):
    injector = make_injector(bert_tokenizer)
    injector.save_pretrained(tmp_path / "once")
    classify = pipeline("text-classification", model=str(tmp_path / "once"))
    classify.save_pretrained(str(tmp_path / "twice"))
    again = BertramEmbeddingInjector.from_pretrained(tmp_path / "twice")
    torch.testing.assert_close(outputs_of(again, again.tokenizer), outputs_of(injector, injector.tokenizer))
    for name in ("config.json", "tokenizer_config.json"):
        once, twice = ((tmp_path / folder / name).read_text() for folder in ("once", "twice"))
        assert json.loads(twice) | {"architectures": None} == json.loads(once) | {"architectures": None}
    # The plain parts are plain again.
    again.plain_tokenizer.save_pretrained(tmp_path / "plain")
    again.remove().save_pretrained(tmp_path / "plain")
    assert type(AutoModelForSequenceClassification.from_pretrained(tmp_path / "plain")) is BertForSequenceClassification
    plain = AutoTokenizer.from_pretrained(tmp_path / "plain")
    assert plain(TEXT)["input_ids"] == bert_tokenizer(TEXT)["input_ids"]
    assert "auto_map" not in (tmp_path / "plain" / "tokenizer_config.json").read_text()


def test_pipelines_do_not_fall_back_to_the_plain_model(bert_tokenizer, tmp_path):
    make_injector(bert_tokenizer).save_pretrained(tmp_path)
    (tmp_path / "word_packs" / "default" / "word_vectors.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="Could not load model"):
        pipeline("text-classification", model=str(tmp_path))


def test_pipelines_know_the_injector(bert_tokenizer, caplog, tmp_path):
    injector = make_injector(bert_tokenizer)
    pipeline("text-classification", model=injector, tokenizer=injector.tokenizer)
    assert "is not supported" not in caplog.text


def test_folders_of_the_version_before_are_loaded(bert_tokenizer, tmp_path):
    injector = make_injector(bert_tokenizer)
    injector.save_pretrained(tmp_path)
    injector.config.save_pretrained(tmp_path)  # config.json and tokenizer_config.json were those of the plain model
    injector.plain_tokenizer.save_pretrained(tmp_path)
    (tmp_path / "bertram_injected.py").unlink()
    settings = json.loads((tmp_path / "injector.json").read_text())
    for name in ("tokenizer_class", "first_id"):
        del settings[name]
    (tmp_path / "injector.json").write_text(json.dumps(settings))
    loaded = BertramEmbeddingInjector.from_pretrained(tmp_path)
    assert type(loaded.config) is BertConfig
    torch.testing.assert_close(outputs_of(loaded, loaded.tokenizer), outputs_of(injector, injector.tokenizer))


def test_an_unknown_type_of_model_is_named(bert_tokenizer, tmp_path):
    make_injector(bert_tokenizer).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"wrapped_model_type": "own-bert"}))
    with pytest.raises(ValueError, match=r"got 'own-bert'\. Load the model with its own class, then: bertram_hf"):
        AutoModelForSequenceClassification.from_pretrained(tmp_path)
