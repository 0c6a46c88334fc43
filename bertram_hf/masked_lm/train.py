"""A masked-LM head for an encoder that has none, such as a sentence encoder.

The input embeddings stay as they are, bit by bit, so that vectors induced for the encoder can be injected into the
masked language model; the layers above them and the head are trained.
"""

import logging
import math
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import nn
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase, Trainer, TrainingArguments, set_seed

from ..modeling_slim import embedding_fingerprint
from ..utils.environment import installed_versions
from ..utils.files import read_json, write_json
from ..utils.models import in_eval_mode
from ..utils.names import MASKED_LM_NAME
from ..utils.paths import hide_paths
from ..utils.trainer import last_whole_checkpoint, only_item
from ..words.families import word_family
from ..words.pieces import CONTINUES_WORD, PieceReader
from .batches import MaskedBatches, mask_heldout
from .head import MaskedTokenModel, add_masked_lm_head
from .text import prepare_text

logger = logging.getLogger(__name__)
CHECKPOINTS = "checkpoints"
SETTINGS_NAME = "settings.json"


@dataclass(frozen=True)
class MaskedLMScore:
    """How well masked tokens of held-out text are predicted."""

    perplexity: float
    accuracy: float
    num_tokens: int


@dataclass(frozen=True)
class MaskedLMRecord:
    """What `masked_lm.json` says of a trained head.

    Attributes:
        settings: The arguments of the run.
        before: Score with the head as it starts: decoder = input embeddings, bias = log unigram frequency.
        after: Score of the trained model.
        embedding_fingerprint: Names the input embeddings, which are the encoder's.
        text: How many texts, blocks and tokens there were.
        steps: Steps of training.
        seconds: Seconds of training, since the last checkpoint.
        command: The command that trained it, if known.
        versions: Of the packages that did.
    """

    settings: dict[str, Any]
    before: MaskedLMScore
    after: MaskedLMScore
    embedding_fingerprint: str
    text: dict[str, int]
    steps: int
    seconds: float
    command: str | None = None
    versions: dict[str, str] = field(default_factory=dict)


def train_masked_lm_head(
    encoder_name_or_path: str | os.PathLike[str],
    texts: Dataset | Iterable[str],
    output: str | os.PathLike[str],
    *,
    max_steps: int = 1000,
    batch_size: int = 32,
    learning_rate: float = 5e-4,
    warmup_steps: float = 0.1,
    max_length: int = 64,
    mask_probability: float = 0.15,
    num_heldout: int = 1000,
    heldout_words: Sequence[str] = (),
    save_steps: int = 200,
    text_column: str = "text",
    seed: int = 0,
    device: str | None = None,
    command: str | None = None,
    show_progress: bool = True,
) -> MaskedLMRecord:
    """Trains a masked-LM head for an encoder without one, and writes model, tokenizer and `masked_lm.json`.

    The same call after a kill goes on at the last checkpoint, with the same result; the same call after the end returns
    the record.

    Args:
        encoder_name_or_path: Folder or Hub name of an encoder of the BERT or RoBERTa families, or one whose head is
            built like theirs.
        texts: Texts; long ones are cut into blocks. A `datasets.Dataset` may be larger than memory.
        output: Folder to write.
        max_steps: Steps of training.
        batch_size: Blocks in each step.
        learning_rate: The highest; it rises linearly, then falls to zero.
        warmup_steps: Number of steps, or below 1 share of them, in which it rises.
        max_length: Tokens of a block, special tokens included.
        mask_probability: How likely a token is masked.
        num_heldout: How many texts, drawn at random, are kept for the scores; at most a tenth of all.
        heldout_words: Words of one token that are read but never masked, with all of their families: those on which a
            BERTRAM that is built on the model will be tested.
        save_steps: Steps between checkpoints.
        text_column: The column of a dataset.
        seed: Seed of the held-out texts, batches, masks and dropout.
        device: `"cpu"` to train there although there is a GPU.
        command: The command that does this, for the record.
        show_progress: Whether progress bars are shown.

    Returns:
        What `masked_lm.json` holds.

    Raises:
        ValueError: If the encoder has a head already or one of another kind, there is too little text, or `output`
            holds a run with other settings.

    Example:
        >>> record = train_masked_lm_head("my-encoder", open("news.txt"), "my-masked-lm")  # doctest: +SKIP
        >>> record.before.perplexity, record.after.perplexity  # doctest: +SKIP
        (1619.0, 93.0)
        >>> model = AutoModelForMaskedLM.from_pretrained("my-masked-lm")  # doctest: +SKIP
    """
    output = Path(output)
    set_seed(seed)  # before the head is made
    tokenizer = AutoTokenizer.from_pretrained(encoder_name_or_path)
    text = prepare_text(
        texts,
        tokenizer,
        max_length=max_length,
        num_heldout=num_heldout,
        text_column=text_column,
        never_masked=find_family_tokens(tokenizer, heldout_words),
        seed=seed,
    )
    settings = {
        "encoder": hide_paths(str(encoder_name_or_path)),
        "text": text.fingerprint,
        "max_steps": max_steps,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "warmup_steps": warmup_steps,
        "max_length": max_length,
        "mask_probability": mask_probability,
        "num_heldout": num_heldout,
        "seed": seed,
    }
    if heldout_words:
        settings["heldout_words"] = sorted(heldout_words)
    finished = _check_output(output, settings)
    if finished is not None:
        logger.info("%s is finished; it is not trained again.", output)
        return finished
    model = add_masked_lm_head(encoder_name_or_path, text.token_counts)
    arguments = TrainingArguments(
        output_dir=str(output / CHECKPOINTS),
        max_steps=max_steps,
        per_device_train_batch_size=1,  # an item is a batch
        train_sampling_strategy="sequential",  # which is drawn at random already
        remove_unused_columns=False,
        learning_rate=learning_rate,
        warmup_steps=warmup_steps,
        weight_decay=0.01,
        save_steps=save_steps,
        save_total_limit=1,
        logging_steps=50,
        seed=seed,
        use_cpu=device == "cpu",
        dataloader_pin_memory=device != "cpu" and torch.cuda.is_available(),
        report_to="none",
        disable_tqdm=not show_progress,
    )
    batches = MaskedBatches(
        text.train,
        tokenizer,
        batch_size=batch_size,
        num_batches=max_steps,
        mask_probability=mask_probability,
        seed=seed,
    )
    trainer = Trainer(
        MaskedTokenModel(model),
        arguments,
        data_collator=only_item,
        train_dataset=batches,
        processing_class=tokenizer,
    )
    heldout = mask_heldout(text.heldout, tokenizer, batch_size=batch_size, mask_probability=mask_probability)
    fingerprint = embedding_fingerprint(model.get_input_embeddings().weight)
    before = score_masked_lm(model.to(arguments.device), heldout)
    logger.info("Before training: perplexity %.1f, accuracy %.3f.", before.perplexity, before.accuracy)
    start = time.perf_counter()
    trainer.train(resume_from_checkpoint=last_whole_checkpoint(output / CHECKPOINTS))
    seconds = round(time.perf_counter() - start, 1)
    record = MaskedLMRecord(
        settings=settings,
        before=before,
        after=score_masked_lm(model, heldout),
        embedding_fingerprint=fingerprint,
        text=text.numbers,
        steps=trainer.state.global_step,
        seconds=seconds,
        command=hide_paths(command),
        versions=installed_versions(),
    )
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    write_json(output / MASKED_LM_NAME, asdict(record))
    shutil.rmtree(output / CHECKPOINTS)
    return record


