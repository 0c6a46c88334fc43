import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support.tiny_training import prepare_stage, small_stage

from bertram_hf import BertramModel
from bertram_hf.training.batches import WordBatches
from bertram_hf.training.stage import read_record, train_stage
from bertram_hf.training.trainer import BertramTrainer
from bertram_hf.utils.trainer import last_whole_checkpoint

# Trains until a number of steps is done, then gets kill -9.
KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from support.tiny_training import prepare_stage, small_stage
from bertram_hf.training.trainer import BertramTrainer
from bertram_hf.training.stage import train_stage
from training.test_stage import OPTIONS
folder, last_step, mode = sys.argv[2], int(sys.argv[3]), sys.argv[4]

def compute_loss(self, *args, compute=BertramTrainer.compute_loss, **kwargs):
    if self.state.global_step == last_step:
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(self, *args, **kwargs)

BertramTrainer.compute_loss = compute_loss
stage = prepare_stage(folder, mode, **OPTIONS[mode])
train_stage(**stage, settings=small_stage(mode), folder=folder + "/stage", fingerprint="a")
"""

# Of the stages that are killed: one with cached features, one without contexts, and one that trains the encoder.
OPTIONS = {"shallow": {"cache": "float32"}, "form": {}, "pieces": {"freeze_encoder": False, "context_layers": "all"}}


def run(tmp_path, stage, settings, *, fingerprint="a", name="stage"):
    """Trains a stage. Returns the model's own weights and the stage's record."""
    model = train_stage(**stage, settings=settings, folder=tmp_path / name, fingerprint=fingerprint)
    return own_weights(model), read_record(tmp_path / name)


def own_weights(model):
    frozen = "encoder." if model.config.freeze_encoder else "encoder.embeddings.word_embeddings."
    return {name: value.clone() for name, value in model.state_dict().items() if not name.startswith(frozen)}


def assert_equal_weights(left, right):
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert torch.equal(value, right[name]), name


def losses(record):
    return [entry[key] for entry in record["history"] for key in ("loss", "eval_loss", "eval_mrr_4") if key in entry]


@pytest.mark.parametrize(("mode", "freeze_form"), [("context", False), ("add", True), ("pieces", True)])
def test_training_with_and_without_cache_is_the_same(tmp_path, mode, freeze_form):
    records = []
    for cache in (None, "float32"):
        stage = prepare_stage(tmp_path / str(cache), mode, cache=cache, freeze_form=freeze_form)
        records.append(run(tmp_path / str(cache), stage, small_stage())[1])
    assert len(losses(records[0])) == 12 + 2 * 2
    assert losses(records[0]) == pytest.approx(losses(records[1]), rel=1e-3)
    assert losses(records[0])[0] > losses(records[0])[-3]


@pytest.mark.parametrize("mode", OPTIONS)
def test_killed_training_goes_on_to_bit_equal_weights(tmp_path, mode):
    once, record = run(tmp_path / "once", prepare_stage(tmp_path / "once", mode, **OPTIONS[mode]), small_stage(mode))
    killed = tmp_path / "killed"
    # Before the first checkpoint; and in the second epoch, after it.
    for last_step, checkpoints in ((3, []), (8, ["checkpoint-5"])):
        command = [sys.executable, "-c", KILLED, str(Path(__file__).parents[1]), str(killed), str(last_step), mode]
        result = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        assert result.returncode == -signal.SIGKILL, result.stderr[-2000:]
        assert [path.name for path in (killed / "stage").glob("checkpoint-*")] == checkpoints
    weights = load_file(killed / "stage" / "checkpoint-5" / "model.safetensors")
    assert weights.keys() == once.keys()  # and so nothing of the frozen encoder
    (killed / "stage" / "checkpoint-10").mkdir()  # of which a kill left nothing else
    assert read_record(killed / "stage") == {"fingerprint": "a"}

    resumed, resumed_record = run(killed, prepare_stage(killed, mode, **OPTIONS[mode]), small_stage(mode))
    assert_equal_weights(resumed, once)
    assert losses(resumed_record) == losses(record)
    assert resumed_record["steps"] == record["steps"] == 12
    assert not list((killed / "stage").glob("checkpoint-*"))


def test_finished_stage_is_not_trained_again(tmp_path, monkeypatch):
    first, record = run(tmp_path, prepare_stage(tmp_path, "shallow", cache="float32"), small_stage())
    monkeypatch.setattr(BertramTrainer, "train", lambda *args, **kwargs: pytest.fail("trained again"))
    stage = prepare_stage(tmp_path, "shallow", cache="float32")
    assert not torch.equal(own_weights(stage["model"])["output_map.weight"], first["output_map.weight"])
    again, same_record = run(tmp_path, stage, small_stage())
    assert_equal_weights(again, first)
    assert same_record == record
    loaded = BertramModel.from_pretrained(tmp_path / "stage", encoder=stage["model"].encoder)
    assert_equal_weights(own_weights(loaded), first)


def test_other_fingerprint_begins_anew(tmp_path, caplog):
    def train(fingerprint, name, **trainer):
        stage = prepare_stage(tmp_path, cache="float32")
        return run(tmp_path, stage, small_stage(trainer=trainer), fingerprint=fingerprint, name=name)

    first, _ = train("a", "stage", num_train_epochs=1)
    (tmp_path / "stage" / "checkpoint-5").mkdir()
    (tmp_path / "stage" / "checkpoint-5" / "trainer_state.json").write_text("{}")
    second, record = train("b", "stage", num_train_epochs=1, learning_rate=0.01)
    assert "trained with other settings or data" in caplog.text
    elsewhere, _ = train("b", "elsewhere", num_train_epochs=1, learning_rate=0.01)
    assert_equal_weights(second, elsewhere)
    assert not torch.equal(first["output_map.weight"], second["output_map.weight"])
    assert record["fingerprint"] == "b"


def test_every_epoch_has_its_own_batches(tmp_path, monkeypatch):
    epochs = []
    set_epoch = WordBatches.set_epoch
    monkeypatch.setattr(WordBatches, "set_epoch", lambda self, epoch: (epochs.append(epoch), set_epoch(self, epoch)))
    run(tmp_path, prepare_stage(tmp_path, "form"), small_stage("form", trainer={"num_train_epochs": 3}))
    assert set(epochs) == {0, 1, 2}


@pytest.mark.parametrize("lazy_adam", [False, True])
def test_form_stage_learns_its_words(tmp_path, lazy_adam):
    settings = small_stage("form", lazy_adam=lazy_adam, trainer={"num_train_epochs": 15, "learning_rate": 0.03})
    stage = prepare_stage(tmp_path, "form", ngram_dropout=0.0)
    _, record = run(tmp_path, stage, settings)
    values = [entry["loss"] for entry in record["history"] if "loss" in entry]
    assert values[-1] < 0.3 * values[0]


def test_lazy_adam_leaves_other_stages_as_they_are(tmp_path):
    results = [
        run(tmp_path, prepare_stage(tmp_path), small_stage(lazy_adam=lazy_adam), name=str(lazy_adam))[0]
        for lazy_adam in (False, True)
    ]
    assert_equal_weights(*results)


def test_patience_stops_early_and_the_best_model_is_kept(tmp_path):
    best = {"load_best_model_at_end": True, "metric_for_best_model": "eval_loss", "save_strategy": "epoch"}
    still = small_stage(patience=2, trainer=best | {"num_train_epochs": 9, "learning_rate": 0.0})
    _, record = run(tmp_path, prepare_stage(tmp_path, cache="float32"), still)
    assert record["epochs"] == 3  # one evaluation, and two that were not better

    # The highest loss for the best one: the first epoch's, as training lowers it.
    highest = small_stage(patience=1, trainer=best | {"num_train_epochs": 9, "greater_is_better": True})
    _, record = run(tmp_path, prepare_stage(tmp_path, cache="float32"), highest, name="highest")
    evaluations = [entry["eval_loss"] for entry in record["history"] if "eval_loss" in entry]
    assert record["epochs"] == 2
    assert record["eval_loss"] == evaluations[0] > evaluations[1]


def test_patience_alone_keeps_the_model_that_recovers_words_best(tmp_path):
    stage = prepare_stage(tmp_path, cache="float32")
    settings = small_stage(patience=2, trainer={"num_train_epochs": 9, "learning_rate": 0.0, "save_strategy": "epoch"})
    assert run(tmp_path, stage, settings)[1]["epochs"] == 3
    with pytest.raises(ValueError, match="patience needs held-out words to watch; set development_share"):
        run(tmp_path, stage | {"heldout": None}, settings, name="unwatched")


def test_half_precision_of_the_cache_hardly_changes_the_losses(tmp_path):
    records = [
        run(tmp_path / dtype, prepare_stage(tmp_path / dtype, cache=dtype), small_stage())[1]
        for dtype in ("float32", "float16")
    ]
    assert losses(records[0]) == pytest.approx(losses(records[1]), rel=1e-2)


def test_settings_that_are_refused_leave_what_was_trained(tmp_path):
    stage = prepare_stage(tmp_path, "form")
    weights, record = run(tmp_path, stage, small_stage("form"))
    refused = small_stage("form", lazy_adam=True, trainer={"max_grad_norm": 1.0})
    with pytest.raises(ValueError, match="lazy_adam takes neither"):
        run(tmp_path, stage, refused, fingerprint="b")
    again, same_record = run(tmp_path, stage, small_stage("form"))
    assert_equal_weights(again, weights)
    assert same_record == record


def test_lazy_adam_refuses_what_it_cannot_do(tmp_path):
    settings = small_stage("form", lazy_adam=True, trainer={"max_grad_norm": 1.0})
    with pytest.raises(ValueError, match="lazy_adam takes neither max_grad_norm nor several processes"):
        run(tmp_path, prepare_stage(tmp_path, "form"), settings)


def test_trainer_may_not_take_several_batches_at_once(tmp_path):
    settings = small_stage(trainer={"per_device_train_batch_size": 2})
    with pytest.raises(ValueError, match="the Trainer asked for 2 at once"):
        run(tmp_path, prepare_stage(tmp_path, cache="float32"), settings)


def test_half_written_checkpoint_is_left_out(tmp_path):
    assert last_whole_checkpoint(tmp_path) is None
    for step in (5, 10, 15):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-5" / "trainer_state.json").write_text("{}")
    (tmp_path / "checkpoint-15" / "trainer_state.json").write_text('{"epoch":')  # killed while it was written
    assert last_whole_checkpoint(tmp_path) == str(tmp_path / "checkpoint-5")
    assert not (tmp_path / "checkpoint-10").exists()
