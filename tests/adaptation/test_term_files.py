import csv
import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertram_hf.adaptation.term_files import (
    MAX_DEFINITION_LENGTH,
    RejectedRow,
    describe_rejected,
    read_aliases,
    read_glossary,
)

ENDINGS = ("csv", "tsv", "jsonl", "parquet")
# TSV has no way to write a tab or a line break in a value.
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n"), max_size=20) | st.text(
    'ab ",;', max_size=130
)
REPEATED = st.sampled_from(["MI", "kumquat", " kumquat", "cafe\u0301", "café", "a small, sour fruit", "\u2014", ""])
ROWS = st.lists(st.tuples(VALUES | REPEATED, VALUES | REPEATED), min_size=1, max_size=12)
MANY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write_csv(path, rows, names, **options):
    with open(path, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, **options).writerows([*([names] if names else []), *rows])


def write_tsv(path, rows, names):
    lines = ["\t".join(row) + "\n" for row in [*([names] if names else []), *rows]]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def write_jsonl(path, rows, names):
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))


def write_parquet(path, rows, names):
    pq.write_table(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), path)


WRITERS = {"csv": write_csv, "tsv": write_tsv, "jsonl": write_jsonl, "parquet": write_parquet}


def outcome(read, path):
    """Returns what a reader finds and why it rejects the rest; only the message if nothing can be used."""
    try:
        found = read(path)
    except ValueError as error:
        return str(error).split(" could not be used: ")[0].rpartition("; ")[2].split(" of ")[0]
    terms = found.definitions if read is read_glossary else found.long_forms
    return list(terms.items()), [row.reason for row in found.rejected], found.num_rows_used


@MANY
@given(ROWS)
@pytest.mark.parametrize(
    ("read", "names"), [(read_glossary, ("Term", "Definition")), (read_aliases, ("ACRONYM", "Long_Form"))]
)
def test_all_formats_of_the_same_rows_give_the_same_result(tmp_path, read, names, rows):
    outcomes = []
    for ending in ENDINGS:
        path = tmp_path / f"rows.{ending}"
        WRITERS[ending](path, rows, names)
        outcomes.append(outcome(read, path))
    assert outcomes == outcomes[:1] * 4


@MANY
@given(ROWS, st.sampled_from(ENDINGS), st.sampled_from([read_glossary, read_aliases]))
def test_rows_used_and_rows_rejected_are_the_rows_of_the_file(tmp_path, rows, ending, read):
    path = tmp_path / f"rows.{ending}"
    WRITERS[ending](path, [*rows, ("quokka", "a small animal")], ("short", "long"))
    found = read(path)
    assert found.num_rows_used + len(found.rejected) == len(rows) + 1
    numbers = [row.number for row in found.rejected]
    assert numbers == sorted(set(numbers))


@MANY
@given(st.lists(st.text('ab,;"\t \n', max_size=30), max_size=10), st.sampled_from(["csv", "tsv", "jsonl"]))
def test_no_text_breaks_the_reading_of_the_rows_before_it(tmp_path, lines, ending):
    path = tmp_path / f"rows.{ending}"
    WRITERS[ending](path, [("kumquat", "a citrus fruit")], ("term", "definition"))
    with open(path, "a", encoding="utf-8") as stream:
        stream.write("\n".join(lines))
    assert read_glossary(path).definitions["kumquat"][0] == "a citrus fruit"


@MANY
@given(ROWS)
def test_semicolons_tabs_and_commas_give_the_same_result(tmp_path, rows):
    outcomes = []
    for delimiter in ",;\t":
        write_csv(tmp_path / "rows.csv", rows, ("term", "definition"), delimiter=delimiter)
        outcomes.append(outcome(read_glossary, tmp_path / "rows.csv"))
    assert outcomes == outcomes[:1] * 3


