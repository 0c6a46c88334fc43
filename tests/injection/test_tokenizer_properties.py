"""The injected tokenizer beside the plain one, over families, pairs, truncation, windows and padding."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.tiny_tokenizers import make_tokenizers

from bertram_hf.injection.tokenizer import splice_tokenizer
from bertram_hf.injection.word_index import WordIndex

FIRST_ID = 1000
ONE_TOKEN = ["old", "king"]
MANY_TOKENS = ["kumquat", "red herring", "old"]
PLAIN = make_tokenizers()
KEYS = ("input_ids", "sequence_ids", "word_ids", "offset_mapping")
COMMON = settings(deadline=None, derandomize=True, max_examples=1000)


def splice(tokenizer, words, mode):
    index = WordIndex(ignore_case=False)
    for row, word in enumerate(words):
        index.add(word, row)
    return splice_tokenizer(tokenizer, index, list(words), FIRST_ID, mode)


REPLACED = {family: splice(tokenizer, ONE_TOKEN, "replace") for family, tokenizer in PLAIN.items()}
SPLICED = {
    (family, mode): splice(tokenizer, MANY_TOKENS, mode)
    for family, tokenizer in PLAIN.items()
    for mode in ("replace", "slash")
}
ABSENT = {family: splice(tokenizer, ["quokka"], "slash") for family, tokenizer in PLAIN.items()}


@st.composite
def calls(draw, vocabulary, *, cut=False):
    """Draws a family and the arguments of a call: texts, pairs or None, and options."""
    family = draw(st.sampled_from(sorted(PLAIN)))
    is_split = family != "roberta" and draw(st.booleans())
    words = st.lists(st.sampled_from(vocabulary), min_size=int(is_split), max_size=8)
    text = words if is_split else words.map(" ".join)
    first = draw(st.lists(text, min_size=1, max_size=3))
    second = draw(st.none() | st.lists(text, min_size=len(first), max_size=len(first)))
    strategies = [True, "only_first", "longest_first", *([] if cut else [False]), *(["only_second"] if second else [])]
    options = {
        "is_split_into_words": is_split,
        "add_special_tokens": draw(st.booleans()),
        "truncation": draw(st.sampled_from(strategies)),
        "padding": draw(st.sampled_from([False, True, "max_length"])),
        "return_overflowing_tokens": draw(st.booleans()),
        "return_token_type_ids": draw(st.booleans()),
        "return_special_tokens_mask": draw(st.booleans()),
        "return_attention_mask": draw(st.booleans()),
        "return_offsets_mapping": True,
        "truncation_side": draw(st.sampled_from(["left", "right"])),
        "padding_side": draw(st.sampled_from(["left", "right"])),
        "max_length": draw(st.integers(1, 20)),
    }
    if options["truncation"]:
        options["stride"] = draw(st.integers(0, 3))
    if options["padding"]:
        options["pad_to_multiple_of"] = draw(st.sampled_from([None, 4]))
    if not options["truncation"] and options["padding"] != "max_length":
        del options["max_length"]
    return family, first, second, options


def encode(tokenizer, first, second, options):
    """Returns all that an encoding tells, or None where the tokenizer refuses."""
    options = dict(options)
    sides = options.pop("truncation_side"), options.pop("padding_side")
    tokenizer.truncation_side, tokenizer.padding_side = sides
    try:
        encoding = tokenizer(first, second, **options)
    except Exception:  # a strategy that cannot reach the length
        return None
    except BaseException as error:  # Rust's panic over a stride that is not below the length has no other class
        if type(error).__name__ != "PanicException":
            raise
        return None
    rows = range(len(encoding["input_ids"]))
    return {
        **encoding,
        "word_ids": [encoding.word_ids(row) for row in rows],
        "sequence_ids": [encoding.sequence_ids(row) for row in rows],
    }


def sample_texts(encoded, row, first, second):
    """Returns the texts of a window."""
    sample = encoded["overflow_to_sample_mapping"][row] if "overflow_to_sample_mapping" in encoded else row
    return first[sample], None if second is None else second[sample]


def trim_offsets(encoded, first, second):
    """Removes spaces from the spans: where a window begins within a text, RoBERTa with `add_prefix_space` keeps one."""
    for row, offsets in enumerate(encoded["offset_mapping"]):
        texts = sample_texts(encoded, row, first, second)
        for i, (start, end) in enumerate(offsets):
            sequence = encoded["sequence_ids"][row][i]
            if sequence is not None and isinstance(texts[sequence], str):
                span = texts[sequence][start:end]
                offsets[i] = (start + len(span) - len(span.lstrip()), end) if span.strip() else None


def unmap(family, encoded):
    """Puts the plain ids of `ONE_TOKEN` in place of injected ones, the same for the first word of a text."""
    tokenizer = PLAIN[family]
    plain_ids = {}
    for row, word in enumerate(ONE_TOKEN):
        (plain_id,) = tokenizer.encode(f" {word}", add_special_tokens=False)
        (first_id,) = tokenizer.encode(word, add_special_tokens=False)
        plain_ids |= {FIRST_ID + row: plain_id, first_id: plain_id}
    encoded["input_ids"] = [[plain_ids.get(i, i) for i in ids] for ids in encoded["input_ids"]]


@COMMON
@given(calls(["old", "king", "the", "kumquat", "a", "garden,", "(x)"]))
def test_words_of_one_token_are_encoded_as_the_plain_tokenizer_encodes_them(call):
    family, first, second, options = call
    plain = encode(PLAIN[family], first, second, options)
    injected = encode(REPLACED[family], first, second, options)
    assume(plain is not None)  # where the stride is too large, injection may do what the plain tokenizer cannot
    assert injected is not None
    unmap(family, plain)
    unmap(family, injected)
    if family == "roberta-split":
        trim_offsets(plain, first, second)
        trim_offsets(injected, first, second)
    assert injected == plain


@COMMON
@given(calls(["old", "king", "the", "kumquat", "a", "garden,", "(x)"]))
def test_texts_without_an_injected_word_are_encoded_as_before(call):
    family, first, second, options = call
    assert encode(ABSENT[family], first, second, options) == encode(PLAIN[family], first, second, options)


@COMMON
@given(
    calls(["old", "kumquat", "red", "herring", "herring,", "the", "a", "garden,"], cut=True),
    st.sampled_from(["replace", "slash"]),
)
def test_windows_hold_whole_words_and_cover_the_texts(call, mode):
    family, first, second, options = call
    tokenizer = SPLICED[family, mode]
    encoded = encode(tokenizer, first, second, options | {"return_overflowing_tokens": True, "padding": False})
    assume(encoded is not None)
    num_special = tokenizer.num_special_tokens_to_add(pair=second is not None) if options["add_special_tokens"] else 0
    has_room = options["max_length"] - num_special >= (1 if second is None else 2)
    covered = {}
    for row, ids in enumerate(encoded["input_ids"]):
        assert len(ids) <= options["max_length"] or not has_room
        sample = encoded["overflow_to_sample_mapping"][row]
        for sequence, texts in enumerate([first] if second is None else [first, second]):
            characters = covered.setdefault((sample, sequence), set())
            characters |= check_window(tokenizer, encoded, row, sequence, texts[sample])
    for (sample, sequence), characters in covered.items():
        text = joined((first, second)[sequence][sample])
        assert characters == {i for i, character in enumerate(text) if not character.isspace()}


def check_window(tokenizer, encoded, row, sequence, text):
    """Returns the characters of a text that stand in a window, after checks of the words there."""
    window = zip(*(encoded[key][row] for key in KEYS), strict=True)
    tokens = [(i, word, *offsets) for i, of_sequence, word, offsets in window if of_sequence == sequence]
    starts = [0] * len(tokens)  # of the words of a pre-split text, in the text that they make together
    if not isinstance(text, str):
        starts = [len(joined(text[:word])) + (word > 0) for _, word, _, _ in tokens]
    pieces, ends = set(), []
    for (token_id, word, start, end), origin in zip(tokens, starts, strict=True):
        if token_id < FIRST_ID:
            pieces |= set(range(origin + start, origin + end))
            continue
        ends.append((token_id - FIRST_ID, origin + end))
        source = text if isinstance(text, str) else joined(text[word:])
        assert MANY_TOKENS[token_id - FIRST_ID].endswith(source[start:end])
        assert isinstance(text, list) or source[start:end] == MANY_TOKENS[token_id - FIRST_ID]
    characters = set(pieces)
    for match in tokenizer._tokenizer.index.find(joined(text)):
        own = {i for i in range(match.start, match.end) if not joined(text)[i].isspace()}
        assert ends.count((match.row, match.end)) in ((1,) if own & pieces else (0, 1))
        assert own & pieces in (set(), own)
        if (match.row, match.end) in ends:
            characters |= own
    return {i for i in characters if not joined(text)[i].isspace()}


def joined(text):
    return text if isinstance(text, str) else " ".join(text)
