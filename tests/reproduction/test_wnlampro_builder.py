import argparse
import json
import random
from collections import Counter

import pytest
from support.linked_wordnet import write_linked_wordnet

from bertram_hf.cli import wnlampro as command
from bertram_hf.evaluation.wnlampro import read_wnlampro, write_wnlampro
from bertram_hf.rarification.wordnet import open_wordnet
from bertram_hf.reproduction.wnlampro_builder import TargetFinder, build_probe, corrupt_spelling, count_tagged
from bertram_hf.words.families import word_family

VOCABULARY = ["dog", "horse", "animal", "mammal", "tree", "plant", "cold", "warm", "dark", "lemon", "organism"]
COUNTS = dict.fromkeys(VOCABULARY, 500) | {"animal": 900, "quokka": 3, "kumquat": 12, "wallaby": 1, "tepid": 4}


@pytest.fixture(scope="module")
def wordnet(tmp_path_factory):
    return open_wordnet(write_linked_wordnet(tmp_path_factory.mktemp("wordnet") / "dict"))


def build(wordnet, counts=COUNTS, vocabulary=VOCABULARY, **settings):
    return build_probe(wordnet, counts, vocabulary, **{"zipf_frequency": lambda word: 3.14159} | settings)


def find(probe, keyword, relation):
    entries = [e for e in probe.entries if e.keyword.word == keyword and e.relation == relation]
    return [target.word for entry in entries for target in entry.targets]


def test_targets_stand_in_the_relation(wordnet):
    probe = build(wordnet)
    # "organism" has depth 2 and "beast" is no token; the most frequent one is first
    assert find(probe, "quokka", "hypernym") == ["animal", "mammal"]
    assert find(probe, "kumquat", "cohyponym") == ["lemon"]
    assert find(probe, "quokka", "cohyponym") == ["dog", "horse"]  # "dark" mostly is an adjective
    assert find(probe, "warm", "antonym") == ["cold"]
    assert find(probe, "tepid", "antonym") == ["cold"]  # of "warm", which it is similar to
    assert not find(probe, "gelid", "antonym")  # no context is known of it
    assert all(entry.keyword.word not in {t.word for t in entry.targets} for entry in probe.entries)


def test_keywords_have_their_annotation(wordnet):
    entry = next(e for e in build(wordnet).entries if e.keyword.word == "kumquat" and e.relation == "hypernym")
    assert str(entry.keyword) == "kumquat (n,3.14,12)"
    assert entry.band == "medium"
    assert str(entry.targets[0]) == "plant (n,3.14,500)"


def test_corruptions_are_no_words_and_their_target_is(wordnet):
    probe = build(wordnet)
    corruptions = [entry for entry in probe.entries if entry.relation == "corruption"]
    assert {entry.targets[0].word for entry in corruptions} == {w for w in VOCABULARY if len(w) >= 5}
    for entry in corruptions:
        word, wrong = entry.targets[0].word, entry.keyword.word
        assert len(entry.targets) == 1
        assert wrong[0] == word[0]
        assert wrong not in COUNTS
        assert abs(len(wrong) - len(word)) <= 1
        assert entry.band == "rare"
    finder = TargetFinder(wordnet, COUNTS | {"hosre": 10}, set(VOCABULARY))
    assert [finder.is_known(word) for word in ("hosre", "horse", "horses", "horrse")] == [True, True, True, False]


@pytest.mark.parametrize("seed", range(20))
def test_an_edit_changes_one_place(seed):
    wrong = corrupt_spelling("resignation", random.Random(seed))
    assert wrong[0] == "r"
    assert abs(len(wrong) - len("resignation")) <= 1
    assert (Counter(wrong) - Counter("resignation")).total() <= 1


def test_one_seed_gives_one_probe_and_another_another(wordnet):
    assert build(wordnet, seed=1) == build(wordnet, seed=1)
    splits = {tuple(entry.split for entry in build(wordnet, seed=seed, dev_share=0.5).entries) for seed in range(5)}
    assert len(splits) > 1