def test_quotes_byte_order_marks_and_windows_line_ends_are_read(tmp_path):
    path = tmp_path / "glossary.csv"
    path.write_bytes(
        b'\xef\xbb\xbf"Term", "Definition"\r\n\r\n"kumquat","a small, ""sour""\r\nfruit"\r\nquokka, "an animal"\r\n'
    )
    glossary = read_glossary(path)
    assert glossary.definitions == {"kumquat": ['a small, "sour" fruit'], "quokka": ["an animal"]}
    assert glossary.rejected == []


def test_quotes_in_tsv_are_text(tmp_path):
    (tmp_path / "glossary.tsv").write_text('term\tdefinition\npipe\t5" wide\n"kumquat"\t"a fruit\n')
    assert read_glossary(tmp_path / "glossary.tsv").definitions == {"pipe": ['5" wide'], '"kumquat"': ['"a fruit']}


def test_a_quote_that_is_not_closed_costs_its_row_only(tmp_path):
    lines = ["term,definition", 'kumquat,"a fruit', 'quokka,"an animal"', 'stent,"a tube', "catheter,a tube"]
    (tmp_path / "glossary.csv").write_text("\n".join(lines))
    glossary = read_glossary(tmp_path / "glossary.csv")
    assert glossary.definitions == {"quokka": ["an animal"], "catheter": ["a tube"]}
    assert [(row.number, row.text) for row in glossary.rejected] == [(2, 'kumquat,"a fruit'), (4, 'stent,"a tube')]
    assert all(row.reason.startswith("no CSV, ") for row in glossary.rejected)


@pytest.mark.parametrize("text", ["kumquat;a small, sour fruit\nquokka;an animal\n", "kumquat;a small, sour fruit\n"])
def test_a_file_of_two_columns_needs_no_header_and_the_first_delimiter_parts_them(tmp_path, text):
    (tmp_path / "glossary.csv").write_text(text)
    assert read_glossary(tmp_path / "glossary.csv").definitions["kumquat"] == ["a small, sour fruit"]
    (tmp_path / "glossary.tsv").write_text(text.replace(";", "\t"))
    assert read_glossary(tmp_path / "glossary.tsv").definitions["kumquat"] == ["a small, sour fruit"]


def test_columns_are_found_by_name_whatever_their_order_and_case(tmp_path):
    (tmp_path / "a.csv").write_text("id,DEFINITION,Term,source\n1,a fruit,kumquat,Wikipedia\n2,an animal,quokka\n")
    assert read_glossary(tmp_path / "a.csv").definitions == {"kumquat": ["a fruit"], "quokka": ["an animal"]}
    for names in ("Term,Alias", "Name,Acronym", "long-form,Short_Form", "expansion,term", "Meaning,Name"):
        (tmp_path / "a.csv").write_text(f"{names}\nmyocardial infarction,MI\n")
        assert read_aliases(tmp_path / "a.csv").long_forms == {"MI": "myocardial infarction"}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("read", [read_glossary, read_aliases])
def test_other_columns_are_an_error_that_lists_them_and_the_names_accepted(tmp_path, ending, read):
    path = tmp_path / f"rows.{ending}"
    WRITERS[ending](path, [("1", "kumquat", "fruit")], ("id", "Wort", "Bedeutung"))
    with pytest.raises(ValueError, match=r"(?s)acronym.*definition.*found 'id', 'Wort', 'Bedeutung'\. Rename"):
        read(path)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_two_columns_of_json_and_parquet_need_names(tmp_path, ending):
    WRITERS[ending](tmp_path / f"rows.{ending}", [("kumquat", "fruit")], ("Wort", "Bedeutung"))
    with pytest.raises(ValueError, match="found 'Wort', 'Bedeutung'"):
        read_glossary(tmp_path / f"rows.{ending}")


def test_duplicate_terms_are_joined_and_equal_definitions_stand_once(tmp_path):
    rows = [("kumquat", "a fruit"), ("cafe\u0301", "a place"), ("kumquat ", "a  tree"), ("kumquat", "a fruit ")]
    write_csv(tmp_path / "glossary.csv", [*rows, ("café", "a place")], ("term", "definition"))
    glossary = read_glossary(tmp_path / "glossary.csv")
    assert list(glossary.definitions.items()) == [("kumquat", ["a fruit", "a tree"]), ("café", ["a place"])]
    assert glossary.num_rows_used == 5


