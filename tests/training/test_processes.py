import json
import os
import random
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file
from support.tiny_training import APPROXIMATE, HELDOUT, induce, read_training, write_encoder, write_recipe

pytest.importorskip("datatrove")

from bertram_hf.training.recipe import Recipe
from bertram_hf.training.run import train_recipe

NUM_KILLS = 3


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def test_three_processes_train_a_model(encoder_folder, tmp_path):
    fields = {"targets": APPROXIMATE, "form_folds": 2, "look_alikes": {"num_words": 20, "max_contexts": 2}}
    path = write_recipe(tmp_path, encoder_folder, systems=["bertram-add"], **fields)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "3", "--standalone"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(
        [*command, "-m", "bertram_hf.cli", "train", str(path), "--json"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=280,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert list(json.loads(result.stdout)) == ["bertram-add"]  # of one process only
    assert induce(tmp_path / "out" / "bertram-add", HELDOUT).isfinite().all()
    record = read_training(tmp_path / "out", "bertram-add")
    assert [stage.get("epochs") for stage in record["stages"]] == [1, 1, 1, None]  # context, form, both, look-alikes
    assert record["data"]["sources"]["approximation"] > 0


def test_killed_last_stage_gives_the_same(tmp_path, encoder_folder, monkeypatch):
    fields = {"look_alikes": {"num_words": 20, "max_contexts": 2}}
    whole, killed = (write_recipe(tmp_path / name, encoder_folder, **fields) for name in ("whole", "killed"))
    train_recipe(Recipe.load(whole), show_progress=False)

    def kill(*arguments, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bertram_hf.training.run.write_record", kill)
        with pytest.raises(KeyboardInterrupt):
            train_recipe(Recipe.load(killed), show_progress=False)
    train_recipe(Recipe.load(killed), show_progress=False)
    weights = [load_file(path.parent / "out" / "bertram-add" / "model.safetensors") for path in (whole, killed)]
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


def test_kill_at_any_moment_changes_nothing(tmp_path, encoder_folder):
    """Corpus, targets and all stages, with kill -9 at random moments until nothing is left to do."""
    fields = {"systems": ["bertram-add", "bertram-shallow"], "targets": APPROXIMATE, "form_folds": 2}
    fields["look_alikes"] = {"num_words": 20, "max_contexts": 2}
    whole, killed = (write_recipe(tmp_path / name, encoder_folder, **fields) for name in ("whole", "killed"))

    def start(path):
        command = [sys.executable, "-m", "bertram_hf.cli", "train", str(path)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    begun = time.monotonic()
    process = start(whole)
    while process.poll() is None and not (whole.parent / "out").exists():
        time.sleep(0.01)
    seconds_to_start = time.monotonic() - begun
    assert process.wait() == 0
    seconds = time.monotonic() - begun
    moments = [random.uniform(seconds_to_start, seconds) for _ in range(NUM_KILLS)]
    for moment in moments:
        process = start(killed)
        time.sleep(moment)
        process.kill()
        process.wait()
    assert start(killed).wait() == 0
    for system in fields["systems"]:
        first, second = (load_file(path.parent / "out" / system / "model.safetensors") for path in (whole, killed))
        assert all(torch.equal(value, second[name]) for name, value in first.items()), f"killed after {moments} s"
