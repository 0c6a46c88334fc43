from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tiny_corpus import make_settings

pytest.importorskip("datatrove")

from bertram_hf.corpus.sampling import SentenceSampler, add_to_sketch, estimate_distinct, smallest_keys
from bertram_hf.corpus.terms import TermFinder
from bertram_hf.processing_words import WordPattern, fold_case, normalize_text, run_pattern
from bertram_hf.words.scanning import sampling_pattern


def test_samples_are_uniform_over_different_sentences_and_independent():
    sentences = [f"the kumquat number s{i} is here" for i in range(20)]
    drawn, both = Counter(), 0
    for seed in range(200):
        settings = make_settings(max_contexts=5, seed=seed, num_parts=1)
        writer = MemoryWriter()
        sampler = SentenceSampler(["kumquat", "number"], settings, writer)
        sampler.add(sentences + sentences[:10] * 3)
        sampler.flush()
        samples = writer.texts_by_id()
        assert [len(set(texts)) for texts in samples.values()] == [5, 5]
        drawn.update(samples[0])
        both += len({*samples[0]} & {*samples[1]})
    expected = 200 * 5 / 20
    chi_square = sum((drawn[sentence] - expected) ** 2 / expected for sentence in sentences)
    assert chi_square < 43.8  # 99.9 % of 19 degrees of freedom
    assert 200 < both < 300  # 1.25 of 5 are common to two independent samples


@given(st.lists(st.sampled_from([*"ab1 ペ金桔ท", "\u0e35", "q\u0301", "नि", "\u0301"]), min_size=1, max_size=12))
def test_sentences_are_found_for_the_words_that_the_processor_finds(characters):
    sentence = normalize_text("".join(characters))
    words = ["a", "ab", "ペ", "ペa", "金", "金桔", "a金", "ท", "ทท", "ที", "q\u0301", "นि"]
    words = [normalize_text(word) for word in words]
    writer = MemoryWriter()
    sampler = SentenceSampler(words, make_settings(max_contexts=5, num_parts=1, min_sentence_words=0), writer)
    sampler.add([sentence])
    sampler.flush()
    found = {words[row] for row in writer.texts_by_id()}
    assert found == {word for word in words if len(WordPattern(word, ignore_case=True).split(sentence)) > 1}


@pytest.mark.parametrize("sentence", ["İ ΟΔΟΣ ΑΘΗΝΑΣ, İzmir", "οδος αθηνας i\u0307zmir", "ΟΔΟΣ.Α İzmir, Οδος Αθηνας"])
def test_case_is_folded_the_same_in_words_and_sentences(sentence):
    words = ["οδος", "οδος αθηνας", "i\u0307zmir"]  # as `str.lower` writes them
    writer = MemoryWriter()
    sampler = SentenceSampler(words, make_settings(max_contexts=5, num_parts=1, min_sentence_words=0), writer)
    sampler.add([sentence])
    sampler.flush()
    assert writer.texts_by_id() == {row: [sentence] for row in range(3)}


class MemoryWriter:
    """Takes what the sampler would write to a file."""

    def __init__(self):
        self.batches = []

    def write(self, batches):
        self.batches += batches

    def texts_by_id(self):
        samples = {}
        for ids, _, texts in self.batches:
            for row, text in zip(ids.to_pylist(), texts.to_pylist(), strict=True):
                samples.setdefault(row, []).append(text)
        return samples


def test_memory_of_the_sampler_is_bounded_by_the_samples(monkeypatch):
    monkeypatch.setattr("bertram_hf.corpus.sampling.BATCH_SIZE", 16)
    monkeypatch.setattr("bertram_hf.corpus.sampling.MAX_ROWS", 64)
    sentences = [f"the kumquat number s{i} is here" for i in range(2000)]
    samples, sizes = [], []
    for part in (sentences, sentences[::-1], sentences[:1]):
        writer = MemoryWriter()
        sampler = SentenceSampler(["kumquat", "number"], make_settings(max_contexts=5, num_parts=1), writer)
        for sentence in part:
            sampler.add([sentence])
        sampler.flush()
        samples.append(writer)
        sizes.append(len(sampler.kept[0]))
    assert sizes == [10, 10, 2]
    assert 10 < sum(len(batch[0]) for batch in samples[0].batches) < 400  # of 4,000 that were seen
    final = [smallest_texts(writer, 5) for writer in samples]
    assert final[0] == final[1]


def smallest_texts(writer, limit):
    rows = sorted((i, k, t) for ids, keys, texts in writer.batches for i, k, t in zip(ids, keys, texts, strict=True)
                  for i, k, t in [(i.as_py(), k.as_py(), t.as_py())])  # fmt: skip
    return {row: [text for i, _, text in rows if i == row][:limit] for row in {i for i, _, _ in rows}}


