import random
from dataclasses import asdict

import pytest
import torch
from datasets import ClassLabel, Dataset, load_from_disk
from support.reference_rarification import find_decisive_words, log_probabilities, mask_words
from support.tiny_models import FAMILIES
from transformers import AutoConfig, AutoModelForSequenceClassification

from bertram_hf.rarification.baseline import to_class_numbers, train_baseline
from bertram_hf.rarification.masking import InputMasker
from bertram_hf.rarification.rarify import generate, rarify, split_candidates
from bertram_hf.rarification.replacement import find_replaceable
from bertram_hf.rarification.search import DecisiveWordSearch
from bertram_hf.rarification.substitutions import Substitutions

WORDS = ["gold", "field", "town", "rabbit", "horse", "apple", "castle", "bird", "winter", "blue", "snake", "wine"]
WORDS += ["kumquat", "goldfield", "wintergarden", "castlebird"]  # of several pieces
FILLERS = ["the", "of", "and", ",", "(", "8", "don't", "/", "[MASK]", "<mask>", "café", "_x_", "covid-19"]
SUBSTITUTIONS = Substitutions(
    [(word, f"{word}ium", "wordnet") for word in WORDS[::2]]
    + [(word, f"{word}{letter}", "misspelling") for word in WORDS[::3] for letter in "xyz"]
    + [("tree", "dendron", "given")]
)
NUM_LABELS = 3


@pytest.fixture(scope="module")
def classifiers(bert_tokenizer, roberta_tokenizer):
    """Tiny classifiers of texts and of pairs that have opinions, with their tokenizers."""

    def make(family, tokenizer, is_pair):
        torch.manual_seed(0)
        config = AutoConfig.for_model(family, **FAMILIES[family] | {"vocab_size": 641, "num_labels": NUM_LABELS})
        model = AutoModelForSequenceClassification.from_config(config).eval()
        texts = [draw_texts(50, seed=seed, fillers=FILLERS[:8]) for seed in range(1 + is_pair)]
        inputs = tokenizer(*texts, padding=True, truncation=True, max_length=40, return_tensors="pt")
        bias = model.classifier.bias if family == "bert" else model.classifier.out_proj.bias
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.15)
            bias.sub_(model(**inputs).logits.mean(dim=0))  # no class is everybody's favourite
        return model, tokenizer

    tokenizers = {"bert": bert_tokenizer, "roberta": roberta_tokenizer}
    found = {family: make(family, tokenizer, False) for family, tokenizer in tokenizers.items()}
    return found | {(family, True): make(family, tokenizer, True) for family, tokenizer in tokenizers.items()}


def draw_texts(number, *, seed, fillers, max_words=14):
    draw = random.Random(seed)
    texts = []
    for _ in range(number):
        words = [draw.choice(WORDS if draw.random() < 0.6 else fillers) for _ in range(draw.randint(0, max_words))]
        texts.append(" ".join(word.capitalize() if draw.random() < 0.1 else word for word in words))
    return texts


def draw_dataset(number, classifier, *, is_pair=False, max_length=24, seed=0, fillers=tuple(FILLERS[:8])):
    """Draws rows whose labels are, for most of them, what the classifier says."""
    model, tokenizer = classifier
    texts = draw_texts(number, seed=seed, fillers=fillers)
    columns = {"text": texts}
    if is_pair:
        columns["pair"] = draw_texts(number, seed=seed + 1, fillers=fillers)
    labels = []
    for row, parts in enumerate(zip(*columns.values(), strict=True)):
        scores, _ = log_probabilities(model, tokenizer, parts, max_length=max_length)
        labels.append((int(scores.argmax()) + (row % 5 == 0)) % NUM_LABELS)
    return Dataset.from_dict(columns | {"label": labels})


