import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertram_hf.adaptation.inflections import share_vectors

INFLECTED = """
kumquat kumquats; box boxes boxed boxing; city cities; stent stents stented stenting; tag tags tagged tagging
code codes coded coding; quiz quizzes; church churches; stomach stomachs; potato potatoes; photo photos; axe axes
virus viruses; abscess abscesses; copy copies copied copying; agree agrees agreed agreeing; rate rated rating
label labels labeled labelled labelling; visit visited visiting; panic panicked panicking; fix fixed fixing
play played playing; equip equipped; cookie cookies; lens lenses; movie movies; dye dyed dyeing; map mapped mapping
"""
NO_FORMS = """
diabete diabetes; len lens; seps sepsis; axi axis; viru virus; statu status; clas class; genetic genetics; str string
th the thing; she shed; k king; see seed; twee tweed; rat rated rating; specie species; http https
new news; her herring; ear earring
car cared caring; be being bees; do does; live lives; hop hoping; cod coded; or ors; stent centers; panda pandemic
"""
WORDS = st.text(string.ascii_lowercase, max_size=8) | st.sampled_from(
    [word for line in INFLECTED.split(";") for word in line.split()]
)
VOCABULARIES = st.dictionaries(WORDS | st.text(max_size=6), st.integers(0, 30), max_size=30)


def groups(text):
    return [group.split() for group in text.strip().replace("\n", ";").split(";")]


@pytest.mark.parametrize("words", groups(INFLECTED), ids=lambda words: words[0])
def test_regular_forms_share_the_vector_of_their_base(words):
    base, *forms = words
    assert share_vectors(dict.fromkeys(words, 3)) == dict.fromkeys(forms, base)


@pytest.mark.parametrize("words", groups(NO_FORMS), ids=lambda words: "-".join(words))
def test_words_that_only_look_like_forms_keep_their_own_vector(words):
    assert share_vectors(dict.fromkeys(words, 3)) == {}


@pytest.mark.parametrize(
    "words",
    groups("base basis bases; axe axis axes; leaf leave leaves; sing singe singing; analyse analysis analyses"),
    ids=lambda words: words[-1],
)
def test_a_form_of_two_bases_is_nobodys(words):
    assert words[-1] not in share_vectors(dict.fromkeys(words, 3))


def test_an_irregular_plural_is_no_form():
    assert share_vectors({"basis": 3, "bases": 3, "leaf": 3, "leaves": 3, "index": 3, "indices": 3}) == {}


def test_acronyms_and_product_codes_only_have_a_plural_in_s():
    words = ["NSAID", "NSAIDs", "NSAIDed", "NSAIDS", "GPU", "GPUs", "mRNA", "mRNAs", "iPhone", "iPhoned", "5HT", "5HTs"]
    expected = {"NSAIDs": "NSAID", "GPUs": "GPU", "mRNAs": "mRNA", "5HTs": "5HT"}
    assert share_vectors(dict.fromkeys(words, 3)) == expected


def test_names_numbers_and_terms_of_several_parts_have_no_forms():
    words = ["Adam", "Adams", "T440", "T440s", "1990", "1990s", "x-ray", "x-rays", "stent graft", "stent grafts"]
    assert share_vectors(dict.fromkeys(words, 3)) == {}


def test_a_form_of_a_form_shares_the_vector_of_the_last_base():
    words = {"settings": 9, "setting": 9, "set": 9, "codings": 2, "coding": 2, "code": 2}
    expected = {"settings": "set", "setting": "set", "codings": "code", "coding": "code"}
    assert share_vectors(words) == expected
    del words["set"]
    assert share_vectors(words)["settings"] == "setting"


def test_a_base_that_is_rare_beside_its_form_may_be_a_misspelling():
    assert share_vectors({"stent": 1, "stents": 500}) == {}
    assert share_vectors({"stent": 1, "stents": 10}) == {"stents": "stent"}
    assert share_vectors({"stent": 2, "stents": 500}) == {"stents": "stent"}
    assert share_vectors({"stent": 0, "stents": 0}) == {"stents": "stent"}


@given(VOCABULARIES)
def test_forms_and_bases_are_words_and_no_base_is_a_form(words):
    shared = share_vectors(words)
    assert set(shared) | set(shared.values()) <= set(words)
    assert not set(shared) & set(shared.values())
    for form, base in shared.items():
        assert len(form) >= 4
        assert len(base) >= 3
        assert len(base) < len(form)
        assert not form.endswith(("ss", "us", "is"))


@given(VOCABULARIES, st.randoms(use_true_random=False))
def test_the_order_of_the_words_only_orders_the_forms(words, shuffler):
    shuffled = list(words)
    shuffler.shuffle(shuffled)
    shared = share_vectors({word: words[word] for word in shuffled})
    assert shared == share_vectors(words)
    assert list(shared) == [word for word in shuffled if word in shared]


@given(VOCABULARIES)
def test_other_words_never_give_a_form_another_first_base(words):
    shared = share_vectors(words)
    for form, base in shared.items():
        pair = share_vectors({base: words[base], form: words[form]})
        assert pair in ({}, {form: base})  # empty if there is a form between them