def find_family_tokens(tokenizer: PreTrainedTokenizerBase, words: Sequence[str]) -> set[int]:
    """Returns the tokens that are words of the families of some words, see `word_family`; where tokens are marked that
    begin a word, with and without the mark, as at the beginning of a text. Words of several pieces have none."""
    if not words:
        return set()
    families = {word_family(word) for word in words}
    reader = PieceReader(tokenizer)
    texts = {token_id: reader.read(token_id) for token_id in reader.tokens}
    if reader.marker != "##":
        texts = {token_id: text.removeprefix(CONTINUES_WORD) for token_id, text in texts.items()}
    return {token_id for token_id, text in texts.items() if text.isalpha() and word_family(text) in families}


@torch.inference_mode()
def score_masked_lm(model: PreTrainedModel, batches: Iterable[dict[str, torch.Tensor]]) -> MaskedLMScore:
    """Scores a model on masked batches; each masked token counts once. The model's mode is restored."""
    with in_eval_mode(model):
        loss, num_right, num_tokens = 0.0, 0, 0
        for batch in batches:
            inputs = {name: tensor.to(model.device) for name, tensor in batch.items() if name != "labels"}
            is_masked = batch["labels"] != -100
            labels = batch["labels"][is_masked].to(model.device)
            logits = model(**inputs).logits[is_masked.to(model.device)].float()
            loss += nn.functional.cross_entropy(logits, labels, reduction="sum").item()
            num_right += int((logits.argmax(dim=1) == labels).sum())
            num_tokens += len(labels)
    if num_tokens == 0:
        raise ValueError("Expected masked tokens in the held-out text; there are none. Give more text.")
    return MaskedLMScore(math.exp(loss / num_tokens), num_right / num_tokens, num_tokens)


def _check_output(output: Path, settings: dict[str, Any]) -> MaskedLMRecord | None:
    """Returns the record of a finished run, None for one to begin or go on; raises if `output` holds anything else."""
    begun, ended = output / CHECKPOINTS / SETTINGS_NAME, output / MASKED_LM_NAME
    if ended.is_file():
        record = read_json(ended)
        found = record["settings"]
    elif begun.is_file():
        record, found = None, read_json(begun)
    elif output.exists() and any(output.iterdir()):
        raise ValueError(
            f"Expected a new folder, or one of an earlier run; {output} holds other files. Take another folder."
        )
    else:
        begun.parent.mkdir(parents=True, exist_ok=True)
        write_json(begun, settings)
        return None
    other = sorted(name for name in settings.keys() | found.keys() if found.get(name) != settings.get(name))
    if other:
        raise ValueError(
            f"Expected the settings with which {output} was begun; these differ: {', '.join(other)}. Take another "
            "folder, or delete it."
        )
    return None if record is None else _read_record(record)


def _read_record(record: dict[str, Any]) -> MaskedLMRecord:
    return MaskedLMRecord(**record | {name: MaskedLMScore(**record[name]) for name in ("before", "after")})
