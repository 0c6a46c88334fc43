import shutil

import pytest
import torch
from support.tiny_models import FAMILIES, ORIGINAL
from transformers import AutoConfig, AutoModel, BertTokenizer, RobertaTokenizer

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def original_folder():
    return ORIGINAL


@pytest.fixture(scope="session")
def bert_tokenizer():
    return BertTokenizer.from_pretrained(ORIGINAL / "tiny-bert")


@pytest.fixture(scope="session")
def roberta_tokenizer():
    return RobertaTokenizer.from_pretrained(ORIGINAL / "tiny-roberta")


@pytest.fixture
def make_encoder():
    """Returns a function that builds a tiny encoder of a family, with the same random weights each time."""

    def make(family="bert", vocab_size=641, **fields):
        torch.manual_seed(0)
        config = AutoConfig.for_model(family, **FAMILIES[family] | {"vocab_size": vocab_size} | fields)
        encoder = AutoModel.from_config(config).eval()
        # Fresh weights are so small that all tokens look alike; make the encoder say something.
        with torch.no_grad():
            for parameter in encoder.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        return encoder

    return make


@pytest.fixture
def make_pair(make_encoder, bert_tokenizer, roberta_tokenizer):
    """Returns a function that builds a tiny model with random weights in all parts, and its processor."""
    from bertram_hf import BertramModel, BertramProcessor

    form_words = ["kumquat", "kumquats", "quat", "aquatic", "quack", "umquat", "kumquatlike", "qualm"]

    def make(mode="add", family="bert", match="word", max_length=24, **fields):
        byte_level = family in ("roberta", "xlm-roberta", "camembert", "mpnet")
        processor = BertramProcessor.from_encoder(
            roberta_tokenizer if byte_level else bert_tokenizer,
            mode=mode,
            form_words=form_words,
            form_encoder=fields.get("form_encoder", "ngram"),
            match=match,
            max_length=max_length,
        )
        num_units = 2 if processor.form is None else len(processor.form)
        model = BertramModel.from_encoder(make_encoder(family), mode=mode, form_vocab_size=num_units, **fields)
        torch.manual_seed(1)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if not name.startswith("encoder."):
                    parameter.normal_(std=0.3)
        return model, processor

    return make


@pytest.fixture
def gapless_tokenizer():
    """The tiny BERT tokenizer with each token once; its file has one twice, so that an id is missing."""
    tokens = dict.fromkeys((ORIGINAL / "tiny-bert" / "vocab.txt").read_text(encoding="utf-8").splitlines())
    return BertTokenizer(vocab={token: i for i, token in enumerate(tokens)}, do_lower_case=True)


@pytest.fixture(scope="session")
def browser():
    """Chromium; tests in it are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        pytest.skip("needs Chromium: apt-get install chromium (or put chromium or google-chrome on the PATH)")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