def test_sketch_of_parts_is_the_sketch_of_the_whole(monkeypatch):
    monkeypatch.setattr("bertram_hf.corpus.sampling.SKETCH_SIZE", 100)
    hashes = np.random.default_rng(0).integers(0, 2**63, 5000, dtype=np.uint64)
    whole = add_to_sketch(np.zeros(0, np.uint64), hashes)
    parts = np.zeros(0, np.uint64)
    for part in np.array_split(np.concatenate([hashes, hashes[:700]]), 7):
        parts = add_to_sketch(parts, part)
    assert whole.tolist() == parts.tolist() == np.sort(hashes)[:100].tolist()
    assert estimate_distinct(whole[:99]) == 99
    assert 0.7 < estimate_distinct(whole) / 10_000 < 1.4  # hashes of half the range count twice


WORDS = ["a", "n", "19", "a-19", "n't", "a n't", "café", "金", "σ", "i\u0307", "a a", "ſ", "is a", "a ."]
PIECES = ["a", "N", "is", "19", "-19", "n't", " ", " ", " ", ". ", "café", "金", "ς", "Σ", "İ", "ſ", "ı", "\u0301", "’"]


@settings(deadline=None)  # patterns are compiled in the first example
@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=20).map("".join), min_size=1), st.booleans())
def test_a_batch_is_what_its_sentences_are_one_by_one(texts, lower_case):
    sentences = [normalize_text(" ".join(text.split())) for text in texts]
    options = {"min_sentence_words": 2, "max_sentence_words": 6, "num_parts": 1}
    words = sorted({normalize_text(word) for word in WORDS})
    writer = MemoryWriter()
    sampler = SentenceSampler(words, make_settings(lower_case=lower_case, **options), writer)
    sampler.add(sentences)
    sampler.flush()
    expected, report = {}, Counter()
    for sentence in sentences:
        sample_one(sentence, sampler, expected, report)
    assert {row: {*texts} for row, texts in writer.texts_by_id().items()} == expected
    assert +sampler.report == report


def sample_one(sentence, sampler, expected, report):
    """Samples one sentence, token by token."""
    folded = fold_case(sentence) if sampler.settings.lower_case else sentence
    matches = list(sampling_pattern(folded).finditer(folded))
    size = sampler.settings.max_sentence_words
    report["num_sentences"] += 1
    if len(matches) < sampler.settings.min_sentence_words:
        report["num_short_sentences"] += 1
        return
    is_cut = len(matches) > size
    report["num_cut_sentences"] += is_cut
    first = {}  # index of the token where each word stands for the first time
    for index, match in enumerate(matches):
        if match.group() in sampler.ids:
            first.setdefault(sampler.ids[match.group()], index)
    for term, position, _ in sampler.terms.find(sentence, folded):
        first[sampler.term_ids[term]] = max(0, sum(match.start() <= position for match in matches) - 1)
    names = {row: term for term, row in sampler.term_ids.items()}
    for row, index in first.items():
        start = max(0, min(index - size // 2, len(matches) - size))
        begin, end = matches[start].start() if start else 0, len(sentence)
        if start + size < len(matches):
            end = matches[start + size - 1].end()
        text = sentence[begin:end] if is_cut else sentence
        if not is_cut or row not in names or sampler.terms.has(names[row], text):
            expected.setdefault(row, set()).add(text)


@given(
    st.lists(st.sampled_from(["big", "SHİP", "ship", "ſhıp", "s", "金", "\u0301", "C++", "-", " ", "’"]), max_size=8)
)
def test_terms_are_found_wherever_their_pattern_finds_them(pieces):
    sentence = normalize_text("".join(pieces))
    terms = ["big ship", "big-ship", "ship's", "c++ ship", "金s", "s 金", "++", "big c++", "s s"]
    found = TermFinder(terms, ignore_case=True).find(sentence, fold_case(sentence))
    segments = {term: WordPattern(term, ignore_case=True).split(sentence) for term in terms}
    begins = {term: term.split("-")[0].split("'")[0].split()[0] in fold_case(sentence) for term in terms}
    runs = run_pattern(fold_case(sentence)).findall(fold_case(sentence))
    expected = {
        (term, len(parts[0]), len(parts) - 1)
        for term, parts in segments.items()
        if len(parts) > 1 and begins[term] and {*run_pattern(term).findall(term)[:1]} <= {*runs}
    }
    assert {*found} == expected


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 1, 2, 2**63, 2**63 + 1, 2**64 - 1]))), st.integers(1, 4)
)
def test_smallest_keys_are_exact_where_only_their_last_bits_differ(rows, limit):
    ids = np.array([row for row, _ in rows], np.int32)
    keys = np.array([key for _, key in rows], np.uint64)
    expected = []
    for row in sorted(set(ids.tolist())):
        for key in sorted({key for other, key in rows if other == row})[:limit]:
            expected.append(rows.index((row, key)))
    assert smallest_keys(ids, keys, limit).tolist() == expected
