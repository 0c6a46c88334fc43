from hypothesis import example, given, settings
from hypothesis import strategies as st

from bertram_hf.corpus.stretches import count_stretches, cut_stretches, number_stretches
from bertram_hf.processing_words import normalize_text
from bertram_hf.words.scanning import counting_pattern, sampling_pattern
from bertram_hf.words.splitting import split_words

# All that patterns look at, and what tempts them: marks, hyphens, apostrophes, scripts without spaces, odd cases.
CHARACTERS = "aN't-19_ .,=\té\u0301\u0338\u0939\u093f’‐İςΣſ金ペท\u0e35😀\u200d\u00a0\ufe0f"
TEXTS = st.text(st.sampled_from(CHARACTERS) | st.characters(exclude_categories=["Cs"], exclude_characters="\n"))


def stretches_of(text):
    return cut_stretches(text.encode()).to_pylist()


@settings(deadline=None)  # patterns are compiled in the first example
@given(TEXTS)
@example("H\u0331a't-n't-19")
@example(")\u0301lemon")
def test_tokens_and_words_of_a_text_are_those_of_its_stretches(text):
    text = normalize_text(text)
    for folded in (text, text.lower()):
        stretches = stretches_of(folded)
        assert "".join(stretches) == folded
        for pattern in (counting_pattern, sampling_pattern):
            tokens = [token for stretch in stretches for token in pattern(stretch).findall(stretch)]
            assert tokens == pattern(folded).findall(folded)
        assert [word for stretch in stretches for word in split_words(stretch)] == list(split_words(folded))


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1))
def test_numbered_stretches_are_those_of_each_line(lines):
    different, numbers, bounds = number_stretches("\n".join(lines))
    assert len(set(different)) == len(different)
    assert "".join(different[number] for number in numbers) == "\n".join(lines)
    assert len(bounds) == len(lines) + 1
    for line, start, end in zip(lines, bounds, bounds[1:], strict=False):
        found = [
            token
            for number in numbers[start:end]
            for token in sampling_pattern(different[number]).findall(different[number])
        ]
        assert found == sampling_pattern(line).findall(line)


@given(st.lists(TEXTS))
def test_counted_stretches_are_all_stretches(texts):
    stretches = stretches_of("\n".join(texts))
    assert count_stretches(texts) == {stretch: stretches.count(stretch) for stretch in stretches}
