import pytest
from datasets import Dataset

from bertram_hf.reproduction import rows
from bertram_hf.reproduction.rarified import hash_texts
from bertram_hf.training.contexts import EncodedContexts
from bertram_hf.utils.hashing import derive_seed, fingerprint, hash_text


def test_names_and_seeds_of_stored_results_do_not_change():
    assert fingerprint(["naïve", 3]) == "5a8fbbb9307e2bbd7cac616ec9f0786f"
    assert fingerprint({"b": [1, 2.5], "a": None}, sort_keys=True) == "6b1d84977084473f4b3b012fc8f1d082"
    assert hash_text("a kumquat") == "aa783d58484f04ddc78fa9d88d671505"
    assert derive_seed(3, "fold", "river") == 12913779622312762902
    assert derive_seed(3, "bertram-add", num_bytes=4) == 2314605118
    assert EncodedContexts.without_contexts(["river", "lake"]).key == "98b516951273de593d261688b6cc3afd"
    assert rows.fingerprint({"b": [1, {}], "a": {"d": 2, "c": None}}) == "c2ad93ebb9429db70a09f445e7f80083"
    rarified = Dataset.from_dict({"rarified_text": ["a kumqat", "b"], "label": [0, 1]})
    assert hash_texts(rarified) == "903154bfc375f3a03b483163d6e2d834"


def test_what_json_cannot_write_is_refused_unless_told_how():
    with pytest.raises(TypeError, match="not JSON serializable"):
        fingerprint({"words": {"river"}})
    assert fingerprint({"words": {"river"}}, default=str) == fingerprint({"words": "{'river'}"})