def rows_of(dataset):
    return list(zip(*(dataset[name][:] for name in ("text", "pair") if name in dataset.column_names), strict=True))


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("is_pair", [False, True])
@pytest.mark.parametrize("max_length", [12, 40])
def test_search_equals_one_mask_at_a_time(classifiers, family, is_pair, max_length):
    model, tokenizer = classifier = classifiers[(family, True) if is_pair else family]
    dataset = draw_dataset(40, classifier, is_pair=is_pair, max_length=max_length)
    rows = rows_of(dataset)
    words = [find_replaceable(texts, SUBSTITUTIONS, misspelling_share=0.3) for texts in rows]
    labels = dataset["label"][:]
    search = DecisiveWordSearch(model, tokenizer, max_length=max_length, max_masked=3, tokens_per_batch=300)
    outcomes = [outcome.dropped or list(outcome.masked) for outcome in search.find(rows, words, labels)]
    expected = [
        find_decisive_words(model, tokenizer, *row, max_length=max_length, max_masked=3)
        for row in zip(rows, words, labels, strict=True)
    ]
    assert outcomes == expected
    reasons = {outcome for outcome in outcomes if isinstance(outcome, str)}
    assert {"no_words", "wrong_at_start", "not_flipped"} <= reasons
    assert {len(outcome) for outcome in outcomes if isinstance(outcome, list)} >= {1, 2}


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_screening_finds_the_same_words_with_fewer_exact_scores(classifiers, family, monkeypatch):
    model, tokenizer = classifier = classifiers[family]
    dataset = draw_dataset(400, classifier, max_length=40)
    rows, labels = rows_of(dataset), dataset["label"][:]
    words = [find_replaceable(texts, SUBSTITUTIONS, misspelling_share=1) for texts in rows]
    num_scored = {True: 0, False: 0}
    score = DecisiveWordSearch.score

    def count(self, inputs, *, rough=False):
        num_scored[rough] += len(inputs)
        return score(self, inputs, rough=rough)

    monkeypatch.setattr(DecisiveWordSearch, "score", count)
    results = {}
    for screening in (False, True):
        num_scored.update({True: 0, False: 0})
        search = DecisiveWordSearch(model, tokenizer, max_length=40, max_masked=3, screening=screening)
        results[screening] = search.find(rows, words, labels, show_progress=False), search.num_queries
    assert results[False] == results[True]
    assert num_scored[True] == results[True][1]
    assert num_scored[False] < 0.75 * num_scored[True]


def test_models_that_cannot_be_run_in_bfloat16_are_searched(bert_tokenizer):
    torch.manual_seed(0)
    config = AutoConfig.for_model("deberta", **FAMILIES["deberta"] | {"vocab_size": 641, "num_labels": NUM_LABELS})
    model = AutoModelForSequenceClassification.from_config(config).eval()
    rows = [(text,) for text in draw_texts(20, seed=0, fillers=FILLERS[:8])]
    words = [find_replaceable(texts, SUBSTITUTIONS) for texts in rows]
    outcomes = DecisiveWordSearch(model, bert_tokenizer, max_length=24).find(rows, words, [0] * 20)
    assert outcomes == DecisiveWordSearch(model, bert_tokenizer, max_length=24, screening=False).find(
        rows, words, [0] * 20
    )


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("is_pair", [False, True])
def test_both_properties_of_the_paper_hold_for_every_row(classifiers, family, is_pair):
    model, tokenizer = classifier = classifiers[(family, True) if is_pair else family]
    dataset = draw_dataset(60, classifier, is_pair=is_pair, max_length=40)
    pair_column = "pair" if is_pair else None
    test = generate(dataset, model, tokenizer, SUBSTITUTIONS, pair_column=pair_column, max_length=40)
    parts = ["text", "pair"] if is_pair else ["text"]
    assert test.dataset.column_names == ["label", *parts, *(f"rarified_{part}" for part in parts), "replaced"]
    assert test.summary.num_rarified == len(test.dataset) > 5
    columns = set()
    for row in test.dataset:
        texts = {part: row[part] for part in parts}
        rarified = dict(texts)
        for item in sorted(row["replaced"], key=lambda item: -item["start"]):
            start, end, column = item["start"], item["start"] + len(item["word"]), item["column"]
            assert row[column][start:end] == item["word"]
            entry = (item["word"].lower(), item["substitute"].lower(), item["kind"])
            assert entry in set(SUBSTITUTIONS.entries())
            assert item["substitute"][0].isupper() == item["word"][0].isupper()
            texts[column] = texts[column][:start] + tokenizer.mask_token + texts[column][end:]
            rarified[column] = rarified[column][:start] + item["substitute"] + rarified[column][end:]
            columns.add(column)
        assert 1 <= len(row["replaced"]) <= 5
        assert [row[f"rarified_{part}"] for part in parts] == list(rarified.values())
        masked, _ = log_probabilities(model, tokenizer, texts.values(), max_length=40)
        original, _ = log_probabilities(model, tokenizer, [row[part] for part in parts], max_length=40)
        assert masked.argmax() != row["label"]
        assert original.argmax() == row["label"]
    assert columns == set(parts)