def test_json_and_parquet_may_have_lists_of_definitions(tmp_path):
    row = {"word": "kumquat", "definitions": ["a fruit", "", "a tree"]}
    (tmp_path / "a.ndjson").write_text(json.dumps(row) + '\n{"Term": "quokka", "gloss": "an animal"}\n')
    assert read_glossary(tmp_path / "a.ndjson").definitions == {
        "kumquat": ["a fruit", "a tree"],
        "quokka": ["an animal"],
    }
    pq.write_table(
        pa.table({"word": ["kumquat"], "definitions": [["a fruit", None, "a tree"]]}), tmp_path / "a.parquet"
    )
    assert read_glossary(tmp_path / "a.parquet").definitions == {"kumquat": ["a fruit", "a tree"]}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"term": " ", "definition": "x"}', "no term"),
        ('{"definition": "x"}', "no term"),
        ('{"term": "x", "definition": null}', "no definition"),
        ('{"term": "x", "definitions": [" "]}', "no definition"),
        ('{"term": 5, "definition": "x"}', "the term is not text"),
        ('{"term": "x", "definition": {"en": "x"}}', "the definition is not text"),
        ('{"term": "a b c d e f g h i j k", "definition": "x"}', "a term of 11 words (at most 10)"),
        ('{"term": "' + "a" * 101 + '", "definition": "x"}', "a term of 101 characters (at most 100)"),
        ('{"term": "--", "definition": "x"}', "a term without a letter or digit"),
        (r'{"term": "a\u0000b", "definition": "x"}', "a control character in the term"),
        (r'{"term": "a\nb", "definition": "x"}', "a control character in the term"),
        (r'{"term": "a\ud800", "definition": "x"}', "an unpaired surrogate in the term"),
        ('{"term": "x", "definition"', "no JSON object in one line"),
        ('["x", "y"]', "no JSON object in one line"),
        ("[" * 100_000, "no JSON object in one line"),
        ('{"term": ' + "1" * 5000 + "}", "no JSON object in one line"),
    ],
    ids=lambda value: value[:40],
)
def test_a_row_that_cannot_be_used_is_rejected_with_its_line_and_reason(tmp_path, line, reason):
    path = tmp_path / "glossary.jsonl"
    path.write_text(f'{{"term": "kumquat", "definition": "a fruit"}}\n\n{line}\n')
    glossary = read_glossary(path)
    assert list(glossary.definitions) == ["kumquat"]
    assert glossary.rejected == [RejectedRow(3, line[:80], reason)]


def test_rows_with_too_few_or_too_many_columns_are_rejected(tmp_path):
    (tmp_path / "a.csv").write_text("term,definition\nkumquat\nquokka,small, furry\nstent,a tube,,\n")
    glossary = read_glossary(tmp_path / "a.csv")
    assert glossary.definitions == {"stent": ["a tube"]}
    assert [row.reason for row in glossary.rejected] == ["1 column instead of 2", "3 columns instead of 2"]


def test_the_first_long_form_of_a_short_form_counts(tmp_path):
    rows = [("MI", "myocardial infarction"), ("MI", "mitral insufficiency"), ("MI", "myocardial  infarction")]
    write_csv(tmp_path / "aliases.csv", [*rows, ("CT", "CT")], None)
    aliases = read_aliases(tmp_path / "aliases.csv")
    assert aliases.long_forms == {"MI": "myocardial infarction"}
    reasons = [(row.number, row.reason) for row in aliases.rejected]
    assert reasons == [(2, "stands for myocardial infarction already"), (4, "stands for itself")]


def test_long_definitions_are_cut_between_words(tmp_path):
    texts = ["word " * 400, "x" * 3000, "a" * MAX_DEFINITION_LENGTH]
    write_csv(tmp_path / "a.csv", [("kumquat", text) for text in texts], ("term", "definition"))
    glossary = read_glossary(tmp_path / "a.csv")
    assert glossary.definitions["kumquat"] == [("word " * 200).strip(), "x" * 1000, "a" * 1000]
    assert glossary.rejected == []


