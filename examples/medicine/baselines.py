"""What else can teach a sentence-transformers model words, from the same texts and in a given time.

- New tokens as Transformers makes them (`add_tokens`, `resize_token_embeddings`), whose rows alone are trained (PEFT's
  trainable tokens): each text's beginning must find its rest among the others of a batch.
- TSDAE (Wang et al., 2021): the whole model is trained to restore texts of which words were deleted.
"""

import random
import re
import time
from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from peft import TrainableTokensConfig
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss, MultipleNegativesRankingLoss
from transformers import TrainerCallback

SETTINGS: dict[str, Any] = {
    "num_train_epochs": 1_000,  # the time ends it
    "save_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
    "logging_strategy": "no",
    "lr_scheduler_type": "constant",
    "warmup_steps": 0,
}


class StopAfter(TrainerCallback):
    """Ends a training after some processor time."""

    def __init__(self, seconds: float) -> None:
        self.end = time.process_time() + seconds

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop = time.process_time() > self.end


def train_tokens(
    name: str, words: Sequence[str], pairs: Sequence[tuple[str, str]], *, seconds: float, seed: int = 0
) -> SentenceTransformer:
    """Returns a model with words as new tokens, which begin as the mean of the vocabulary and are trained."""
    model = SentenceTransformer(name, device="cpu")
    transformer = model[0]
    transformer.tokenizer.add_tokens(list(words))
    ids = transformer.tokenizer.convert_tokens_to_ids(list(words))
    transformer.model.resize_token_embeddings(len(transformer.tokenizer))
    model.add_adapter(TrainableTokensConfig(token_indices=ids, init_weights=True))
    texts = Dataset.from_dict({"anchor": [first for first, _ in pairs], "positive": [rest for _, rest in pairs]})
    arguments = SentenceTransformerTrainingArguments(
        "trained-tokens", seed=seed, learning_rate=1e-3, per_device_train_batch_size=64, **SETTINGS
    )
    loss = MultipleNegativesRankingLoss(model)
    _train(model, arguments, texts, loss, seconds)
    return model


def train_tsdae(name: str, texts: Sequence[str], *, seconds: float, seed: int = 0) -> SentenceTransformer:
    """Returns a model that was trained to restore texts, with the settings of the paper."""
    model = SentenceTransformer(name, device="cpu")
    draw = random.Random(seed)

    def delete_words(batch: dict[str, list[str]]) -> dict[str, list[str]]:
        split = [re.findall(r"\S+", text) for text in batch["text"]]
        kept = [[word for word in words if draw.random() < 0.4] or words[:1] for words in split]
        return {"noisy": [" ".join(words) for words in kept], "text": batch["text"]}

    damaged = Dataset.from_dict({"text": list(texts)}).with_transform(delete_words)
    arguments = SentenceTransformerTrainingArguments(
        "tsdae", seed=seed, learning_rate=3e-5, per_device_train_batch_size=8, remove_unused_columns=False, **SETTINGS
    )
    _train(model, arguments, damaged, DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True), seconds)
    return model


def _train(model: SentenceTransformer, arguments: Any, texts: Dataset, loss: Any, seconds: float) -> None:
    trainer = SentenceTransformerTrainer(model=model, args=arguments, train_dataset=texts, loss=loss)
    trainer.add_callback(StopAfter(seconds))
    trainer.train()
    model.eval()