def test_summary_accounts_for_all_candidates(classifiers):
    model, tokenizer = classifiers["bert"]
    dataset = draw_dataset(60, classifiers["bert"], max_length=8)
    summary = generate(dataset, model, tokenizer, SUBSTITUTIONS, max_length=8, max_masked=1).summary
    numbers = asdict(summary)
    parts = ("num_rarified", "num_without_words", "num_wrong_at_start", "num_truncated", "num_not_flipped")
    assert all(numbers[name] > 0 for name in parts)
    assert sum(numbers[name] for name in parts) == summary.num_candidates == 60
    assert sum(summary.num_replaced.values()) == summary.num_rarified


def test_the_model_is_never_asked_about_a_substitute(classifiers, monkeypatch):
    model, tokenizer = classifiers["bert"]
    dataset = draw_dataset(20, classifiers["bert"])
    allowed = {token for text in dataset["text"] for token in tokenizer(text)["input_ids"]} | {tokenizer.mask_token_id}
    substitutions = Substitutions((word, "tree", "wordnet") for word in WORDS)  # a token that no text has
    asked = set()
    collate = InputMasker.collate
    monkeypatch.setattr(
        InputMasker,
        "collate",
        lambda self, inputs: asked.update(*(i.input_ids for i in inputs)) or collate(self, inputs),
    )
    test = generate(dataset, model, tokenizer, substitutions, max_length=24)
    assert len(test.dataset)
    assert asked <= allowed
    assert tokenizer.mask_token_id in asked


def test_special_tokens_in_texts_are_text(classifiers):
    model, tokenizer = classifiers["bert"]
    dataset = draw_dataset(30, classifiers["bert"], fillers=("[MASK]", "[SEP]", "[CLS]", "[PAD]", "a"), seed=4)
    masker = InputMasker(tokenizer, max_length=40)
    rows = rows_of(dataset)
    words = [find_replaceable(texts, SUBSTITUTIONS) for texts in rows]
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    for tokens, found in zip(masker.tokenize(rows, words), words, strict=True):
        ids = masker.mask(tokens, range(len(found))[:2])
        assert sum(token in special for token in ids.input_ids) == 2 + len(found[:2])
    test = generate(dataset, model, tokenizer, SUBSTITUTIONS, max_length=40)
    assert test.summary.num_candidates == 30


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("truncation_side", ["right", "left"])
@pytest.mark.parametrize("num_texts", [1, 2])
def test_masked_tokens_are_those_of_the_masked_text(classifiers, family, truncation_side, num_texts, monkeypatch):
    tokenizer = classifiers[family][1]
    monkeypatch.setattr(tokenizer, "truncation_side", truncation_side)
    masker = InputMasker(tokenizer, max_length=16)
    fillers = ("the", ", of", "  and", "(a)", "\n8", "naïve", "don't", "日本", "😀")
    texts = draw_texts(120, seed=7, fillers=fillers)
    rows = [tuple(texts[i : i + num_texts]) for i in range(0, len(texts), num_texts)]
    words = [find_replaceable(texts, SUBSTITUTIONS, misspelling_share=1) for texts in rows]
    num_compared = 0
    for texts, tokens, found in zip(rows, masker.tokenize(rows, words), words, strict=True):
        for chosen in ([], [0], [len(found) - 1], list(range(0, len(found), 2))):
            if chosen and not found:
                continue
            item = masker.mask(tokens, chosen)
            masked = mask_words(tokenizer, texts, [found[i] for i in chosen])
            expected = tokenizer(
                *([text] for text in masked), truncation=True, max_length=16, return_token_type_ids=True
            )
            expected = {name: values[0] for name, values in expected.items()}
            if expected["input_ids"].count(tokenizer.mask_token_id) < len(set(chosen)):
                assert item is None
            else:
                assert item.input_ids == expected["input_ids"]
                assert item.token_type_ids == expected["token_type_ids"]
                num_compared += len(chosen)
    assert num_compared > 60