def test_text_that_could_steer_a_terminal_is_not_shown(tmp_path):
    (tmp_path / "a.tsv").write_text("term\tdefinition\nkumquat\ta fruit\n\x1b[31mquokka\tan\x07 animal\n")
    assert read_glossary(tmp_path / "a.tsv").rejected[0].text == "\ufffd[31mquokka an\ufffd animal"


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("text", ["", "\ufeff", "\n\r\n \n"])
def test_a_file_without_rows_is_an_error(tmp_path, ending, text):
    (tmp_path / f"a.{ending}").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"Expected rows with a term and a definition in .*; it has no rows"):
        read_glossary(tmp_path / f"a.{ending}")


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_a_file_of_a_header_is_an_error(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"term": pa.array([], pa.string()), "definition": pa.array([], pa.string())}), path)
    else:
        WRITERS[ending](path, [], ("term", "definition"))
    with pytest.raises(ValueError, match="it has no rows"):
        read_glossary(path)


def test_a_file_of_which_nothing_can_be_used_is_an_error_with_the_first_reasons(tmp_path):
    (tmp_path / "a.csv").write_text("term,definition\n,x\nx,\n--,x\n")
    message = r"3 rows of a\.csv could not be used: line 2: no term; line 3: no definition; and 1 more\. Correct"
    with pytest.raises(ValueError, match=message):
        read_glossary(tmp_path / "a.csv")


def test_other_encodings_and_formats_are_errors_that_tell_what_to_do(tmp_path):
    (tmp_path / "a.csv").write_bytes("Begriff;Wärme".encode("latin-1"))
    with pytest.raises(ValueError, match=r"Expected UTF-8 text in .*iconv"):
        read_glossary(tmp_path / "a.csv")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"Expected Parquet in .*Write it again"):
        read_glossary(tmp_path / "a.parquet")
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"one of the endings \.csv, .*got .*a\.xlsx\. Convert"):
        read_glossary(tmp_path / "a.xlsx")
    with pytest.raises(FileNotFoundError):
        read_glossary(tmp_path / "none.parquet")


def test_rejected_rows_are_told_in_one_sentence():
    rejected = [RejectedRow(7, "quokka,", "no definition"), RejectedRow(9, ",x", "no term")]
    assert describe_rejected(rejected[:1], "a/b.csv") == "1 row of b.csv could not be used: line 7: no definition"
    expected = "2 rows of b.parquet could not be used: row 7: no definition; row 9: no term"
    assert describe_rejected(rejected, "b.parquet") == expected
    assert describe_rejected(rejected, "b.csv", max_shown=1).endswith("line 7: no definition; and 1 more")
    assert describe_rejected([], "b.csv") == ""


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("value", ["x" * 10**7, "\u0301\u0316" * 10**6, '"' * 10**7, 'x",' * 10**6, " " * 10**7])
def test_a_very_long_row_does_not_hang(tmp_path, ending, value):
    path = tmp_path / f"a.{ending}"
    WRITERS[ending](path, [("kumquat", "a fruit"), (value, "x"), ("x", value)], ("term", "definition"))
    start = time.perf_counter()
    assert "kumquat" in read_glossary(path).definitions
    assert time.perf_counter() - start < 20


def test_many_quotes_that_are_not_closed_do_not_hang(tmp_path):
    (tmp_path / "a.csv").write_text("term,definition\nkumquat,a fruit\n" + 'x",",\n' * 20_000)
    start = time.perf_counter()
    assert len(read_glossary(tmp_path / "a.csv").rejected) > 1000
    assert time.perf_counter() - start < 20


def test_many_definitions_of_one_term_do_not_hang(tmp_path):
    write_csv(tmp_path / "a.csv", [("kumquat", f"fruit {i}") for i in range(20_000)], ("term", "definition"))
    assert len(read_glossary(tmp_path / "a.csv").definitions["kumquat"]) == 20_000
