from bertram_hf.rarification.replacement import choose_substitute, find_replaceable, match_case, replace_words
from bertram_hf.rarification.substitutions import Substitutions


def test_misspellings_are_given_to_a_tenth_of_the_words():
    text = " ".join(["apple", "gold"] * 5000)
    substitutions = Substitutions([("apple", "aple", "misspelling"), ("gold", "or", "wordnet")])
    found = find_replaceable([text], substitutions)
    misspelled = [word for word in found if word.text == "apple"]
    assert len(found) - len(misspelled) == 5000
    assert abs(len(misspelled) - 500) < 4 * (5000 * 0.1 * 0.9) ** 0.5
    assert find_replaceable([text], substitutions, seed=1) != found
    assert {word.text for word in find_replaceable([text], substitutions, misspelling_share=0)} == {"gold"}


def test_words_are_runs_of_letters_and_keep_their_capitals():
    substitutions = Substitutions([(word, f"{word}x", "given") for word in ("apple", "don", "s", "covid", "cafe")])
    text = "Apple, APPLE's «apple» don't covid-19 cafe\u0301 apple1 _apple_ pine-apple"
    words = find_replaceable([text], substitutions)
    assert [(word.start, word.text) for word in words] == [
        (0, "Apple"), (7, "APPLE"), (13, "s"), (16, "apple"), (text.index("pine-") + 5, "apple"),
    ]  # fmt: skip
    assert [choose_substitute(word, [text]).text for word in words] == ["Applex", "APPLEX", "sx", "applex", "applex"]
    assert match_case("iPhone", "A") == "IPhone"
    assert find_replaceable([""], substitutions) == []


def test_replacing_keeps_all_other_characters():
    texts = ["Gold,\tgold\u00a0 [MASK]", "no\x00 GOLD"]
    words = find_replaceable(texts, Substitutions([("gold", "aurum", "given")]))
    chosen = [(word, choose_substitute(word, texts).text) for word in words]
    assert replace_words(texts, chosen) == ["Aurum,\taurum\u00a0 [MASK]", "no\x00 AURUM"]
    assert replace_words(texts, chosen[2:]) == [texts[0], "no\x00 AURUM"]
    assert replace_words(texts, []) == texts
