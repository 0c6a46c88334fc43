"""Transformers' own configuration tests, run on BertramConfig."""

import json
import unittest

from tiny_bertram import BertramModelTester
from transformers import BertConfig, PreTrainedConfig, RobertaConfig
from transformers_suite.test_configuration_common import ConfigTester

from bertram_hf import BertramConfig


class BertramConfigTests:
    text_config_class: type[PreTrainedConfig]

    def test_every_check_of_the_suite(self) -> None:
        self.model_tester = BertramModelTester(self.text_config_class, mode="shallow")
        config = json.loads(self.model_tester.get_config().to_json_string(use_diff=False))
        config_tester = ConfigTester(
            self,
            config_class=BertramConfig,
            has_text_modality=False,  # the vocabulary size is a field of text_config
            common_properties=["mode", "text_config", "embedding_size"],
            text_config=config["text_config"],
            mode="shallow",
            form_vocab_size=30,
        )
        checks = [name for name in dir(config_tester) if name.startswith(("create_and_test_", "check_"))]
        assert "create_and_test_config_from_and_save_pretrained_composite" in checks
        for name in checks:
            with self.subTest(name):
                getattr(config_tester, name)()


class BertConfigurationTest(BertramConfigTests, unittest.TestCase):
    text_config_class = BertConfig


class RobertaConfigurationTest(BertramConfigTests, unittest.TestCase):
    text_config_class = RobertaConfig
