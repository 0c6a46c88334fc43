import pytest
from support.tiny_wordnet import write_tiny_wordnet

from bertram_hf.rarification.sources import find_substitutes
from bertram_hf.rarification.substitutions import Substitute, Substitutions
from bertram_hf.rarification.wordnet import open_wordnet

ENTRIES = [
    ("laundry", "washables", "wordnet"),
    ("laundry", "laundery", "misspelling"),
    ("answers", "ansers", "misspelling"),
    ("tree", "Ent of C++", "given"),
]


def test_words_are_looked_up_in_lower_case():
    substitutions = Substitutions(ENTRIES)
    assert "LAUNDRY" in substitutions
    assert substitutions["Laundry"] == (Substitute("washables", "wordnet"), Substitute("laundery", "misspelling"))
    assert substitutions.get("kumquat") is None
    assert 3 not in substitutions
    assert list(substitutions) == ["laundry", "answers", "tree"]
    assert repr(substitutions) == "Substitutions(3 words: 1 given, 2 misspelling, 1 wordnet)"
    assert repr(Substitutions()) == "Substitutions(0 words)"


def test_read_gives_what_was_written(tmp_path):
    Substitutions(ENTRIES).write(tmp_path / "s.tsv")
    assert (tmp_path / "s.tsv").read_text(encoding="utf-8").splitlines()[0] == "word\tsubstitute\tkind"
    assert list(Substitutions.read(tmp_path / "s.tsv").entries()) == ENTRIES


@pytest.mark.parametrize(
    "text", ["tree\tdendron\n", "\ufeffword\tsubstitute\r\ntree\tdendron\r\n\r\n", "tree\tdendron"]
)
def test_two_columns_are_enough(tmp_path, text):
    (tmp_path / "s.tsv").write_bytes(text.encode())
    assert list(Substitutions.read(tmp_path / "s.tsv").entries()) == [("tree", "dendron", "given")]
    found = Substitutions.read(tmp_path / "s.tsv", kind="misspelling")
    assert list(found.entries()) == [("tree", "dendron", "misspelling")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tree", r"line 2: expected word, substitute and perhaps kind.*got 1 fields in 'tree'"),
        ("tree\ta\tgiven\tx", "line 2: .*got 4 fields"),
        ("tree\t\tgiven", "line 2: A word must have at least one visible character"),
        ("tree\ttree", "line 2: expected a substitute other than the word; got 'tree' twice"),
        ("tree\tTREE", "line 2: expected a substitute other than the word"),
        ("tree house\tx", "line 2: expected a word of letters only; got 'tree house'"),
        ("covid-19\tx", "line 2: expected a word of letters only"),
        ("tree\tx \tgiven", "line 2: expected a substitute in one line, without tabs or outer spaces; got 'x '"),
        ("tree\tx\x0by", "line 2: expected a substitute in one line"),
        ("tree\tx\tsynonym", "line 2: expected a kind among wordnet, misspelling, given; got 'synonym'"),
    ],
)
def test_wrong_lines_are_named(tmp_path, line, message):
    (tmp_path / "s.tsv").write_bytes(f"word\tsubstitute\tkind\n{line}\n".encode())
    with pytest.raises(ValueError, match=message):
        Substitutions.read(tmp_path / "s.tsv")


def test_wrong_encoding_and_entries_are_named(tmp_path):
    (tmp_path / "s.tsv").write_bytes(b"caf\xe9\tx\n")
    with pytest.raises(ValueError, match=r"UTF-8 text in .*s\.tsv; got .*Convert it"):
        Substitutions.read(tmp_path / "s.tsv")
    with pytest.raises(ValueError, match="Entry 2: A word must be a string; got int"):
        Substitutions([ENTRIES[0], (3, "x", "given")])


def test_union_keeps_the_first_kind():
    both = Substitutions(ENTRIES[:1]) | Substitutions([("Laundry", "washables", "given"), ("tree", "x", "given")])
    assert list(both.entries()) == [ENTRIES[0], ("tree", "x", "given")]
    with pytest.raises(TypeError):
        both | {"tree": ["y"]}


def test_rare_is_below_the_threshold():
    substitutions = Substitutions([("a", "b", "given"), ("a", "C", "given"), ("d", "e", "given")])
    assert list(substitutions.keep_rare({"b": 99, "c": 100, "e": 100})) == ["a"]
    assert len(list(substitutions.keep_rare({"b": 99, "c": 100}, max_count=101).entries())) == 3


