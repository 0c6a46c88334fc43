import numpy as np
import pytest
import torch
from support.tiny_training import prepare_stage

from bertram_hf.training.ridge import NUM_DRAWS, start_from_ridge

NUM_CONTEXTS = 6
STRENGTH = 2.5


def start(stage, penalty, *, smallest=NUM_CONTEXTS, largest=NUM_CONTEXTS, seed=0):
    start_from_ridge(
        stage["model"], stage["inputs"], penalty=penalty, min_contexts=smallest, max_contexts=largest, seed=seed
    )


def all_inputs(stage):
    inputs = stage["inputs"]
    return inputs(np.arange(len(inputs.contexts.words)), np.arange(len(inputs.contexts)), inputs.contexts.num_contexts)


def induce(stage):
    with torch.no_grad():
        inputs = all_inputs(stage)
        inputs.pop("labels")
        return stage["model"].eval()(**inputs).word_embeddings


def naive_prediction(stage, penalty, *, has_bias=True):
    """Least squares in double precision over an explicit design, with rows that stand for the penalty."""
    inputs, model = all_inputs(stage), stage["model"]
    contexts = inputs["context_embeddings"].double().view(-1, NUM_CONTEXTS, model.config.context_size).mean(dim=1)
    blocks = [(contexts, 1.0)]
    if model.config.form_strength is not None:
        share = NUM_CONTEXTS / (NUM_CONTEXTS + STRENGTH)
        form = model.encode_forms(inputs["form_ids"]).detach().double()
        blocks = [(contexts, share), (form, 1 - share)]
        if model.config.second_map:
            blocks.append((contexts, share**2))
    scaled, biases = [], []
    for values, share in blocks:
        scale = values.repeat(NUM_DRAWS, 1).std(dim=0)
        mean = values.mean(dim=0) if has_bias else 0.0
        scaled.append(share * (values - mean) / scale)
        biases.append(torch.full((len(values), 1), share * has_bias, dtype=torch.float64))
    slopes, biases = torch.cat(scaled, dim=1), torch.cat(biases, dim=1)
    design = torch.cat([slopes, biases], dim=1)
    penalties = torch.cat([torch.full((slopes.shape[1],), penalty), torch.full((biases.shape[1],), 1e-9)]).double()
    targets = inputs["labels"].double()
    solution = torch.linalg.lstsq(
        torch.cat([design, penalties.sqrt().diag()]),
        torch.cat([targets, torch.zeros(len(penalties), targets.shape[1], dtype=torch.float64)]),
    ).solution
    return (design @ solution).float()


@pytest.mark.parametrize("penalty", [0.1, 10.0])
@pytest.mark.parametrize(
    ("mode", "fields"),
    [
        ("context", {}),
        ("context", {"context_weighting": "uniform", "output_bias": False}),
        ("context", {"context_layers": "all"}),
        ("add", {"freeze_form": True}),
        ("add", {"freeze_form": True, "form_strength": STRENGTH}),
        ("add", {"freeze_form": True, "form_strength": STRENGTH, "second_map": True}),
    ],
)
def test_start_equals_least_squares_over_the_explicit_design(tmp_path, mode, fields, penalty):
    stage = prepare_stage(tmp_path, mode, cache="float32", num_contexts=NUM_CONTEXTS, **fields)
    if mode == "add":
        with torch.no_grad():
            stage["model"].form_encoder.embeddings.weight.normal_()
    expected = naive_prediction(stage, penalty, has_bias=fields.get("output_bias", True))
    start(stage, penalty)
    torch.testing.assert_close(induce(stage), expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("form_strength", [None, STRENGTH])
def test_start_is_far_better_than_random_weights(tmp_path, form_strength):
    stage = prepare_stage(tmp_path, "add", cache="float16", freeze_form=True, form_strength=form_strength)
    targets = stage["inputs"].targets

    def loss():
        return torch.nn.functional.mse_loss(induce(stage), targets).item()

    random_loss = loss()
    start(stage, 0.1, smallest=1)
    assert loss() < 0.6 * random_loss


def test_start_depends_on_the_seed_only(tmp_path):
    results = []
    for seed in (0, 0, 1):
        stage = prepare_stage(tmp_path, cache="float32")
        start(stage, 1.0, smallest=1, largest=4, seed=seed)
        results.append(stage["model"].output_map.weight.detach().clone())
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_start_weighs_contexts_uniformly(tmp_path):
    stage = prepare_stage(tmp_path, cache="float32")
    start(stage, 1.0)
    inputs = all_inputs(stage)
    inputs.pop("labels")
    with torch.no_grad():
        weights = stage["model"](**inputs).context_weights
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / NUM_CONTEXTS))


def test_feature_that_never_changes_says_nothing(tmp_path):
    stage = prepare_stage(tmp_path, cache="float32")
    features = np.array(stage["inputs"].features)
    features[:, 3] = 2.0
    stage["inputs"].features = features
    start(stage, 1.0)
    weights = stage["model"].output_map.weight
    assert not weights[:, 3].any()
    assert weights[:, 4].all()
    assert weights.isfinite().all()
