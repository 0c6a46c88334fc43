"""Transformers' own processor tests, run on BertramProcessor over BERT's and RoBERTa's tokenizers."""

import unittest
from typing import Any

import PIL.Image  # noqa: F401  without it the suite skips every test, texts or not
from transformers import BertTokenizer, PreTrainedTokenizerBase, RobertaTokenizer
from transformers_suite.test_processing_common import ProcessorTesterMixin

from bertram_hf import BertramProcessor, FormTokenizer

WORDS = ["kumquat", "kumquats"]
CONTEXTS = [["She peeled a kumquat ."], ["All kumquats are sour .", "I like kumquats"]]
CHARACTERS = 'abcdefghijklmnopqrstuvwxyzASI .:"'


class BertramProcessorTests(ProcessorTesterMixin):
    processor_class = BertramProcessor

    @staticmethod
    def prepare_processor_dict() -> dict[str, Any]:
        return {"max_length": 24, "prefix": "quotes", "match": "whitespace", "separator": ":"}

    @classmethod
    def _setup_from_components(cls) -> BertramProcessor:
        processor = super()._setup_from_components()
        processor.form = FormTokenizer.from_words(WORDS, min_count=1)
        return processor

    # The suite's version gives texts; BERTRAM takes words and contexts.
    def test_model_input_names(self) -> None:
        processor = self.get_processor()
        assert set(processor(WORDS, CONTEXTS)) == set(processor.model_input_names)

    def test_form_vocabulary_survives_saving(self) -> None:
        assert self.get_processor().form.vocab == FormTokenizer.from_words(WORDS, min_count=1).vocab

    @unittest.skip("BertramProcessor takes words and contexts, and no settings of its tokenizer.")
    def test_flat_kwarg_applied_when_modality_dict_lacks_it(self) -> None:
        pass


class BertProcessingTest(BertramProcessorTests, unittest.TestCase):
    @classmethod
    def _setup_tokenizer(cls) -> PreTrainedTokenizerBase:
        pieces = [*CHARACTERS, *(f"##{character}" for character in CHARACTERS)]
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces]
        return BertTokenizer(vocab={token: index for index, token in enumerate(tokens)})


class RobertaProcessingTest(BertramProcessorTests, unittest.TestCase):
    @classmethod
    def _setup_tokenizer(cls) -> PreTrainedTokenizerBase:
        tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *CHARACTERS.replace(" ", "Ġ")]
        return RobertaTokenizer(vocab={token: index for index, token in enumerate(tokens)}, merges=[])
