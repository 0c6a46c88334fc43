"""Cloze questions: which words a masked language model puts into the gap of a text."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..induction.batching import CPU_TOKENS_PER_BATCH, GPU_TOKENS_PER_BATCH, length_sorted_batches
from ..processing_context import end_ids
from ..processing_words import replace_surrogates
from ..utils.models import in_eval_mode, longest_input
from ..utils.progress import progress_bar
from ..words.pieces import PieceReader

SENTENCE_ENDS = (".", "?", "!")
MAX_LOGITS = 1 << 28  # a batch has logits for each token, not only for the gaps: 1 GB in float32


@torch.inference_mode()
def predict_clozes(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    num_predictions: int = 100,
    max_tokens_per_batch: int | None = None,
    show_progress: bool = True,
) -> list[list[str]]:
    """Returns the words that a model finds most likely for the gap of each text, best first.

    A text without a full stop gets one, as in the released evaluation of WNLaMPro. All texts are encoded together, in
    batches sorted by length. A prediction is one token in lower case, without the mark of a word's beginning ("Ġdog" is
    "dog"); a piece that continues a word keeps its mark ("##s"). So a word may stand twice, as "Dog" and "dog" do.

    Args:
        model: A masked language model, or a [`BertramEmbeddingInjector`] around one; its mode is restored.
        tokenizer: Its tokenizer; an injector's is `injector.tokenizer`.
        texts: Texts with the mask token once in each.
        num_predictions: How many words to return for each text.
        max_tokens_per_batch: Limit of padded tokens; by default what suits the device.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Raises:
        ValueError: If the model has no head over the vocabulary, or a text does not have one gap or is too long.

    Example:
        >>> [words] = predict_clozes(masked_lm, tokenizer, ["a kumquat is a [MASK]"], num_predictions=2)
        >>> len(words)
        2
    """
    if num_predictions < 1:
        raise ValueError(f"num_predictions must be at least 1; got {num_predictions}.")
    reader = PieceReader(tokenizer)
    input_ids = encode_clozes(model, tokenizer, texts, reader)
    if max_tokens_per_batch is None:
        max_tokens_per_batch = CPU_TOKENS_PER_BATCH if model.device.type == "cpu" else GPU_TOKENS_PER_BATCH
        max_tokens_per_batch = min(max_tokens_per_batch, MAX_LOGITS // len(tokenizer))
    words = {token_id: read_prediction(reader, token_id) for token_id in reader.tokens}
    predictions: list[list[str]] = [[] for _ in texts]
    progress = progress_bar(total=len(texts), desc="Filling gaps", unit="text", show_progress=show_progress)
    with progress, in_eval_mode(model):
        for batch in length_sorted_batches([len(ids) for ids in input_ids], max_tokens_per_batch):
            rows = {"input_ids": [input_ids[index] for index in batch]}
            # To the right: BERT counts positions from the left edge, padding included.
            inputs = tokenizer.pad(rows, padding_side="right", return_tensors="pt").to(model.device)
            logits = _compute_logits(model, inputs)
            top = logits[inputs["input_ids"] == tokenizer.mask_token_id].topk(min(num_predictions, logits.shape[-1]))
            for index, token_ids in zip(batch, top.indices.tolist(), strict=True):
                # A vocabulary may have ids that no token has.
                predictions[index] = [words.get(token_id, "") for token_id in token_ids]
            progress.update(len(batch))
    return predictions


def encode_clozes(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], reader: PieceReader
) -> list[list[int]]:
    """Returns the token ids of cloze texts, with one mask token in each and no longer than the model can read.

    Raises:
        ValueError: If that is not so.
    """
    if tokenizer.mask_token is None:
        raise ValueError(f"{type(tokenizer).__name__} has no mask token; a cloze needs one. Set mask_token.")
    sentences = [_end_sentence(replace_surrogates(text)) for text in texts]
    if not sentences:
        return []
    is_byte_level = reader.marker == "Ġ"
    input_ids = (
        _tokenize_sides(tokenizer, sentences) if is_byte_level else tokenizer(sentences, verbose=False)["input_ids"]
    )
    max_length = longest_input(model)
    for text, ids in zip(texts, input_ids, strict=True):
        if (num_masks := ids.count(tokenizer.mask_token_id)) != 1:
            raise ValueError(
                f"Expected {tokenizer.mask_token} once in each text; found it {num_masks} times in {text!r:.200}."
            )
        if max_length is not None and len(ids) > max_length:
            raise ValueError(
                f"Expected at most {max_length} tokens, which the model can read; got {len(ids)} in {text!r:.200}. "
                "Leave it out."
            )
    return input_ids


def _tokenize_sides(tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]) -> list[list[int]]:
    """Tokenises what stands on each side of a mask alone, with a space before it, as the released code for RoBERTa.

    Byte-level BPE tells a word after a space from the same word without.
    """
    first, last = end_ids(tokenizer)
    sides = [[side.strip() for side in sentence.split(tokenizer.mask_token)] for sentence in sentences]
    texts = [f" {side}" if side else "" for row in sides for side in row]
    pieces = iter(tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"])
    input_ids = []
    for row in sides:
        ids = [first, *next(pieces)]
        for _ in row[1:]:
            ids += [tokenizer.mask_token_id, *next(pieces)]
        input_ids.append([*ids, last])
    return input_ids


def read_prediction(reader: PieceReader, token_id: int) -> str:
    """Returns a token as the released evaluation compares it with targets, which are in lower case.

    It lower-cases RoBERTa's predictions only; here a cased BERT's are, too. From a byte-level token just the mark is
    taken, so that a token that continues a word counts as the word, as there.
    """
    token = reader.tokens[token_id]
    return (token if reader.marker == "##" else token.replace(reader.marker, "")).lower()


def _end_sentence(text: str) -> str:
    return text if text.endswith(SENTENCE_ENDS) else f"{text}."


def _compute_logits(model: PreTrainedModel, inputs: Any) -> torch.Tensor:
    logits = getattr(model(**inputs), "logits", None)
    if logits is None or logits.ndim != 3 or logits.shape[:2] != inputs["input_ids"].shape:
        raise ValueError(
            f"Expected a masked language model, with logits for each token; {type(model).__name__} gives none. Load it "
            "with AutoModelForMaskedLM, or give the encoder a head with train_masked_lm_head."
        )
    return logits
