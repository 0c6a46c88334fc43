import ast
import json
import re

import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from support.tiny_injection import make_injector, make_vectors
from support.tiny_training import make_sentences, write_encoder

from bertram_hf import BertramModel, induce_vectors
from bertram_hf.cards.card import write_card
from bertram_hf.cli.push import check_folder
from bertram_hf.masked_lm.train import train_masked_lm_head
from bertram_hf.utils.paths import hide_paths

TRAINING = {
    "command": "bertram train /home/anna/runs/recipe.yaml --corpus='/media/big disk/news.txt' C:\\data\\x.txt",
    "recipe": {"encoder": "/models/bert base", "steps": 100, "paths": ["~anna/corpus/wiki.txt"], "rate": 0.001},
    "seed": 1234,
    "versions": {"bertram-hf": "0.1", "torch": "2.9"},
    "data": {
        "description": "News from /srv/corpora/news/2020.txt.",
        "training_words": 12345,
        "contexts": 678901,
        "sources": {"vocabulary": 10000, "approximation": 2345},
    },
    "stages": [
        {"stage": "form", "epochs": 1, "steps": 50, "train_loss": 1.23456, "seconds": 3.5},
        {"stage": "fused", "epochs": 2, "steps": 100, "train_loss": 0.5, "eval_loss": 0.75, "seconds": 9},
    ],
    "evaluation": {
        "description": "Recovery of held-out words.",
        "num_words": 300,
        "scores": [
            {"contexts": 0, "mrr": 0.01, "median_rank": None},
            {"contexts": 8, "mrr": 0.051, "median_rank": 300},
        ],
    },
}
PLACES = ("/home", "anna", "/media", "big disk", "/models", "~", "/srv", "corpora", "C:", "\\data")


def read_code(path):
    return re.search(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)[1]


def read_header(path):
    return yaml.safe_load(path.read_text(encoding="utf-8").split("---\n")[1])


@pytest.fixture
def model_folder(make_pair, tmp_path):
    model, processor = make_pair("add")
    model.save_pretrained(tmp_path / "my-bertram")
    processor.save_pretrained(tmp_path / "my-bertram")
    return tmp_path / "my-bertram"


def edit_json(path, **fields):
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")


def test_card_of_a_model_says_what_the_files_say(model_folder):
    path = write_card(
        model_folder,
        name="user/my-bertram",
        license="apache-2.0",
        language=["en"],
        datasets=["wiki"],
        base_model="org/bert",
    )
    card = ModelCard.load(path)
    assert (card.data.license, card.data.language, card.data.datasets) == ("apache-2.0", ["en"], ["wiki"])
    assert (card.data.library_name, card.data.base_model) == ("transformers", "org/bert")
    assert card.data.pipeline_tag == "feature-extraction"
    assert card.data.eval_results is None
    assert card.text.strip().startswith("# my-bertram\n")
    num_parameters = sum(parameter.numel() for parameter in BertramModel.from_pretrained(model_folder).parameters())
    assert f"| parameters in this checkpoint | {num_parameters:,} |" in card.text
    assert "| mode | add |" in card.text
    assert "| vector size | 32 |" in card.text
    assert "No scores are recorded" in card.text
    assert "## Training" not in card.text
    assert 'AutoModel.from_pretrained("user/my-bertram")' in card.text
    assert "2020.acl-main.368" in card.text
    assert "N19-1048" in card.text
    assert "aaai.v34i05.6403" not in card.text


def test_what_is_not_known_is_not_in_the_header(model_folder):
    header = read_header(write_card(model_folder))
    assert set(header) == {"library_name", "pipeline_tag", "tags"}


