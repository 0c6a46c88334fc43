import pytest
import torch
from support import reference
from support.tiny_models import FAMILIES
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    CanineConfig,
    CanineModel,
    FNetConfig,
    FNetModel,
    T5Config,
    T5Model,
)

from bertram_hf import PRESETS, BertramConfig, BertramModel, induce_vectors
from bertram_hf.modeling_context import BERT_LAYERED_TYPES, read_at_positions

WORDS = {
    "kumquat": ["she peeled a kumquat, and then the kumquat was gone", "kumquat", "the tree bears kumquat fruit"],
    "quokka": ["a small quokka in the old garden under the green tree near the river and the boat and the church"],
    "aquatic": [f"the {word} aquatic animal" for word in ("small", "old", "green", "warm", "late", "red", "blue")],
}
MODES = ("form", "context", "shallow", "replace", "add", "add-quotes")


def forward(model, processor, words=WORDS):
    with torch.no_grad():
        return model.eval()(**processor(list(words), list(words.values())))


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("mode", MODES)
def test_model_equals_the_equations(make_pair, mode, family):
    model, processor = make_pair(mode, family)
    outputs = forward(model, processor)
    with torch.no_grad():
        expected = [reference.induce(model, processor, word, contexts) for word, contexts in WORDS.items()]
    torch.testing.assert_close(outputs.word_embeddings, torch.stack([v for v, _ in expected]), atol=1e-5, rtol=1e-5)
    if mode != "form":
        rho = torch.stack([weight for _, word_weights in expected for weight in word_weights])
        torch.testing.assert_close(outputs.context_weights, rho, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_encoder_family_equals_the_equations(make_pair, family):
    model, processor = make_pair("replace", family)
    outputs = forward(model, processor)
    with torch.no_grad():
        expected = [reference.induce(model, processor, word, contexts)[0] for word, contexts in WORDS.items()]
    assert outputs.word_embeddings.shape[1] == model.get_input_embeddings().weight.shape[1]
    torch.testing.assert_close(outputs.word_embeddings, torch.stack(expected), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("preset", [name for name in PRESETS if PRESETS[name].get("context_encoder")])
def test_bag_of_words_presets_equal_the_equations(make_encoder, make_pair, preset):
    fields = PRESETS[preset]
    model, processor = make_pair(**fields)
    outputs = forward(model, processor)
    with torch.no_grad():
        expected = [reference.induce(model, processor, word, contexts)[0] for word, contexts in WORDS.items()]
    torch.testing.assert_close(outputs.word_embeddings, torch.stack(expected), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_train(make_pair, preset):
    model, processor = make_pair(**PRESETS[preset])
    assert BertramConfig.from_preset(preset).mode == model.config.mode
    batch = processor(list(WORDS), list(WORDS.values()))
    labels = torch.randn(len(WORDS), model.config.embedding_size)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.03)
    model.train()
    losses = []
    for _ in range(60):
        loss = model(**batch, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("form_encoder", ["ngram", "lstm", "cnn"])
def test_form_vector_does_not_depend_on_the_padding(make_pair, form_encoder):
    model, processor = make_pair("form", form_encoder=form_encoder)
    words = ["k", "kumquat", "kumquatkumquatkumquat", "東京", "qualm"]
    with torch.no_grad():
        together = model(**processor(words)).word_embeddings
        alone = torch.cat([model(**processor([word])).word_embeddings for word in words])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", BERT_LAYERED_TYPES)
def test_last_layer_at_some_positions_equals_the_full_encoder(make_encoder, family):
    encoder = make_encoder(family)
    inputs_embeds = torch.randn(5, 9, encoder.get_input_embeddings().weight.shape[1])
    attention_mask = (torch.arange(9) < torch.tensor([9, 3, 5, 7, 2])[:, None]).long()
    positions = torch.tensor([[4, 8], [2, 2], [0, 1], [6, 3], [1, 0]])
    with torch.no_grad():
        full = encoder(inputs_embeds=inputs_embeds, attention_mask=attention_mask).last_hidden_state
        read = read_at_positions(encoder, inputs_embeds, attention_mask, positions)
    torch.testing.assert_close(read, full[torch.arange(5)[:, None], positions], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["bert", "mpnet", "distilbert"])  # the last is not read packed
def test_all_layers_are_the_hidden_states_of_the_encoder(make_encoder, make_pair, family):
    encoder = make_encoder(family)
    inputs_embeds = torch.randn(5, 9, 32)
    attention_mask = (torch.arange(9) < torch.tensor([9, 3, 5, 7, 2])[:, None]).long()
    positions = torch.tensor([[4, 8], [2, 2], [0, 1], [6, 3], [1, 0]])
    rows = torch.arange(5)[:, None]
    with torch.no_grad():
        full = encoder(inputs_embeds=inputs_embeds, attention_mask=attention_mask, output_hidden_states=True)
        read = read_at_positions(encoder, inputs_embeds, attention_mask, positions, all_layers=True)
    expected = torch.cat([states[rows, positions] for states in full.hidden_states[1:]], dim=-1)
    torch.testing.assert_close(read, expected, atol=1e-5, rtol=1e-5)

    model, processor = make_pair("context", family, context_layers="all")
    last, _ = make_pair("context", family)
    outputs, last_outputs = (forward(each, processor) for each in (model, last))
    assert outputs.context_embeddings.shape[1] == model.output_map.in_features == 3 * 32
    torch.testing.assert_close(
        outputs.context_embeddings[:, -32:], last_outputs.context_embeddings, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize(("form_strength", "second_map"), [(None, False), (2.5, False), (2.5, True)])
@pytest.mark.parametrize("output_norm", [None, 3.0])
@pytest.mark.parametrize("mode", ["replace", "add"])
def test_form_strength_second_map_and_output_norm_equal_their_formulas(
    make_pair, tmp_path, mode, form_strength, second_map, output_norm
):
    model, processor = make_pair(mode, form_strength=form_strength, second_map=second_map, output_norm=output_norm)
    words = {"qualm": [], **WORDS, "quack": []}
    mean = model.encoder.get_input_embeddings().weight.detach().mean(dim=0)
    expected = []
    with torch.no_grad():
        for word, contexts in words.items():
            vector, _ = reference.induce(model, processor, word, contexts)
            if form_strength is not None:
                form = reference.form_vector(model, processor, word)
                spelled = model.form_map.weight @ form + model.form_map.bias
                share = len(contexts) / (len(contexts) + form_strength)
                if second_map and contexts:
                    # A is what the reference puts on the contexts; A' takes its place for the second term.
                    first, model.output_map = model.output_map, model.second_map
                    vector = vector + share * reference.induce(model, processor, word, contexts)[0]
                    model.output_map = first
                vector = share * vector + (1 - share) * spelled
            if output_norm is not None:
                vector = mean + output_norm * (vector - mean) / (vector - mean).norm()
            expected.append(vector)
    induced = forward(model, processor, words).word_embeddings
    torch.testing.assert_close(induced, torch.stack(expected), atol=1e-5, rtol=1e-4)
    alone = forward(model, processor, {"qualm": []}).word_embeddings
    torch.testing.assert_close(alone[0], induced[0], atol=1e-6, rtol=1e-5)
    for slim in (False, True):
        model.save_pretrained(tmp_path / str(slim), include_encoder=not slim)
        loaded = BertramModel.from_pretrained(tmp_path / str(slim), **{"encoder": model.encoder} if slim else {})
        assert torch.equal(forward(loaded, processor, words).word_embeddings, induced)


def test_output_norm_holds_for_context_and_shallow_models(make_pair):
    for mode in ("context", "shallow"):
        model, processor = make_pair(mode, output_norm=2.0)
        distances = (forward(model, processor).word_embeddings - model.vocabulary_mean).norm(dim=1)
        torch.testing.assert_close(distances, torch.full((3,), 2.0))


def test_words_without_contexts_get_their_form_vector(make_pair):
    for mode in ("shallow", "replace", "add", "add-quotes"):
        model, processor = make_pair(mode)
        words = {"qualm": [], "kumquat": WORDS["kumquat"], "quack": []}
        outputs = forward(model, processor, words)
        assert torch.equal(outputs.word_embeddings[[0, 2]], outputs.form_embeddings[[0, 2]])
        assert not torch.equal(outputs.word_embeddings[1], outputs.form_embeddings[1])
        no_contexts = forward(model, processor, {"qualm": []})
        torch.testing.assert_close(no_contexts.word_embeddings[0], outputs.word_embeddings[0])


def test_context_model_refuses_words_without_contexts(make_pair):
    model, processor = make_pair("context")
    with pytest.raises(ValueError, match="without contexts"):
        model(**processor(["kumquat", "quokka"], [["a kumquat"], []]))
    with pytest.raises(ValueError, match="without contexts"):
        model(**processor(["kumquat"]))


def test_missing_inputs_are_named(make_pair):
    model, processor = make_pair("add")
    batch = processor(["kumquat"], [["a kumquat"]])
    with pytest.raises(ValueError, match="form_ids"):
        model(**{key: value for key, value in batch.items() if key != "form_ids"})
    with pytest.raises(ValueError, match="num_contexts"):
        model(**{key: value for key, value in batch.items() if key != "num_contexts"})


def test_weights_of_a_word_sum_to_one(make_pair):
    outputs = forward(*make_pair("add"))
    sums = [part.sum().item() for part in outputs.context_weights.split([3, 1, 7])]
    assert sums == pytest.approx([1, 1, 1], abs=1e-5)


def test_loss_is_the_mean_squared_error(make_pair):
    model, processor = make_pair("add")
    batch = processor(list(WORDS), list(WORDS.values()))
    labels = torch.randn(3, 32)
    outputs = model(**batch, labels=labels)
    assert outputs.loss.item() == pytest.approx((outputs.word_embeddings - labels).square().mean().item())
    assert model(**batch, labels=labels, return_dict=False)[0].item() == pytest.approx(outputs.loss.item())


def test_frozen_parts_stay_frozen_and_in_eval_mode(make_pair, tmp_path):
    model, _ = make_pair("add", freeze_form=True)
    for candidate in (model, _reload(model, tmp_path)):
        candidate.train()
        assert not any(p.requires_grad for p in candidate.encoder.parameters())
        assert not any(p.requires_grad for p in candidate.form_encoder.parameters())
        assert all(p.requires_grad for p in candidate.output_map.parameters())
        assert not candidate.encoder.training
        assert candidate.output_map.training


def test_gradients_reach_the_form_part_through_the_frozen_encoder(make_pair):
    model, processor = make_pair("add")
    model(**processor(list(WORDS), list(WORDS.values())), labels=torch.zeros(3, 32)).loss.backward()
    assert model.form_encoder.embeddings.weight.grad.abs().sum() > 0


def test_ngram_dropout_works_in_training_only(make_pair):
    model, processor = make_pair("form", ngram_dropout=0.5)
    batch = processor(["kumquatkumquat"])
    assert torch.equal(model.eval()(**batch).word_embeddings, model(**batch).word_embeddings)
    model.train()
    samples = torch.cat([model(**batch).word_embeddings for _ in range(200)])
    assert samples.std(dim=0).mean() > 0.01
    model.form_encoder.dropout = 0.999999
    torch.testing.assert_close(model(**batch).word_embeddings[0], model.form_encoder.embeddings.weight[0])


def test_given_encoder_is_copied_and_left_as_it_was(make_encoder):
    encoder = make_encoder("bert")
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    BertramModel.from_encoder(encoder, mode="context")
    assert encoder.pooler is not None
    assert all(parameter.requires_grad for parameter in encoder.parameters())
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())


def test_model_with_a_head_gives_its_encoder(make_encoder):
    masked_lm = BertForMaskedLM(make_encoder("bert").config)
    model = BertramModel.from_encoder(masked_lm, mode="context")
    assert torch.equal(model.get_input_embeddings().weight, masked_lm.get_input_embeddings().weight)


def test_encoders_that_cannot_work_are_named():
    small = {"d_model": 16, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 30}
    with pytest.raises(ValueError, match=r"T5Model.*encoder-decoder"):
        BertramModel.from_encoder(T5Model(T5Config(**small, d_kv=8)), mode="context")
    canine = CanineConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    with pytest.raises(ValueError, match="CanineModel"):
        BertramModel.from_encoder(CanineModel(canine), mode="context")
    fnet = FNetConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1, intermediate_size=16)
    with pytest.raises(ValueError, match=r"FNetModel.*reads what stands in padded positions"):
        BertramModel.from_encoder(FNetModel(fnet), mode="context")


def test_half_precision_is_no_reason_to_refuse_an_encoder():
    torch.manual_seed(0)
    config = BertConfig(vocab_size=90, hidden_size=384, num_attention_heads=12, num_hidden_layers=6)
    encoder = BertModel(config).to(torch.bfloat16)
    assert BertramModel.from_encoder(encoder, mode="context").dtype == torch.bfloat16


def test_unknown_fields_and_choices_are_errors(make_encoder):
    with pytest.raises(ValueError, match="mode must be one of form, context"):
        BertramConfig(mode="bogus")
    with pytest.raises(ValueError, match="no preset 'bogus'"):
        BertramConfig.from_preset("bogus")
    with pytest.raises(ValueError, match="bag of words"):
        BertramConfig(mode="add", context_encoder="bag-of-words")
    with pytest.raises(ValueError, match="no fields"):
        BertramModel.from_encoder(make_encoder(), mod="add")


def test_gradient_checkpointing_gives_the_same_gradients(make_pair):
    model, processor = make_pair("replace", freeze_encoder=False)
    batch = processor(list(WORDS), list(WORDS.values()))
    gradients = []
    for checkpointing in (False, True):
        if checkpointing:
            model.gradient_checkpointing_enable()
        model.train()
        model.encoder.eval()  # no dropout, so that both runs are comparable
        for layer in model.encoder.encoder.layer:
            layer.training = True  # checkpointing is active in training mode only
        model.zero_grad()
        torch.manual_seed(0)
        model(**batch, labels=torch.zeros(3, 32)).loss.backward()
        gradients.append(model.encoder.encoder.layer[0].intermediate.dense.weight.grad.clone())
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_close_to_single(make_pair, dtype):
    model, processor = make_pair("add")
    expected = induce_vectors(model, processor, WORDS).embeddings
    actual = induce_vectors(model.to(dtype), processor, WORDS).embeddings
    assert actual.dtype == dtype
    assert torch.cosine_similarity(actual.float(), expected).min() > 0.99


def _reload(model, folder):
    model.save_pretrained(folder)
    return BertramModel.from_pretrained(folder)


def test_whole_numbers_serve_as_strength_and_norm(make_pair):
    model, processor = make_pair("add", form_strength=3, output_norm=2, second_map=True)
    assert forward(model, processor).word_embeddings.isfinite().all()
    with pytest.raises(ValueError, match="second_map needs form_strength"):
        make_pair("add", second_map=True)