def test_batches_do_not_change_the_result(classifiers):
    model, tokenizer = classifiers["roberta"]
    dataset = draw_dataset(30, classifiers["roberta"])
    results = [
        generate(dataset, model, tokenizer, SUBSTITUTIONS, max_length=24, tokens_per_batch=number).dataset.to_list()
        for number in (1, 100, 100_000)
    ]
    assert results[0] == results[1] == results[2]
    assert not model.training


def test_one_seed_gives_one_result_and_another_gives_another(classifiers):
    model, tokenizer = classifiers["bert"]
    dataset = draw_dataset(40, classifiers["bert"])
    first, again, other = (
        generate(dataset, model, tokenizer, SUBSTITUTIONS, max_length=24, seed=seed, misspelling_share=0.5).dataset
        for seed in (1, 1, 2)
    )
    assert first.to_list() == again.to_list() != other.to_list()
    reverse = dataset.select(range(39, -1, -1))
    result = generate(reverse, model, tokenizer, SUBSTITUTIONS, max_length=24, seed=1, misspelling_share=0.5).dataset
    assert result.to_list()[::-1] == first.to_list()


def test_split_keeps_a_third_for_training_and_all_rows_without_words():
    texts = [f"{'apple' if row % 4 else 'tea'} {row}" for row in range(100)]
    substitutions = Substitutions([("apple", "malum", "given")])
    dataset = Dataset.from_dict({"text": texts, "label": list(range(100))})
    split = split_candidates(dataset, substitutions)
    assert (len(split.train), len(split.candidates), split.num_without_words) == (34, 66, 25)
    assert sorted(split.train["label"][:] + split.candidates["label"][:]) == list(range(100))
    assert split.candidates["label"][:] == sorted(split.candidates["label"])
    assert all("apple" in text for text in split.candidates["text"])
    assert split_candidates(dataset, substitutions).candidates["label"][:] == split.candidates["label"][:]
    assert split_candidates(dataset, substitutions, seed=1).candidates["label"][:] != split.candidates["label"][:]
    everything = split_candidates(dataset, substitutions, min_train_share=0)
    assert everything.candidates["text"][:] == [text for text in texts if "apple" in text]
    none = split_candidates(dataset, Substitutions())
    assert (len(none.train), len(none.candidates)) == (100, 0)


def test_rows_of_the_same_text_stay_together():
    texts = [f"a tree {index % 20} here" for index in range(90)]
    split = split_candidates(Dataset.from_dict({"text": texts, "label": [0] * 90}), SUBSTITUTIONS)
    assert not set(split.train["text"]) & set(split.candidates["text"])
    assert 56 <= len(split.candidates) <= 60


def test_training_freezes_embeddings_and_repeats_with_the_seed(classifiers, bert_tokenizer):
    dataset = draw_dataset(24, classifiers["bert"], fillers=("[MASK]", "the"))
    state = {name: value.clone() for name, value in classifiers["bert"][0].state_dict().items()}
    weights = []
    for _ in range(2):
        model = AutoModelForSequenceClassification.from_config(classifiers["bert"][0].config)
        model.load_state_dict(state)
        metrics = train_baseline(
            model,
            bert_tokenizer,
            dataset,
            max_length=24,
            training_arguments={"max_steps": 3, "use_cpu": True, "disable_tqdm": True},
        )
        assert metrics["train_loss"] > 0
        weights.append(model.state_dict())
    embeddings = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(weights[0][embeddings], state[embeddings])
    assert not torch.equal(weights[0]["classifier.weight"], state["classifier.weight"])
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in state)
    assert not model.training


