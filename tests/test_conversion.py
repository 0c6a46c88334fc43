import json
import shutil

import pytest
import torch
from support.tiny_models import ORIGINAL
from transformers import AutoModel, AutoProcessor

import bertram_hf
from bertram_hf.conversion import WEIGHT_NAMES, convert_original

CHECKPOINTS = sorted(path.name for path in (ORIGINAL / "ckpt").iterdir())
TOLERANCE = 5e-5


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """Returns a function that converts a checkpoint, saves it and loads it again through the Auto classes."""
    loaded = {}

    def load(name):
        if name not in loaded:
            folder = tmp_path_factory.mktemp(name)
            checkpoint = convert_original(ORIGINAL / "ckpt" / name)
            checkpoint.model.save_pretrained(folder)
            checkpoint.processor.save_pretrained(folder)
            loaded[name] = AutoModel.from_pretrained(folder), AutoProcessor.from_pretrained(folder)
        return loaded[name]

    return load


def cases(name):
    return json.loads((ORIGINAL / "ckpt" / name / "cases.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_case_of_the_released_code(converted, name):
    model, processor = converted(name)
    for case in cases(name):
        word, contexts, expected = case["word"], case["contexts"], case["expected"]
        if "error" in expected:
            with pytest.raises({"IndexError": IndexError, "ValueError": ValueError}[expected["error"]]):
                bertram_hf.induce_vectors(model, processor, {word: contexts})
            continue
        vectors = bertram_hf.induce_vectors(model, processor, {word: contexts})
        torch.testing.assert_close(vectors[word], torch.tensor(expected["vector"]), atol=TOLERANCE, rtol=0)
        if model.config.has_form:
            assert processor.encode_form(word) == expected["ngram_ids"]
        if expected.get("input_ids"):
            (encoded,) = processor.encode([word], [contexts])
            assert encoded.input_ids == expected["input_ids"]
            assert encoded.mask_positions == expected["mask_positions"]
            rho = torch.tensor(expected["rho"])
            torch.testing.assert_close(vectors.context_weights[word], rho, atol=TOLERANCE, rtol=0)
        if "form_vector" in expected and model.config.has_form:
            form = model.encode_forms(torch.tensor([expected["ngram_ids"]]))[0]
            torch.testing.assert_close(form, torch.tensor(expected["form_vector"]), atol=TOLERANCE, rtol=0)
        if expected.get("mask_hidden"):
            states = model(**processor([word], [contexts])).context_embeddings
            torch.testing.assert_close(states, torch.tensor(expected["mask_hidden"]), atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("word", ["PAD", "iPAD", "kumquat"])
def test_form_vector_is_the_mean_over_all_ngrams_of_any_word(converted, word):
    model, processor = converted("bert-form")
    vectors = bertram_hf.induce_vectors(model, processor, {word: [], "a-much-longer-word": []})
    expected = model.form_encoder.embeddings.weight[processor.encode_form(word)].mean(dim=0)
    torch.testing.assert_close(vectors[word], expected.detach(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("word", ["", "new york"])
def test_a_mask_in_a_context_stands_for_any_word(converted, word):
    model, processor = converted("bert-add")
    vectors = bertram_hf.induce_vectors(model, processor, {word: ["the [MASK] city", "no word here"]})
    other = bertram_hf.induce_vectors(model, processor, {"x y": ["the [MASK] city"]})  # no n-gram of either is known
    torch.testing.assert_close(vectors[word], other["x y"], atol=TOLERANCE, rtol=0)
    with pytest.raises(IndexError):
        bertram_hf.induce_vectors(model, processor, {word: ["the new york city"]})


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_all_words_in_one_call_equal_the_released_one_by_one(converted, name):
    model, processor = converted(name)
    # The last case of each word: a word is a key of the mapping.
    expected = {case["word"]: case for case in cases(name) if "error" not in case["expected"]}
    vectors = bertram_hf.induce_vectors(
        model, processor, {word: case["contexts"] for word, case in expected.items()}, max_tokens_per_batch=200
    )
    assert vectors.words == list(expected)
    target = torch.tensor([case["expected"]["vector"] for case in expected.values()])
    torch.testing.assert_close(vectors.embeddings, target, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_training_step_of_the_released_code(name):
    step = json.loads((ORIGINAL / "train_step.json").read_text(encoding="utf-8"))[name]
    checkpoint = convert_original(ORIGINAL / "ckpt" / name)
    model = checkpoint.model
    batch = checkpoint.processor(
        [entry["word"] for entry in step["batch"]],
        None if model.config.mode == "form" else [entry["contexts"] for entry in step["batch"]],
    )
    outputs = model(**batch, labels=torch.tensor(step["targets"]))
    torch.testing.assert_close(outputs.word_embeddings, torch.tensor(step["vectors"]), atol=TOLERANCE, rtol=0)
    assert outputs.loss.item() == pytest.approx(step["loss_mse_mean"], abs=TOLERANCE)
    outputs.loss.backward()
    parameters = dict(model.named_parameters())
    for original_name, expected in step["grads"].items():
        module, _, leaf = original_name.rpartition(".")
        gradient = parameters[f"{WEIGHT_NAMES[module]}.{leaf}"].grad
        assert gradient.norm().item() == pytest.approx(expected["norm"], abs=TOLERANCE)
        if "values" in expected:
            actual, target = gradient, expected["values"]
        elif "first_row" in expected:
            actual, target = gradient[0], expected["first_row"]
        else:
            nonzero = gradient.abs().sum(dim=1).nonzero().flatten().tolist()
            assert nonzero == expected["nonzero_rows"]
            actual, target = gradient[nonzero[0]], expected["first_nonzero_row"]
        torch.testing.assert_close(actual, torch.tensor(target), atol=TOLERANCE, rtol=0)


def test_settings_of_the_released_pipeline_are_kept_and_told():
    checkpoint = convert_original(ORIGINAL / "ckpt" / "bert-add-ipnull")
    assert (checkpoint.model.config.mode, checkpoint.processor.prefix) == ("add", "none")
    assert len(checkpoint.notes) == 1
    assert "overwrites a token of the context" in checkpoint.notes[0]
    assert checkpoint.processor.match == "whitespace"
    assert convert_original(ORIGINAL / "ckpt" / "bert-add").notes == []


@pytest.fixture
def broken(tmp_path):
    """Returns a copy of a checkpoint that a test may break, with its tokenizer beside it."""
    shutil.copytree(ORIGINAL / "tiny-bert", tmp_path / "tiny-bert")
    return shutil.copytree(ORIGINAL / "ckpt" / "bert-add", tmp_path / "bert-add")


def test_missing_files_are_named(broken):
    for name in ("input_processor.json.vocab", "bertram_config.json", "pytorch_model.bin"):
        (broken / name).unlink()
        with pytest.raises(FileNotFoundError, match=name):
            convert_original(broken)


def test_a_vocabulary_of_another_checkpoint_is_refused(broken):
    vocab = broken / "input_processor.json.vocab"
    vocab.write_text("\n".join(vocab.read_text().splitlines()[:100]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"gives \d+ n-grams, but the checkpoint has embeddings for 375"):
        convert_original(broken)


def test_weights_of_another_mode_are_refused(broken):
    config = broken / "bertram_config.json"
    config.write_text(config.read_text().replace('"add"', '"shallow"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"do not fit mode 'shallow': missing \['gate.bias', 'gate.weight'\]"):
        convert_original(broken)


def test_parts_that_the_mode_does_not_use_are_left_and_told(broken):
    for name in ("bertram_config.json", "input_processor.json"):
        (broken / name).write_text((broken / name).read_text().replace('"add"', '"context"'), encoding="utf-8")
    checkpoint = convert_original(broken)
    assert checkpoint.model.config.mode == "context"
    assert checkpoint.notes == ["Mode 'context' does not use these parts of the checkpoint: form_encoder."]


@pytest.mark.parametrize(("symbol", "token"), [("is", "is"), ("::", "[UNK]")])
def test_separator_is_looked_up_and_not_tokenised(broken, symbol, token):
    settings = broken / "input_processor.json"
    settings.write_text(settings.read_text().replace('"sep_symbol": ":"', f'"sep_symbol": "{symbol}"'), "utf-8")
    processor = convert_original(broken).processor
    (encoded,) = processor.encode(["tree"], [["a tree"]])
    tokens = processor.tokenizer.convert_ids_to_tokens(encoded.input_ids[0])
    assert tokens == ["[CLS]", "[SEP]", token, "a", "[MASK]", "[SEP]"]


def test_an_unknown_tokenizer_is_named(broken, monkeypatch):
    shutil.rmtree(broken.parent / "tiny-bert")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # or a machine without network tries for long
    with pytest.raises(ValueError, match="Give its folder or name with --tokenizer"):
        convert_original(broken)
    assert convert_original(broken, tokenizer=ORIGINAL / "tiny-bert").model.config.mode == "add"


class _Evil:
    def __reduce__(self):
        return print, ("this must not run",)


def test_pickled_code_is_not_run(broken, capsys):
    torch.save({"linear.weight": _Evil()}, broken / "pytorch_model.bin")
    with pytest.raises(Exception, match="Weights only load failed"):
        convert_original(broken)
    assert "this must not run" not in capsys.readouterr().out
