"""Transformers' own model tests, run on BERTRAM over BERT and RoBERTa."""

import copy
import tempfile
import unittest
from typing import Any

import torch
from parameterized import parameterized
from tiny_bertram import BertramModelTester
from transformers import BertConfig, PreTrainedConfig, RobertaConfig
from transformers.testing_utils import torch_device
from transformers_suite.test_modeling_common import (
    TEST_EAGER_MATCHES_SDPA_INFERENCE_PARAMETERIZATION,
    ModelTesterMixin,
    sdpa_kernel,
)

from bertram_hf import BertramModel

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
TOLERANCES = {"fp32": 1e-6, "fp16": 5e-3, "bf16": 1e-2}


class BertramModelTests(ModelTesterMixin):
    all_model_classes = (BertramModel,)
    additional_model_inputs = ("mask_positions", "num_contexts", "form_ids", "num_pieces")
    test_can_init_all_missing_weights_before_2023 = True
    _is_composite = True
    text_config_class: type[PreTrainedConfig]
    config_fields: dict[str, str]

    def setUp(self) -> None:
        self.model_tester = BertramModelTester(self.text_config_class, **self.config_fields)

    def _prepare_for_class(
        self, inputs_dict: dict[str, Any], model_class: type[BertramModel], return_labels: bool = False
    ) -> dict[str, Any]:
        inputs = copy.deepcopy(inputs_dict)
        if return_labels:
            inputs["labels"] = torch.ones(self.model_tester.batch_size, self.model_tester.hidden_size)
        return inputs

    # The suite's version of the next two reads hidden states and attentions, which BERTRAM does not return.
    def test_model_outputs_equivalence(self) -> None:
        config, inputs_dict = self.model_tester.prepare_config_and_inputs_for_common()
        model = BertramModel(config).to(torch_device).eval()
        for return_labels in (False, True):
            inputs = self._prepare_for_class(inputs_dict, BertramModel, return_labels)
            with torch.no_grad():
                outputs, values = model(**inputs), model(**inputs, return_dict=False)
            torch.testing.assert_close(values, outputs.to_tuple())
            # Whoever knows other Transformers models reads outputs[0]: the loss or, without labels, the main output.
            assert next(iter(outputs)) == ("loss" if return_labels else "word_embeddings")

    @parameterized.expand(TEST_EAGER_MATCHES_SDPA_INFERENCE_PARAMETERIZATION)
    def test_eager_matches_sdpa_inference(
        self,
        name: str,
        dtype: str,
        padding_side: str,
        use_attention_mask: bool,
        output_attentions: bool,
        enable_kernels: bool,
    ) -> None:
        if output_attentions:
            self.skipTest("BERTRAM does not return attentions.")
        if padding_side == "left":
            self.skipTest("BERTRAM takes padding on the right only.")
        config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
        if not use_attention_mask:
            del inputs["attention_mask"]
        with tempfile.TemporaryDirectory() as folder:
            BertramModel(config).save_pretrained(folder)
            eager, sdpa = (
                BertramModel.from_pretrained(folder, dtype=DTYPES[dtype], attn_implementation=implementation)
                for implementation in ("eager", "sdpa")
            )
        assert eager.encoder.config._attn_implementation == "eager"
        assert sdpa.encoder.config._attn_implementation == "sdpa"
        with torch.no_grad(), sdpa_kernel(enable_kernels, True, enable_kernels):
            expected = eager(**inputs).word_embeddings
            actual = sdpa(**inputs).word_embeddings
        assert actual.dtype == DTYPES[dtype]
        torch.testing.assert_close(actual, expected, atol=TOLERANCES[dtype], rtol=TOLERANCES[dtype])

    # The suite's tests of offloading, compiling and exporting need a GPU or are not in the source archive.
    def test_parts_on_disk_run_and_save_as_parts_in_memory(self) -> None:
        config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
        model = BertramModel(config).eval()
        parts = [name for name, _ in model.named_children()]
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            model.save_pretrained(folder)
            expected = model(**inputs).word_embeddings
            for part in parts:
                with self.subTest(part):
                    device_map = {name: "disk" if name == part else "cpu" for name in parts}
                    offloaded = BertramModel.from_pretrained(folder, device_map=device_map, offload_folder=folder)
                    torch.testing.assert_close(offloaded(**inputs).word_embeddings, expected)
                    offloaded.save_pretrained(f"{folder}/{part}")
                    reloaded = BertramModel.from_pretrained(f"{folder}/{part}")
                    torch.testing.assert_close(reloaded(**inputs).word_embeddings, expected)

    def test_device_map_auto_keeps_the_output(self) -> None:
        config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
        model = BertramModel(config).to(torch_device).eval()
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            model.save_pretrained(folder)
            mapped = BertramModel.from_pretrained(folder, device_map="auto")
            torch.testing.assert_close(mapped(**inputs).word_embeddings, model(**inputs).word_embeddings)

    def test_compiles_in_one_graph(self) -> None:
        config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
        model = BertramModel(config).eval()
        torch.compiler.reset()
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        with torch.no_grad():
            torch.testing.assert_close(compiled(**inputs).word_embeddings, model(**inputs).word_embeddings)

    def test_can_be_exported(self) -> None:
        config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
        model = BertramModel(config).eval()
        exported = torch.export.export(model, (), inputs).module()
        with torch.no_grad():
            torch.testing.assert_close(exported(**inputs).word_embeddings, model(**inputs).word_embeddings)

    @unittest.skip("BERTRAM does not return attentions.")
    def test_attention_outputs(self) -> None:
        pass

    @unittest.skip("BERTRAM does not return hidden states.")
    def test_hidden_states_output(self) -> None:
        pass

    @unittest.skip("BERTRAM returns neither hidden states nor attentions.")
    def test_retain_grad_hidden_states_attentions(self) -> None:
        pass

    @unittest.skip("BERTRAM does not return hidden states.")
    def test_can_capture_specific_layers_hidden_states(self) -> None:
        pass

    @unittest.skip("BERTRAM returns neither hidden states nor attentions.")
    def test_capture_outputs_decorator(self) -> None:
        pass


class BertAddTest(BertramModelTests, unittest.TestCase):
    text_config_class = BertConfig
    config_fields = {"mode": "add"}


class BertShallowTest(BertramModelTests, unittest.TestCase):
    text_config_class = BertConfig
    config_fields = {"mode": "shallow", "form_encoder": "cnn"}

    @unittest.skip("The character CNN has the 1,100 filters of Kim et al. (2016) at any hidden size.")
    def test_model_is_small(self) -> None:
        pass


class BertContextTest(BertramModelTests, unittest.TestCase):
    text_config_class = BertConfig
    config_fields = {"mode": "context"}


class BertPiecesTest(BertramModelTests, unittest.TestCase):
    text_config_class = BertConfig
    config_fields = {"mode": "pieces", "context_weighting": "scored"}


class RobertaAddTest(BertramModelTests, unittest.TestCase):
    text_config_class = RobertaConfig
    config_fields = {"mode": "add", "form_encoder": "lstm"}

    @unittest.skip("torch does not trace the packed sequences of the character LSTM.")
    def test_compiles_in_one_graph(self) -> None:
        pass

    @unittest.skip("torch does not trace the packed sequences of the character LSTM.")
    def test_can_be_exported(self) -> None:
        pass
