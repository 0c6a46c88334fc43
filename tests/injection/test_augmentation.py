import copy
import math
import re
from collections import Counter

import pytest
import torch
from datasets import Dataset
from torch.utils.data import DataLoader

from bertram_hf.injection.augmentation import SlashAugmentation

NUM_WORDS = 20_000
TEXT = " ".join(f"word{number}" for number in range(50))


def check_rate(count, trials, probability):
    sigma = math.sqrt(trials * probability * (1 - probability))
    assert abs(count - trials * probability) < 4 * sigma, f"{count} of {trials}, expected {probability}"


def test_rates_are_those_of_the_paper(bert_tokenizer):
    augmented = SlashAugmentation(bert_tokenizer, seed=3)(" ".join(["w"] * NUM_WORDS))
    forms = Counter(re.findall(r"\S+ / \S+|\S+", augmented))
    duplicated = {form: count for form, count in forms.items() if " / " in form}
    num_duplicated = sum(duplicated.values())
    assert set(duplicated) == {"w / w", "[MASK] / w", "w / [MASK]", "[MASK] / [MASK]"}
    assert forms.total() == NUM_WORDS
    check_rate(forms["[MASK]"], NUM_WORDS, 0.05)
    check_rate(num_duplicated, NUM_WORDS, 0.10)
    check_rate(duplicated["[MASK] / w"] + duplicated["[MASK] / [MASK]"], num_duplicated, 0.25)
    check_rate(duplicated["w / [MASK]"] + duplicated["[MASK] / [MASK]"], num_duplicated, 0.25)
    check_rate(duplicated["[MASK] / [MASK]"], num_duplicated, 0.25**2)  # independently


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        ((0, 0, 0), "A small,\n tree"),
        ((1, 0, 0), "[MASK] [MASK]\n [MASK]"),
        ((0, 1, 0), "A / A small, / small,\n tree / tree"),
        ((0, 1, 1), "[MASK] / [MASK] [MASK] / [MASK]\n [MASK] / [MASK]"),
    ],
)
def test_texts_have_the_exact_forms_and_keep_their_white_space(bert_tokenizer, probabilities, expected):
    names = ("mask_probability", "slash_probability", "slash_mask_probability")
    augment = SlashAugmentation(bert_tokenizer, **dict(zip(names, probabilities, strict=True)))
    assert augment("A small,\n tree") == expected


def test_special_tokens_and_empty_texts_stay(bert_tokenizer, roberta_tokenizer):
    augment = SlashAugmentation(bert_tokenizer, mask_probability=0, slash_probability=1, slash_mask_probability=0)
    assert augment("[CLS] a [SEP] [MASK]") == "[CLS] a / a [SEP] [MASK]"
    assert augment(["", " \n"]) == ["", " \n"]
    assert augment([]) == []
    assert SlashAugmentation(roberta_tokenizer, mask_probability=0.9)("<mask> </s>") == "<mask> </s>"


def test_one_seed_gives_one_sequence_of_different_epochs(bert_tokenizer):
    first, second, other = (SlashAugmentation(bert_tokenizer, seed=seed) for seed in (1, 1, 2))
    epochs = [first(TEXT) for _ in range(3)]
    assert epochs == [second(TEXT) for _ in range(3)]
    assert len(set(epochs)) == 3
    assert other(TEXT) not in epochs


def test_a_list_gives_what_its_texts_give_one_by_one(bert_tokenizer):
    together, alone = SlashAugmentation(bert_tokenizer), SlashAugmentation(bert_tokenizer)
    assert together([TEXT, TEXT]) == [alone(TEXT), alone(TEXT)]


def test_pairs_in_a_dataset_are_both_augmented_and_nothing_else_is(bert_tokenizer):
    rows = {"premise": ["a b", "c"], "hypothesis": ["d", ""], "title": ["e", "f"], "label": [0, 1]}
    expected = rows | {"premise": ["a / a b / b", "c / c"], "hypothesis": ["d / d", ""]}
    augment = SlashAugmentation(
        bert_tokenizer,
        mask_probability=0,
        slash_probability=1,
        slash_mask_probability=0,
        columns=("premise", "hypothesis"),
    )
    dataset = Dataset.from_dict(rows)
    assert dataset.map(augment).to_dict() == expected
    assert dataset.map(augment, batched=True).to_dict() == expected
    dataset.set_transform(augment)
    assert dataset[:] == expected
    assert dataset[0] == {column: values[0] for column, values in expected.items()}


@pytest.mark.parametrize("num_workers", [0, 2])
def test_epochs_and_workers_of_a_data_loader_differ_and_repeat_with_the_seed(bert_tokenizer, num_workers):
    def run():
        dataset = Dataset.from_dict({"text": [TEXT] * 4})
        dataset.set_transform(SlashAugmentation(bert_tokenizer))
        loader = DataLoader(dataset, batch_size=2, num_workers=num_workers, generator=torch.Generator().manual_seed(5))
        return [text for _ in range(2) for batch in loader for text in batch["text"]]

    texts = run()
    assert len(set(texts)) == 8
    assert run() == texts


@pytest.mark.parametrize("inputs", [None, 3, ["a", None], {"text": ["a", 3]}, {"text": None}, [["a"]], b"a"])
def test_what_is_no_text_is_named(bert_tokenizer, inputs):
    with pytest.raises(TypeError, match=r"Expected (a text or a list of )?texts; got (NoneType|int|list) \("):
        SlashAugmentation(bert_tokenizer)(inputs)


def test_wrong_settings_are_named(bert_tokenizer):
    with pytest.raises(KeyError, match="no column 'text' among sentence, label"):
        SlashAugmentation(bert_tokenizer)({"sentence": "a", "label": 0})
    with pytest.raises(ValueError, match=r"together at most 1; got 0\.5 and 0\.6"):
        SlashAugmentation(bert_tokenizer, mask_probability=0.5, slash_probability=0.6)
    with pytest.raises(ValueError, match="between 0 and 1; got 25"):
        SlashAugmentation(bert_tokenizer, slash_mask_probability=25)
    with pytest.raises(TypeError, match=r"got the string 'text'\. Pass \['text'\]"):
        SlashAugmentation(bert_tokenizer, columns="text")


def test_a_tokenizer_without_mask_token_is_refused(bert_tokenizer):
    tokenizer = copy.deepcopy(bert_tokenizer)
    tokenizer.mask_token = None
    with pytest.raises(ValueError, match="has no mask token"):
        SlashAugmentation(tokenizer)