def test_card_has_the_training_and_its_scores_but_no_path(model_folder):
    (model_folder / "training.json").write_text(json.dumps(TRAINING), encoding="utf-8")
    path = write_card(model_folder, name="user/my-bertram")
    text = path.read_text(encoding="utf-8")
    for place in PLACES:
        assert place not in text, place
    assert "bertram train recipe.yaml --corpus='news.txt' x.txt" in text
    assert "| training words | 12,345 |" in text
    assert "| targets from approximation | 2,345 |" in text
    assert "| seed | 1234 |" in text
    assert "| stage | epochs | steps | train loss | seconds | eval loss |" in text
    assert "| form | 1 | 50 | 1.235 | 3.5 |  |" in text
    assert "| contexts | MRR | median rank |" in text
    assert "300 words." in text
    assert "No scores are recorded" not in text
    recipe = yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])
    assert recipe == {"encoder": "bert base", "steps": 100, "paths": ["wiki.txt"], "rate": 0.001}
    results = ModelCard.load(path).data.eval_results
    assert [(result.metric_name, result.metric_value) for result in results] == [
        ("MRR, contexts: 0", 0.01),
        ("MRR, contexts: 8", 0.051),
        ("median rank, contexts: 8", 300),
    ]
    assert "aaai.v34i05.6403" in text  # one-token approximation was used


@pytest.mark.parametrize("key", [*TRAINING, None])
def test_each_key_of_the_training_may_be_missing_or_empty(model_folder, key):
    rest = {name: value for name, value in TRAINING.items() if name != key} if key else {}
    for training in (rest, TRAINING | {key: None} if key else {"data": {}, "evaluation": {}, "stages": []}):
        (model_folder / "training.json").write_text(json.dumps(training), encoding="utf-8")
        path = write_card(model_folder, overwrite=True)
        ast.parse(read_code(path))
        assert "None" not in path.read_text(encoding="utf-8")


def test_code_of_a_model_card_runs(model_folder, monkeypatch):
    code = read_code(write_card(model_folder))
    monkeypatch.chdir(model_folder.parent)
    names = {}
    exec(compile(code, "card", "exec"), names)
    assert names["vectors"]["kumquat"].shape == (32,)


def test_code_of_a_slim_model_names_the_encoder_that_has_to_be_given(model_folder, make_encoder, monkeypatch):
    model = BertramModel.from_pretrained(model_folder)
    model.save_pretrained(model_folder, include_encoder=False)
    edit_json(model_folder / "config.json", encoder_name_or_path=str(model_folder.parent / "encoder"))
    make_encoder().save_pretrained(model_folder.parent / "encoder")
    path = write_card(model_folder)
    assert 'encoder="your-encoder"' in read_code(path)
    assert str(model_folder.parent) not in path.read_text(encoding="utf-8")
    write_card(model_folder, base_model="user/bert", overwrite=True)
    code = read_code(path)
    assert 'encoder="user/bert")' in code
    monkeypatch.chdir(model_folder.parent)
    names = {}
    exec(compile(code.replace("user/bert", "encoder"), "card", "exec"), names)
    assert names["vectors"]["kumquat"].shape == (32,)


def test_slim_model_whose_encoder_is_on_the_hub_needs_no_argument(model_folder):
    edit_json(model_folder / "config.json", encoder_included=False, encoder_name_or_path="user/tiny-bert")
    path = write_card(model_folder)
    assert "encoder=" not in read_code(path)
    assert "Transformers loads the rest from `user/tiny-bert`" in path.read_text(encoding="utf-8")
    assert read_header(path)["base_model"] == "user/tiny-bert"


@pytest.mark.parametrize("mode", ["form", "context"])
def test_card_says_what_a_model_does_not_read(make_pair, tmp_path, mode):
    model, processor = make_pair(mode)
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    path = write_card(tmp_path)
    text = path.read_text(encoding="utf-8")
    ast.parse(read_code(path))
    assert ("Contexts are not read" in text, "The spelling is not read" in text) == (mode == "form", mode == "context")
    assert ("| form encoder |" in text, "| context encoder |" in text) == (mode == "form", mode == "context")


def test_code_of_a_processor_card_runs(make_pair, tmp_path, monkeypatch):
    make_pair("add")[1].save_pretrained(tmp_path / "my-processor")
    path = write_card(tmp_path / "my-processor")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(read_code(path), "card", "exec"), names)
    assert names["batch"]["input_ids"].shape[0] == 1
    assert "ngrams |" in path.read_text(encoding="utf-8")


