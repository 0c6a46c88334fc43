"""Labels of words, answers and masks, put where the tokens of an encoding are.

The encodings of an injector's tokenizer know which word and which characters each token stands for, spliced ones
included, so these helpers work for them and for those of plain tokenizers.
"""

from collections.abc import Sequence

import torch
from transformers import BatchEncoding

IGNORED_LABEL = -100


def align_word_labels(
    encoding: BatchEncoding, word_labels: Sequence[int], *, batch_index: int = 0, label_all_tokens: bool = False
) -> list[int]:
    """Returns a label for each token of a text that was given as words (`is_split_into_words=True`).

    Args:
        encoding: What the tokenizer returned.
        word_labels: One label for each word.
        batch_index: Which text of the batch.
        label_all_tokens: Whether all tokens of a word get its label, or the first one only. A term of several words
            that is one vector has the label of its first word.

    Returns:
        Labels; -100 where the loss is not to look.

    Raises:
        ValueError: If there are fewer labels than words.

    Example:
        >>> injector = BertramEmbeddingInjector(classifier, tokenizer, vectors, mode="replace")
        >>> encoding = injector.tokenizer(["a", "kumquat"], is_split_into_words=True)
        >>> align_word_labels(encoding, [0, 5])
        [-100, 0, 5, -100]
    """
    labels: list[int] = []
    previous = None
    for word in encoding.word_ids(batch_index):
        if word is not None and word >= len(word_labels):
            raise ValueError(f"The text has more than {len(word_labels)} words, but only so many labels were given.")
        if word is None or (word == previous and not label_all_tokens):
            labels.append(IGNORED_LABEL)
        else:
            labels.append(word_labels[word])
        previous = word
    return labels


def find_answer_tokens(
    encoding: BatchEncoding, answer_start: int, answer_end: int, *, batch_index: int = 0, sequence_index: int = 1
) -> tuple[int, int]:
    """Returns the first and last token of an answer, for `start_positions` and `end_positions`.

    Args:
        encoding: What the tokenizer returned for question and context.
        answer_start: Index of the answer's first character in the context.
        answer_end: Index behind its last character.
        batch_index: Which row of the batch; with overflow, each window is a row.
        sequence_index: Which text holds the answer: 1, the context, by default.

    Returns:
        Two token indices, or (0, 0), the CLS token, if the answer is not wholly inside this window.

    Raises:
        ValueError: If the answer is empty.

    Example:
        >>> question, context = "what is sour ?", "the kumquat is sour"
        >>> encoding = injector.tokenizer(question, context)
        >>> start, end = find_answer_tokens(encoding, context.index("kumquat"), context.index(" is"))
        >>> encoding.tokens()[start : end + 1]
        ['ku', '##m', '##qua', '##t', '/', 'kumquat']
    """
    if answer_start >= answer_end:
        raise ValueError(f"An answer has at least one character; got {answer_start} to {answer_end}.")
    backend = encoding.encodings[batch_index]
    inside = [i for i, sequence in enumerate(backend.sequence_ids) if sequence == sequence_index]
    spans = [backend.offsets[i] for i in inside]
    if not inside or spans[0][0] > answer_start or max(end for _, end in spans) < answer_end:
        return 0, 0
    touched = [i for i, (start, end) in zip(inside, spans, strict=True) if start < answer_end and end > answer_start]
    return (touched[0], touched[-1]) if touched else (0, 0)


def ignore_injected_labels(labels: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Returns masked-language-model labels in which injected words, whose ids the head does not know, are ignored.

    Injected models do this by themselves; use it for a loss of your own.

    Example:
        >>> ignore_injected_labels(torch.tensor([7, 30522, -100]), vocab_size=30522)
        tensor([   7, -100, -100])
    """
    return labels.masked_fill(labels >= vocab_size, IGNORED_LABEL)
