import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertram_hf.words.english import FAMILIES, IRREGULAR_FORMS
from bertram_hf.words.families import drop_families, group_families, split_by_family, word_family

REAL_FAMILIES = """
academy academic academies academics
accurate accuracy inaccurate accurately
accuse accusation accusing accused
adhere adhered adhering
agency agent agencies agents
agree agreed agreement disagree disagreements
analyse analysis analytical analyst analyzed
bankruptcy bankrupt
beauty beautiful beautifully
belief believe unbelievable
capable capability incapable capacities
carburettor carburettors carburetted
catalyst catalytic
centre center central centered
city cities
classic classical classics
colour color coloured colorful
comprehend comprehensive comprehension
consult consultancy consultant consultation
copy copied copies copying
country countries
criterion criteria
decide decision decisive
declare declared declaration
defence defense defend defensive
democracy democrat democratic
divide division subdivision
earn earned earnings
eight eighty eighteenth
emphasis emphasize emphatic
enjoy enjoyable enjoyment
fibre fiber fibers
forget forgot forgotten
geography geographic geographical
germany german germanic
happy happiness happiest
hero heroes heroic
horse horses
hunger hungry
indicate indication indicator
indonesia indonesian
inhibit inhibitor inhibition
kilometre kilometers
knife knives
label labelled labeling
leader leadership leading led
low lower lowest
mouse mice
myth mythical mythology
name named unnamed
neighbour neighborhood
notice noticed noticing
organise organization organizer
panic panicked
photo photograph photographer photographic
pirate piracy
poet poetry poets poetic
politics political politician
pollute pollution
possible possibility impossible
produce production productive reproduction
prohibit prohibition
propel propulsion
pursue pursuit
receive reception
revolve revolution
ride rode ridden rider
run running ran runner
service serve serving
silent silence
six sixth sixteenth sixty
social society socialist
submit submission submitted
success successful succeed unsuccessfully
symmetry symmetric symmetrical
territory territorial
think thoughts thoughtful
triangle triangular
weak weakness weaken
write written writer
"""
STRANGERS = """
horse house; animal animation; appeal appear; battalion bat; care car; cat category; chant chance; contest content
cover cove; country count; discover cover; donkey don; dust industry; flower flow; form information; hang hunger
hope hop; important port; intend intense; kill kilometre; letter let; majesty major; mass massage; model mode
monk monkey
number numb; organ organise; party part; prince print; range ring; rid ride; station state; station status; tune tun
university unit; virginia virgin; winter win
"""
WORDS = st.text(max_size=15) | st.text(string.ascii_letters + "-' ", max_size=15)


@pytest.mark.parametrize(
    "family", [line.split() for line in REAL_FAMILIES.strip().splitlines()], ids=lambda words: words[0]
)
def test_a_real_family_has_one_key(family):
    assert len({word_family(word) for word in family}) == 1, {word: word_family(word) for word in family}


@pytest.mark.parametrize(
    "pair", [pair.split() for pair in STRANGERS.replace("\n", ";").split(";") if pair], ids="-".join
)
def test_words_that_only_look_alike_are_no_family(pair):
    assert word_family(pair[0]) != word_family(pair[1])


def test_words_that_stand_for_a_family_are_in_no_other():
    assert not set(FAMILIES.values()) & set(FAMILIES)
    assert not set(IRREGULAR_FORMS.values()) & set(IRREGULAR_FORMS)


def test_possessives_and_parts_of_terms_are_read_one_by_one():
    assert word_family("horse's") == word_family("horses'") == word_family("horses")
    assert word_family("well-known poets") == word_family("Well known poet")


@settings(deadline=None)
@given(WORDS)
def test_any_text_has_a_family_whatever_its_case(text):
    assert word_family(text) == word_family(text)
    assert word_family(text.upper().lower()) == word_family(text.lower())
    if text.isascii():
        assert word_family(text.upper()) == word_family(text)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=20), st.floats(0, 1), st.integers(0, 5))
def test_split_shares_no_family_and_loses_no_word(words, share, seed):
    split = split_by_family(words, share, seed=seed)
    assert sorted([*split.train, *split.heldout]) == sorted(words)
    assert not {word_family(word) for word in split.train} & {word_family(word) for word in split.heldout}
    assert drop_families(split.train, split.heldout) == split.train


@settings(deadline=None)
@given(st.lists(WORDS, max_size=20), st.randoms(use_true_random=False))
def test_side_of_a_word_does_not_depend_on_order_or_company(words, shuffler):
    split = split_by_family(words, 0.5)
    shuffled = words.copy()
    shuffler.shuffle(shuffled)
    assert sorted(split_by_family(shuffled, 0.5).heldout) == sorted(split.heldout)
    assert split_by_family(words[::2], 0.5).heldout == [word for word in words[::2] if word in set(split.heldout)]


def test_split_is_the_same_in_every_process_and_another_for_another_seed():
    words = ["academy", "horse", "zebra", "kumquat", "poet", "engine", "carburettor", "quokka"]
    assert split_by_family(words, 0.5).heldout == ["academy", "kumquat", "engine"]
    assert any(split_by_family(words, 0.5, seed=seed) != split_by_family(words, 0.5) for seed in range(1, 5))


def test_share_of_held_out_families_is_about_the_one_asked_for():
    generator = random.Random(0)
    words = ["".join(generator.choices("bcdfklmnprtaeiou", k=9)) for _ in range(2000)]
    assert 0.17 < len(split_by_family(words, 0.2).heldout) / 2000 < 0.23
    assert split_by_family(words, 0).heldout == split_by_family(words, 1).train == []


def test_a_share_that_is_a_percentage_is_refused():
    with pytest.raises(ValueError, match=r"between 0 and 1; got 10\. For 10 %, pass heldout_share=0\.1"):
        split_by_family(["a"], 10)


def test_families_are_grouped_and_dropped_in_order():
    assert group_families(["zebra", "poets", "Poetry"]) == {"zebra": ["zebra"], "poet": ["poets", "Poetry"]}
    assert drop_families(["zebra", "Poetry", "horse"], heldout=["poet"]) == ["zebra", "horse"]