def test_code_of_a_word_vector_card_runs(make_encoder, bert_tokenizer, tmp_path, monkeypatch):
    make_vectors().save_pretrained(tmp_path / "my-words")
    path = write_card(tmp_path / "my-words")
    assert "BertramEmbeddingInjector(" not in read_code(path)
    assert "| words | 2 |" in path.read_text(encoding="utf-8")
    assert "induced with BERTRAM for one encoder." in path.read_text(encoding="utf-8")
    assert "| such as | `kumquat`, `quokka` |" in path.read_text(encoding="utf-8")
    assert read_header(path)["library_name"] == "bertram-hf"
    write_card(tmp_path / "my-words", base_model="user/bert", overwrite=True)
    make_encoder().save_pretrained(tmp_path / "encoder")
    bert_tokenizer.save_pretrained(tmp_path / "encoder")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(read_code(path).replace("user/bert", "encoder"), "card", "exec"), names)
    assert names["vectors"].words == ["kumquat", "quokka"]
    assert torch.isfinite(names["outputs"].last_hidden_state).all()


def test_card_of_vectors_names_the_encoder(make_pair, tmp_path):
    model, processor = make_pair("add")
    model.config.encoder_name_or_path = "/home/anna/models/tiny-bert"
    induce_vectors(model, processor, {"kumquat": []}, show_progress=False).save_pretrained(tmp_path)
    text = write_card(tmp_path).read_text(encoding="utf-8")
    assert "induced with BERTRAM for `tiny-bert`." in text
    assert "anna" not in text + (tmp_path / "word_vectors.json").read_text(encoding="utf-8")


def test_code_of_an_injected_model_card_runs(bert_tokenizer, tmp_path, monkeypatch):
    make_injector(bert_tokenizer, make_vectors()).save_pretrained(tmp_path / "my-classifier")
    path = write_card(tmp_path / "my-classifier")
    assert "| packs | default (1), animals (1) |" in path.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(read_code(path), "card", "exec"), names)
    assert names["outputs"].logits.shape == (1, 3)


def test_card_of_a_masked_language_model_says_how_good_it_is(tmp_path, monkeypatch):
    folder = tmp_path / "my-masked-lm"
    options = {"max_steps": 2, "batch_size": 8, "max_length": 24, "device": "cpu", "show_progress": False}
    options["heldout_words"] = ["red", "small"]
    encoder = write_encoder(tmp_path / "encoder")
    record = train_masked_lm_head(encoder, make_sentences(), folder, command=f"bertram reproduce {encoder}", **options)
    path = write_card(folder, base_model="user/bert", language=["en"])
    text = path.read_text(encoding="utf-8")
    assert "| model | perplexity | accuracy | num tokens |" in text
    assert f"| after training | {record.after.perplexity:.4g} | {record.after.accuracy:.4g} |" in text
    assert f"400 texts, {record.text['num_tokens']:,} tokens. 2 held-out words and their word families were" in text
    assert "heldout_words" not in text
    assert "bertram reproduce encoder\n" in text
    assert str(tmp_path) not in text
    header = read_header(path)
    assert (header["base_model"], header["pipeline_tag"]) == ("user/bert", "fill-mask")
    results = ModelCard.load(path).data.eval_results
    assert {result.task_type for result in results} == {"fill-mask"}
    assert [result.metric_name for result in results] == [
        f"{metric}, model: {when} training" for when in ("before", "after") for metric in ("perplexity", "accuracy")
    ]
    monkeypatch.chdir(tmp_path)
    code = read_code(path)
    names = {}
    exec(compile(code, "card", "exec"), names)
    assert len(names["fill"]("a red [MASK].")) == 5
    assert check_folder(folder) == []
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(ValueError, match=r"tokenizer_config\.json is missing"):
        check_folder(folder)


def test_a_card_is_whole_markdown_without_gaps(model_folder, bert_tokenizer, tmp_path):
    (model_folder / "training.json").write_text(json.dumps(TRAINING | {"limits": ["English only."]}), encoding="utf-8")
    make_vectors().save_pretrained(tmp_path / "words")
    make_injector(bert_tokenizer, make_vectors()).save_pretrained(tmp_path / "injected")
    for folder in (model_folder, tmp_path / "words", tmp_path / "injected"):
        text = write_card(folder).read_text(encoding="utf-8")
        assert "\n\n\n" not in text
        assert text.endswith("```\n")
        assert text.count("```") % 2 == 0
        assert "{{" not in text.replace("{{BERTRAM}", "")
        assert re.findall("^## .*", text, re.MULTILINE)[:3] == ["## Usage", "## Limitations", "## Details"]
        assert "not on PyPI" in text
    text = (model_folder / "README.md").read_text(encoding="utf-8")
    assert "## Limitations\n\n- English only.\n- The vectors only fit" in text
    assert "## Training" in text
    assert "## Evaluation" in text


