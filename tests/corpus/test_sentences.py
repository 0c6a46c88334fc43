import io
import time
from textwrap import wrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertram_hf.corpus.sentences import BLOCK_SIZE, detect_unit, find_break, read_blocks, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He left. She stayed.", ["He left.", "She stayed."]),
        ("Mr. Hyde met Dr. J. P. Lanyon. They spoke.", ["Mr. Hyde met Dr. J. P. Lanyon.", "They spoke."]),
        ("Fruit, e.g. Kumquats, i.e. Citrus.", ["Fruit, e.g. Kumquats, i.e. Citrus."]),
        ("The U.S. Army came. In the U.S. He knew.", ["The U.S. Army came.", "In the U.S.", "He knew."]),
        ('"Why?" asked he. "Go!" She went.', ['"Why?" asked he.', '"Go!"', "She went."]),
        ("He paused... then spoke. Well... So be it.", ["He paused... then spoke.", "Well...", "So be it."]),
        ("(It rained.) We left.", ["(It rained.)", "We left."]),
        ("See No. 5 and p. 7. It costs 3.14 now.", ["See No. 5 and p. 7.", "It costs 3.14 now."]),
        ("he left . she stayed .", ["he left .", "she stayed ."]),
        ("he left. she stayed.", ["he left.", "she stayed."]),
        (
            "j. p. lanyon of st. louis left in vol. 2 . he came.",
            ["j. p. lanyon of st. louis left in vol. 2 .", "he came."],
        ),
        ("one small line. another\n\nA Capital.", ["one small line.", "another", "A Capital."]),
        ("彼は去った。彼女は残った！なぜ？", ["彼は去った。", "彼女は残った！", "なぜ？"]),
        ("one\ntwo\n\n three \n", ["one two", "three"]),
        (" \n\n", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text, sentences):
    assert list(split_sentences(text)) == sentences


def test_in_lines_a_line_break_ends_a_sentence():
    assert list(split_sentences("one\ntwo. Three\n", "line")) == ["one", "two.", "Three"]


@given(st.text("aB .!?\"'\n。", max_size=60), st.sampled_from(["line", "paragraph"]))
def test_no_text_is_lost(text, unit):
    assert "".join(split_sentences(text, unit)).replace(" ", "") == "".join(text.split())


@pytest.mark.parametrize("text", ["." * 200_000, ".a" * 100_000, '."' * 100_000, "\n " * 100_000, "A. " * 60_000])
def test_hostile_text_takes_linear_time(text):
    start = time.process_time()
    assert sum(1 for _ in split_sentences(text)) <= len(text)
    assert time.process_time() - start < 2.5


def test_wrapped_text_is_told_from_a_sentence_on_each_line():
    assert detect_unit("It was dark\nand stormy.\n\nThe end.\n") == "paragraph"
    assert detect_unit("It was dark.\nIt was stormy.\n\nThe end.\n") == "line"
    assert detect_unit("A long paragraph.\n\nAnother one.\n") == "line"
    assert detect_unit("no blank\nline\n") == "line"
    wide = "one sentence without a stop on each line " * 4
    assert detect_unit(f"{wide}\n{wide}\n\n{wide}\n") == "line"
    novel = (
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness."
    )
    assert detect_unit("\n".join(wrap(novel * 20, 70))) == "paragraph"
    assert detect_unit("\n".join(wrap(novel.lower() * 20, 70))) == "paragraph"
    sentences = [" ".join(["kumquat"] * (3 + 7 * i % 31)) for i in range(50)]
    assert detect_unit("\n".join(sentences)) == "line"
    assert detect_unit("\n\n".join(map("\n".join, (sentences[:25], sentences[25:])))) == "line"


def test_wrapped_text_without_blank_lines_is_cut_between_sentences():
    text = b"It was a dark\nand stormy night.\n" * (3 * BLOCK_SIZE // 31)
    blocks = list(read_blocks(io.BytesIO(text), "paragraph"))
    assert b"".join(block for block, _ in blocks) == text
    assert not any(is_cut for _, is_cut in blocks)
    assert len(blocks) > 2
    assert all(block.endswith(b"night.\n") for block, _ in blocks)


@given(st.lists(st.text("ab ", max_size=5), max_size=12), st.integers(0, 60), st.sampled_from(["line", "paragraph"]))
def test_parts_of_a_file_hold_each_sentence_once(lines, position, unit):
    content = "\n".join(lines).encode()
    middle = find_break(io.BytesIO(content), min(position, len(content)), unit)
    parts = [content[:middle].decode(), content[middle:].decode()]
    whole = list(split_sentences(content.decode(), unit))
    assert [sentence for part in parts for sentence in split_sentences(part, unit)] == whole


def test_long_lines_are_cut_at_white_space_and_told():
    line = b"kumquat " * (3 * BLOCK_SIZE // 8) + b"\nshort\n"
    blocks = list(read_blocks(io.BytesIO(line), "line"))
    assert b"".join(block for block, _ in blocks) == line
    assert sum(is_cut for _, is_cut in blocks) == 1
    assert all(block[-1:] in b" \n" for block, _ in blocks)
    assert max(len(block) for block, _ in blocks) <= 2 * BLOCK_SIZE
    for block, _ in read_blocks(io.BytesIO("é".encode() * 2 * BLOCK_SIZE), "line"):
        block.decode()