def test_rarify_runs_all_steps_on_pairs(classifiers, roberta_tokenizer):
    trained, _ = classifiers["roberta", True]
    model = AutoModelForSequenceClassification.from_config(trained.config)
    model.load_state_dict(trained.state_dict())
    dataset = draw_dataset(60, classifiers["roberta", True], is_pair=True).cast_column(
        "label", ClassLabel(names=["a", "b", "c"])
    )
    result = rarify(
        dataset,
        model,
        roberta_tokenizer,
        SUBSTITUTIONS,
        pair_column="pair",
        max_length=24,
        training_arguments={"max_steps": 1, "learning_rate": 1e-6, "use_cpu": True, "disable_tqdm": True},
        show_progress=False,
    )
    assert len(result.split.train) >= 20
    assert result.test.summary.num_candidates == len(result.split.candidates)
    assert len(result.test.dataset)
    assert result.test.dataset.features["label"].names == ["a", "b", "c"]


def test_an_empty_result_has_all_columns(classifiers, tmp_path):
    model, tokenizer = classifiers["bert"]
    dataset = Dataset.from_dict({"text": ["", "[MASK] \x00"], "pair": ["a", ""], "label": [0, 1]})
    test = generate(dataset, model, tokenizer, SUBSTITUTIONS, pair_column="pair", max_length=24)
    test.dataset.save_to_disk(tmp_path / "test", num_shards=1)  # Datasets reads no folder without shards
    columns = ["label", "text", "pair", "rarified_text", "rarified_pair", "replaced"]
    assert load_from_disk(tmp_path / "test").column_names == columns
    assert test.summary.num_without_words == 2


def test_names_of_labels_become_the_models_numbers(classifiers):
    config = AutoConfig.for_model("bert", label2id={"no": 0, "yes": 1}, id2label={0: "no", 1: "yes"})
    dataset = Dataset.from_dict({"text": ["a", "b", "c"], "label": ["yes", "no", "yes"]})
    numbered = to_class_numbers(dataset, config)
    assert numbered["label"][:] == [1, 0, 1]
    assert numbered.features["label"].names == ["no", "yes"]
    assert to_class_numbers(numbered, config)["label"][:] == [1, 0, 1]
    with pytest.raises(ValueError, match="among the model's, no, yes; got 'maybe'"):
        to_class_numbers(Dataset.from_dict({"label": ["maybe"]}), config)


def test_wrong_input_is_named(classifiers):
    model, tokenizer = classifiers["bert"]
    dataset = Dataset.from_dict({"text": ["a"], "label": [0], "number": [1.5]})

    def run(dataset=dataset, **options):
        return generate(dataset, model, tokenizer, SUBSTITUTIONS, **{"max_length": 24} | options)

    with pytest.raises(ValueError, match=r"Expected a column 'sentence'; got text, label, number\. Set text_column"):
        run(text_column="sentence")
    with pytest.raises(ValueError, match=r"Expected text in column 'number'; got float64\. Set pair_column"):
        run(pair_column="number")
    with pytest.raises(ValueError, match="Expected a text in each row of column 'text'; some have none"):
        run(Dataset.from_dict({"text": ["a", None], "label": [0, 1]}))
    with pytest.raises(ValueError, match=r"Expected labels from 0 to 2, the model's classes; got 3 in column 'label'"):
        run(Dataset.from_dict({"text": ["a"], "label": [3]}))
    with pytest.raises(ValueError, match=r"got 1\.5 in column 'number'"):
        run(label_column="number")
    with pytest.raises(ValueError, match="at most 64, which the model can read; got 128"):
        run(max_length=128)
    with pytest.raises(ValueError, match="more than the 2 special tokens of an input; got 2"):
        run(max_length=2)
    with pytest.raises(ValueError, match="max_masked must be at least 1; got 0"):
        run(max_masked=0)
    with pytest.raises(ValueError, match="misspelling_share must be between 0 and 1; got 10"):
        run(misspelling_share=10)
    with pytest.raises(ValueError, match="Expected texts to train on; got none"):
        train_baseline(model, tokenizer, dataset.select([]), max_length=24)


def test_logits_that_are_not_finite_are_named(classifiers, bert_tokenizer):
    model = AutoModelForSequenceClassification.from_config(classifiers["bert"][0].config)
    model.classifier.bias.data.fill_(float("nan"))
    dataset = Dataset.from_dict({"text": ["gold apple"], "label": [0]})
    with pytest.raises(ValueError, match="Expected finite logits"):
        generate(dataset, model, bert_tokenizer, SUBSTITUTIONS, max_length=24)