def test_card_shows_remote_code_only_if_the_code_is_there(model_folder):
    assert "trust_remote_code=True" in write_card(model_folder).read_text(encoding="utf-8")
    (model_folder / "modeling_form.py").unlink()
    assert "trust_remote_code" not in write_card(model_folder, overwrite=True).read_text(encoding="utf-8")


def test_bounds_of_scores_are_no_results_of_their_own(model_folder):
    scores = [{"contexts": 1, "mrr": 0.123456, "mrr_low": 0.1, "mrr_high": 0.2}]
    evaluation = {"description": "Recovery of words: by cosine.", "scores": scores}
    (model_folder / "training.json").write_text(json.dumps({"evaluation": evaluation}), encoding="utf-8")
    (result,) = ModelCard.load(write_card(model_folder)).data.eval_results
    assert (result.metric_type, result.metric_value, result.dataset_name) == ("mrr", 0.1235, "Recovery of words")


def test_names_with_odd_letters_stay_python(tmp_path):
    folder = tmp_path / 'it\'s "mine"'
    make_vectors().save_pretrained(folder)
    ast.parse(read_code(write_card(folder)))


def test_a_readme_is_not_overwritten_unasked(model_folder):
    path = write_card(model_folder)
    with pytest.raises(FileExistsError, match=r"Expected no README\.md .* Pass overwrite=True \(--force\)"):
        write_card(model_folder)
    write_card(model_folder, license="mit", overwrite=True)
    assert read_header(path)["license"] == "mit"


def test_a_base_model_that_nobody_else_finds_is_refused(model_folder):
    for name in (str(model_folder), "a/b/c"):
        with pytest.raises(ValueError, match=r"base_model must be a name on the Hub, such as bert-base-uncased; got"):
            write_card(model_folder, base_model=name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/anna/news.txt", "news.txt"),
        ("/home/anna/my news/a b.txt", "a b.txt"),
        ("/home/anna/data/", "data"),
        ("/corpus.txt", "corpus.txt"),
        ("~/a/b.txt", "b.txt"),
        ("~anna/b.txt", "b.txt"),
        ("../../home/anna/b.txt", "b.txt"),
        ("C:\\Users\\Anna Berg\\b.txt", "b.txt"),
        ("C:/Users/anna/b.txt", "b.txt"),
        ("\\\\server\\share\\b.txt", "b.txt"),
        ("file:///home/anna/b.txt", "b.txt"),
        ("run --data=/home/anna/b.txt --n 1", "run --data=b.txt --n 1"),
        ("/usr/bin/python -m x /data/b.txt", "python -m x b.txt"),
        ("/usr/bin/python -m x", "python -m x"),
        ("run '/home/anna/my data/b.txt' c", "run 'b.txt' c"),
        ('run "C:\\my data\\b.txt" c', 'run "b.txt" c'),
        ("run /home/anna/my\\ data/b.txt c", "run b.txt c"),
        ("PATHS=/a/b:/c/d", "PATHS=d"),
        ("scp me@host:/home/anna/b.txt .", "scp me@host:b.txt ."),
        ("see (/data/x/b.txt).", "see (b.txt)."),
        ("first line\n/home/anna/b.txt", "first line\nb.txt"),
        ("/home/anna/b.txt\n/home/anna/c.txt", "b.txt\nc.txt"),
        ("https://example.org/a/b.html", "https://example.org/a/b.html"),
        ("s3://bucket/a/b.txt", "s3://bucket/a/b.txt"),
        ("and/or, w / w, 3/4, </s>, user/model", "and/or, w / w, 3/4, </s>, user/model"),
    ],
)
def test_paths_of_a_machine_are_hidden_and_nothing_else(text, shown):
    assert hide_paths(text) == shown
    assert hide_paths({"a": [text, 1, None], text: True}) == {"a": [shown, 1, None], shown: True}