def test_families_stay_on_one_side(wordnet):
    sides = {}
    for entry in build(wordnet, dev_share=0.5).entries:
        head = entry.targets[0].word if entry.relation == "corruption" else entry.keyword.word
        sides.setdefault(word_family(head), set()).add(entry.split)
    assert all(len(side) == 1 for side in sides.values())
    assert {entry.split for entry in build(wordnet, dev_share=0).entries} == {"test"}


def test_limits_hold_and_what_was_left_out_is_counted(wordnet):
    probe = build(wordnet, max_entries=1)
    assert max(Counter((entry.relation, entry.band) for entry in probe.entries).values()) == 1
    whole = build(wordnet)
    for relation, number in whole.num_tried.items():
        assert number - whole.num_without_targets[relation] == sum(e.relation == relation for e in whole.entries)
    assert whole.num_without_targets["hypernym"] > 0  # "animal" has nothing above it that is deep enough
    rare_targets = build(wordnet, counts=COUNTS | {"dog": 99})
    assert find(rare_targets, "quokka", "cohyponym") == ["horse"]


def test_a_probe_is_read_as_written(wordnet, tmp_path):
    entries = build(wordnet, zipf_frequency=lambda word: 3.14).entries
    write_wnlampro(entries, tmp_path / "probe.txt")
    assert read_wnlampro(tmp_path / "probe.txt") == entries


def test_zipf_comes_from_wordfreq(wordnet):
    wordfreq = pytest.importorskip("wordfreq")
    entry = build(wordnet, zipf_frequency=None).entries[0]
    assert entry.keyword.zipf == round(wordfreq.zipf_frequency(entry.keyword.word, "en"), 2)


def test_counts_of_tagged_words_are_read(wordnet):
    assert count_tagged(wordnet) == {("dark", "n"): 1, ("dark", "a"): 9}


def test_nothing_in_common_is_an_error(wordnet):
    with pytest.raises(ValueError, match=r"no entry can be built from 0 possible targets\. Give counts in lower case"):
        build(wordnet, counts={"Dog": 500})
    with pytest.raises(ValueError, match="max_entries must be at least 1; got 0"):
        build(wordnet, max_entries=0)


def run_command(*arguments):
    parser = argparse.ArgumentParser()
    command.add_command(parser.add_subparsers())
    parsed = parser.parse_args(["wnlampro", *map(str, arguments)])
    parsed.run(parsed)


def test_command_builds_a_probe(bert_tokenizer, tmp_path, capsys):
    pytest.importorskip("wordfreq")
    from bertram_hf.corpus.build import build_corpus

    sentences = ["the dog and the horse near the old tree", "a warm day and a cold night", "one quokka in the garden"]
    (tmp_path / "text.txt").write_text("\n".join(f"{s} {i}" for i in range(120) for s in sentences[:2]) + "\na quokka")
    build_corpus(tmp_path / "text.txt", tmp_path / "corpus", lower_case=True, min_count=50, show_progress=False)
    bert_tokenizer.save_pretrained(tmp_path / "model")
    write_linked_wordnet(tmp_path / "wordnet")
    probe = tmp_path / "out" / "probe.txt"
    options = ["build", "--counts", tmp_path / "corpus", "--tokenizer", tmp_path / "model", "--output", probe]
    options += ["--wordnet", tmp_path / "wordnet"]
    capsys.readouterr()
    run_command(*options, "--json")
    summary = json.loads(capsys.readouterr().out)
    assert sum(summary["entries"].values()) == len(read_wnlampro(probe))
    found = {(entry.keyword.word, entry.relation): [t.word for t in entry.targets] for entry in read_wnlampro(probe)}
    assert found["quokka", "cohyponym"] == ["dog", "horse"]
    assert found["warm", "antonym"] == ["cold"]
    run_command(*options)
    assert f"Wrote {len(found)} entries to {probe}." in capsys.readouterr().out