def test_substitutes_that_the_model_has_a_token_for_are_left_out(bert_tokenizer, tmp_path):
    known = next(word for word in ("the", "river", "and") if word in bert_tokenizer.get_vocab())
    (tmp_path / "given.tsv").write_text(f"lake\t{known}\nlake\tlakequux\nlake\tlaake\nhill\thilll\n")
    found = find_substitutes(
        ["lake"], {"laake": 5}, bert_tokenizer, synonyms=False, misspellings=[str(tmp_path / "given.tsv")], max_count=5
    )
    assert list(found.entries()) == [("lake", "lakequux", "misspelling")]


@pytest.fixture
def tiny_wordnet(tmp_path, monkeypatch):
    """A tiny WordNet in the place of the installed one."""
    pytest.importorskip("nltk", reason="WordNet is read with NLTK")
    pytest.importorskip("lemminflect", reason="synonyms are inflected with LemmInflect")
    (tmp_path / "wordnet").mkdir()
    folder = write_tiny_wordnet(tmp_path / "wordnet")
    monkeypatch.setattr("bertram_hf.rarification.synonyms.open_wordnet", lambda: open_wordnet(folder))


def test_rare_synonyms_come_before_the_given_ones(bert_tokenizer, tmp_path, tiny_wordnet):
    given = "improve\tameliorate\tgiven\nimprove\tbettrify\tgiven\nimprove\timprov\tmisspelling\nhill\thillock\n"
    (tmp_path / "given.tsv").write_text(given)
    found = find_substitutes(
        ["improve", "kumquat", "improve"],
        {"better": 5000, "bettrify": 4, "improv": 5},
        bert_tokenizer,
        given=[str(tmp_path / "given.tsv")],
        max_count=5,
        show_progress=False,
    )
    assert list(found.entries()) == [
        ("improve", "ameliorate", "wordnet"),  # a synonym first, so it is one
        ("improve", "meliorate", "wordnet"),
        ("improve", "bettrify", "given"),
    ]


def test_given_files_are_read_one_after_the_other(bert_tokenizer, tmp_path):
    (tmp_path / "a.tsv").write_text("lake\tlakequux\twordnet\n")
    (tmp_path / "b.tsv").write_text("lake\tlakquix\nlake\tlakequux\n")
    files = [str(tmp_path / "a.tsv"), str(tmp_path / "b.tsv")]
    found = find_substitutes(["lake"], {}, bert_tokenizer, synonyms=False, given=files)
    assert list(found.entries()) == [("lake", "lakequux", "wordnet"), ("lake", "lakquix", "given")]


def test_known_substitutes_are_kept_if_asked_for(bert_tokenizer, tmp_path, caplog):
    known = next(word for word in ("the", "river", "and") if word in bert_tokenizer.get_vocab())
    (tmp_path / "given.tsv").write_text(f"lake\t{known}\nlake\tlakequux\n")
    caplog.set_level("INFO", "bertram_hf.rarification.sources")
    options = {"synonyms": False, "given": [str(tmp_path / "given.tsv")]}
    found = find_substitutes(["lake"], {}, bert_tokenizer, only_unknown=False, **options)
    assert [substitute.text for substitute in found["lake"]] == [known, "lakequux"]
    assert not caplog.text
    found = find_substitutes(["lake"], {}, bert_tokenizer, **options)
    assert [substitute.text for substitute in found["lake"]] == ["lakequux"]
    assert "1 of 2 rare substitutes are left out" in caplog.text


def test_special_tokens_are_no_words(bert_tokenizer, tmp_path):
    (tmp_path / "given.tsv").write_text("lake\t[MASK]\n")
    with pytest.raises(ValueError, match=r"'\[MASK\]' is a special token of the model"):
        find_substitutes(["lake"], {}, bert_tokenizer, synonyms=False, given=[str(tmp_path / "given.tsv")])


def test_two_ways_to_write_a_letter_are_one():
    found = Substitutions([("coffee", "caf\u00e9", "given"), ("coffee", "cafe\u0301", "given")])
    assert [substitute.text for substitute in found["coffee"]] == ["caf\u00e9"]
