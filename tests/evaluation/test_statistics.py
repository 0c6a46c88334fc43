import math

import numpy as np
import pytest

from bertram_hf.evaluation.statistics import (
    accuracy_below,
    compare_pairs,
    compare_systems,
    format_comparison,
    gain_by_band,
    sign_test,
)
from bertram_hf.reproduction.rarified_tables import count_bands, count_limits, score_bands, score_limits


def test_sign_test_equals_the_binomial_formula():
    differences = np.array([1.0] * 9 + [-1.0, -2.0] + [0.0] * 35)
    tail = sum(math.comb(11, k) for k in range(3)) / 2**11
    assert sign_test(differences) == pytest.approx(2 * tail)
    assert sign_test(differences) == sign_test(-differences)
    assert sign_test(np.zeros(5)) == 1.0


def test_systems_are_compared_with_the_best():
    correct = {
        "plain": np.array([False] * 20 + [True] * 10),
        "close": np.array([True] * 19 + [False] + [True] * 10),
        "best": np.ones(30, bool),
    }
    compared = compare_systems([correct], [range(30)])
    assert compared["best"].is_best
    assert compared["best"].p_value == 1.0
    assert compared["close"].is_near_best
    assert not compared["close"].is_best
    assert not compared["plain"].is_near_best
    assert compared["plain"].accuracy == pytest.approx(1 / 3)
    assert compare_systems([{"plain": np.array([], bool)}], [[]]) == {}
    assert compare_systems([], []) == {}
    with pytest.raises(ValueError, match="same 3 instances"):
        compare_systems([{"plain": np.ones(3, bool), "other": np.ones(4, bool)}], [range(3)])


def test_equally_good_systems_are_both_best():
    compared = compare_systems([{"a": np.array([True, False]), "b": np.array([False, True])}], ["xy"])
    assert compared["a"].is_best
    assert compared["b"].is_best


def test_every_rare_word_must_lie_below_the_limit_or_within_the_band():
    counts = [[0], [5], [5, 50], [200]]
    correct = np.array([True, False, True, True])
    assert accuracy_below(correct, counts, [1, 6, 51, 1000]) == [
        (1, 1.0, 1),
        (6, 0.5, 2),
        (51, 2 / 3, 3),
        (1000, 0.75, 4),
    ]
    assert accuracy_below(correct, counts, [0]) == [(0, None, 0)]
    baseline = np.array([False, False, False, True])
    bands = gain_by_band(correct, baseline, counts, [0, 10, 100, math.inf])
    assert bands == [(0, 10, 0.5, 2), (10, 100, None, 0), (100, math.inf, 0.0, 1)]


def test_runs_are_averaged_and_an_instance_of_several_runs_counts_once():
    first = {"a": np.ones(20, bool), "b": np.zeros(20, bool)}
    second = {"a": np.array([True, True, False]), "b": np.array([False, True, True])}
    compared = compare_systems([first, second], [range(20), [0, 100, 101]])
    assert compared["a"].accuracy == pytest.approx((1 + 2 / 3) / 2)
    assert compared["a"].num_instances == 23
    # a wins 20 instances, one of them twice; b wins one
    assert compared["b"].p_value == sign_test(np.array([1] * 20 + [-1]))
    undone = compare_systems([first, {"a": ~first["a"], "b": ~first["b"]}], [range(20), range(20)])
    assert undone["b"].p_value == 1.0
    empty = {"a": np.array([], bool), "b": np.array([], bool)}
    assert compare_systems([first, empty], [range(20), []]) == compare_systems([first], [range(20)])
    with pytest.raises(ValueError, match="same 3 instances"):
        compare_systems([first, {"a": np.ones(3, bool)}], [range(20), range(3)])
    assert [format_comparison(compared.get(name)) for name in ("a", "b", "c")] == ["<u>**83.3**</u>", "33.3", ""]


def test_every_pair_of_systems_has_the_p_value_that_the_best_one_gives():
    draw = np.random.default_rng(0)
    runs = [{name: draw.random(30) < share for name, share in (("a", 0.3), ("b", 0.5), ("c", 0.9))} for _ in range(2)]
    instances = [range(30), range(15, 45)]
    p_values = compare_pairs(runs, instances)
    assert {name: list(others) for name, others in p_values.items()} == {
        "a": ["b", "c"],
        "b": ["a", "c"],
        "c": ["a", "b"],
    }
    compared = compare_systems(runs, instances)
    assert compared["c"].is_best
    for name in "ab":
        assert p_values["c"][name] == p_values[name]["c"] == compared[name].p_value
        alone = compare_systems([{each: run[each] for each in "ab"} for run in runs], instances)
        assert p_values["a"]["b"] == min(entry.p_value for entry in alone.values())
    assert compare_pairs([{"a": np.array([], bool)}], [[]]) == {}


@pytest.mark.parametrize(
    ("max_count", "bands", "last_limit"),
    [
        (1, [0, math.inf], 1),
        (10, [0, 1, 4, math.inf], 16),
        (16, [0, 1, 4, math.inf], 16),
        (100, [0, 1, 4, 16, 64, math.inf], 128),  # Figure 2 of the paper
        (300, [0, 1, 4, 16, 64, 256, math.inf], 512),
        (1000, [0, 125, 250, 500, math.inf], 1024),  # Figure 3
    ],
)
def test_bands_and_limits_follow_the_largest_count(max_count, bands, last_limit):
    assert count_bands(max_count) == bands
    limits = count_limits(max_count)
    assert limits == [2**power for power in range(len(limits))]
    assert limits[-1] == last_limit
    counts = [[number] for number in range(max_count)]
    correct = {"plain": np.zeros(max_count, bool), "new": np.ones(max_count, bool)}
    below, gains = score_limits(correct, counts, max_count), score_bands(correct, counts, max_count, baseline="plain")
    assert below.num_texts[-1] == sum(gains.num_texts) == max_count  # all texts, each in one band
    assert all(gains.num_texts)
    assert gains.scores == {"new": [1.0] * len(gains.ranges)}
    assert gains.ticks()[0] == f"{gains.ranges[0]}\n({gains.num_texts[0]})"
    assert gains.points("plain") == []
