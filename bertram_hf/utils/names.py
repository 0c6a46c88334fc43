"""Names of files that several packages read, and choices and defaults that `--help` shows without loading them."""

from typing import Literal, get_args

CONFIG_NAME = "config.json"
PROCESSOR_NAME = "processor_config.json"
MASKED_LM_NAME = "masked_lm.json"  # what the training of a masked-LM head says of itself
TRAINING_NAME = "training.json"  # what a training run says of itself; each of its keys may be missing

Mode = Literal["replace", "slash", "auto"]  # of injection
MODES: tuple[Mode, ...] = get_args(Mode)
Precision = Literal["auto", "float32", "bfloat16"]  # of an encoder; "auto" is bfloat16 where a device is fast at it
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
DEFAULT_ITERATIONS = {"lbfgs": 48, "adam": 4000}  # of approximation, for each optimizer
WORDS_PER_PART = 256  # of induction; with 64 contexts each: a minute on a laptop
# Misspellings that installed packages bring, and where in the package.
DICTIONARIES = {
    "codespell": "codespell_lib/data/dictionary.txt",
    "nlpaug": "nlpaug/res/word/spelling/spelling_en.txt",
}
