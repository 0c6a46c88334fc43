from collections import Counter
from random import Random

import numpy as np
import pytest

from bertram_hf.training.batches import WordBatches, count_repetitions, cut_batch, draw_sizes

# What the released generate_chunks gave, after random.seed(seed).
RELEASED = [
    (0, 48, 4, 32, [31, 10, 7]),
    (1, 48, 4, 32, [8, 22, 5, 8, 5]),
    (2, 48, 4, 32, [31, 17]),
    (3, 48, 4, 32, [11, 22, 6, 9]),
    (4, 48, 4, 32, [11, 13, 7, 10, 7]),
    (5, 48, 4, 32, [23, 12, 9, 4]),
    (0, 40, 20, 20, [20, 20]),
    (1, 48, 1, 1, [1] * 48),
    (0, 3, 4, 32, [3]),
]
BY_CONTEXTS = {"contexts_per_batch": 48}
BY_WORDS = {"words_per_batch": 7, "min_contexts": 1, "max_contexts": 9}


def make_batches(num_contexts, repetitions, **settings):
    """Returns batches whose items are (words, context rows, numbers of contexts)."""
    offsets = np.cumsum([0, *num_contexts])
    return WordBatches(
        lambda words, rows, counts: (words.tolist(), rows.tolist(), counts.tolist()),
        offsets,
        np.asarray(repetitions),
        **settings,
    )


def appearances(batches):
    """Returns all (word, its context rows) of an epoch."""
    result = []
    for index in range(len(batches)):
        words, rows, counts = batches[index]
        assert len(rows) == sum(counts)
        for word, count in zip(words, counts, strict=True):
            result.append((word, rows[:count]))
            rows = rows[count:]
    return result


@pytest.fixture(params=[BY_CONTEXTS, BY_WORDS], ids=["by contexts", "by words"])
def batches(request):
    draw = Random(0)
    num_contexts = [draw.randint(1, 80) for _ in range(60)]
    result = make_batches(num_contexts, [draw.randint(1, 5) for _ in range(60)], seed=3, **request.param)
    result.settings = request.param
    return result


@pytest.mark.parametrize(("seed", "total", "smallest", "largest", "sizes"), RELEASED)
def test_batches_are_cut_as_by_the_released_code(seed, total, smallest, largest, sizes):
    assert cut_batch(total, smallest, largest, Random(seed)) == sizes


def test_cut_sizes_stay_in_bounds_and_fill_the_batch():
    random = Random(0)
    for _ in range(500):
        sizes = cut_batch(48, 4, 32, random)
        assert sum(sizes) == 48
        assert min(sizes) >= 4
        assert max(sizes) <= 32


@pytest.mark.parametrize(("smallest", "largest"), [(1, 32), (4, 32), (5, 5), (1, 1), (0, 8)])
def test_drawn_sizes_stay_in_bounds_and_reach_them(smallest, largest):
    sizes = draw_sizes(20_000, smallest, largest, np.random.default_rng(0))
    assert sizes.min() == max(1, smallest)
    assert sizes.max() == largest


def test_logarithms_of_drawn_sizes_are_uniform():
    sizes = draw_sizes(100_000, 1, 31, np.random.default_rng(0))
    shares = [np.mean((sizes >= low) & (sizes < 2 * low)) for low in (1, 2, 4, 8, 16)]
    assert shares == pytest.approx([0.2] * 5, abs=0.01)
    assert not draw_sizes(5, 0, 0, np.random.default_rng(0)).any()


def test_word_appears_once_for_every_hundred_occurrences():
    occurrences = np.array([0, 1, 99, 100, 199, 200, 499, 500, 10_000])
    assert count_repetitions(occurrences, 5).tolist() == [1, 1, 1, 1, 1, 2, 4, 5, 5]
    assert count_repetitions(occurrences, 1).tolist() == [1] * 9


def test_batch_is_a_function_of_seed_epoch_and_index(batches):
    def copy(seed=3):
        return make_batches(np.diff(batches.offsets), batches.repetitions, seed=seed, **batches.settings)

    batches.set_epoch(2)
    expected = [batches[index] for index in range(len(batches))]
    other = copy()
    other.set_epoch(7)
    other[1]
    other.set_epoch(2)
    assert [other[index] for index in reversed(range(len(other)))] == expected[::-1]
    other.set_epoch(3)
    assert other[0] != expected[0]
    other = copy(seed=4)
    other.set_epoch(2)
    assert other[0] != expected[0]


def test_every_word_appears_in_each_epoch_as_often_as_it_should(batches):
    for epoch in range(3):
        batches.set_epoch(epoch)
        counts = Counter(word for word, _ in appearances(batches))
        assert [counts[word] for word in range(60)] == batches.repetitions.tolist()


def test_contexts_are_the_words_own_and_different(batches):
    for word, rows in appearances(batches):
        assert batches.offsets[word] <= min(rows)
        assert max(rows) < batches.offsets[word + 1]
        assert len(set(rows)) == len(rows)


def test_repetitions_of_a_word_use_other_contexts_while_it_has_them(batches):
    used = {}
    for word, rows in appearances(batches):
        used.setdefault(word, []).extend(rows)
    num_whole = 0
    for word, rows in used.items():
        available = batches.offsets[word + 1] - batches.offsets[word]
        if len(rows) <= available:
            assert len(set(rows)) == len(rows)
            num_whole += batches.repetitions[word] > 1
        counts = Counter(rows)
        assert max(counts.values()) <= batches.repetitions[word]
    assert num_whole > 5


def test_numbers_of_contexts_are_those_drawn_or_all_there_are(batches):
    available = np.diff(batches.offsets)
    drawn = [len(rows) for _, rows in appearances(batches)]
    assert drawn == [min(size, available[word]) for size, word in zip(batches.sizes, batches.order, strict=True)]


def test_epochs_show_a_word_with_other_contexts():
    batches = make_batches([64], [1], words_per_batch=1, min_contexts=8, max_contexts=8)
    seen = set()
    for epoch in range(40):
        batches.set_epoch(epoch)
        seen |= set(batches[0][1])
    assert len(seen) == 64


def test_words_without_contexts_are_batched_too():
    batches = make_batches([0] * 10, [1] * 10, words_per_batch=4, min_contexts=0, max_contexts=0)
    assert [len(batches[index][0]) for index in range(len(batches))] == [4, 4, 2]
    assert not any(batches[index][1] for index in range(len(batches)))


@pytest.mark.parametrize("sizes", [{}, {"words_per_batch": 4, "contexts_per_batch": 48}])
def test_size_of_batches_is_given_in_one_way(sizes):
    with pytest.raises(ValueError, match="either words_per_batch or contexts_per_batch"):
        make_batches([4], [1], **sizes)
