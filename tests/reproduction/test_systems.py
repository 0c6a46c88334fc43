import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("datatrove")

from bertram_hf.reproduction.systems import name_model


def test_a_model_is_named_by_its_weights_and_by_what_is_set_after_training(tmp_path):
    names = set()
    for name, fields in (
        ("a", {}),
        ("b", {"mode": "pieces"}),
        ("c", {"piece_strength": 16}),
        ("d", {"piece_strength": 4}),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"weights")
        (folder / "config.json").write_text(json.dumps(fields))
        names.add(name_model(str(folder)))
    assert len(names) == 3  # what is not set changes nothing
    other = Path(shutil.copytree(tmp_path / "d", tmp_path / "e"))
    assert name_model(str(other)) in names
    (other / "model.safetensors").write_bytes(b"other weights")
    assert name_model(str(shutil.copytree(other, tmp_path / "f"))) not in names
    assert name_model("user/on-the-hub") == "user/on-the-hub"
