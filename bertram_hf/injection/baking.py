"""Baking: an injected model as an ordinary checkpoint that needs no bertram_hf."""

import copy
from collections.abc import Mapping
from typing import Literal

import torch
from tokenizers import AddedToken
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..induction.word_vectors import WordVectors
from ..processing_context import is_uncased
from ..processing_words import has_unspaced, normalize_text

# Added to the logit of a new token, so that it is never predicted; finite, and inside half precision.
NEVER = -3e4
TokenStyle = Literal["word", "released"]


def bake(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    vectors: WordVectors | Mapping[str, torch.Tensor],
    *,
    token_style: TokenStyle = "word",
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Returns copies of a model and its tokenizer in which words are tokens of the vocabulary.

    They are ordinary ones that need no bertram_hf, and give the outputs of an injector in mode replace. The new tokens
    are never predicted.

    Args:
        model: Any encoder model with any head, without an injector; `injector.bake` bakes that of an injector.
        tokenizer: Its tokenizer.
        vectors: The words and their vectors.
        token_style: `"word"`: words in raw text become tokens. `"released"`: the text must say `<BERTRAM:word>`, as
            with the released code, which also allows slash by hand: "kumquat / <BERTRAM:kumquat>".

    Raises:
        ValueError: If a word is a token already, or another word to the tokenizer, which drops accents.

    Example:
        >>> classifier, tokenizer = bake(classifier, tokenizer, vectors)
        >>> tokenizer.tokenize("a kumquat")
        ['a', 'kumquat']
    """
    pack = vectors if isinstance(vectors, WordVectors) else WordVectors.from_dict(vectors)
    if token_style == "word":
        _check_accents(pack.words, tokenizer)
    model, tokenizer = copy.deepcopy(model), copy.deepcopy(tokenizer)
    # A byte-level token takes the space before it along, which `lstrip` does for an added one.
    is_byte_level = any(token.startswith("Ġ") for token in tokenizer.tokenize(" a"))
    ignore_case = is_uncased(tokenizer)
    tokens = [_added_token(word, is_byte_level, ignore_case, token_style) for word in pack.words]
    known_ids = set(tokenizer.get_vocab().values())
    tokenizer.add_tokens(tokens)
    ids = tokenizer.convert_tokens_to_ids([token.content for token in tokens])
    taken = [word for word, token_id in zip(pack.words, ids, strict=True) if token_id in known_ids]
    if taken:
        raise ValueError(
            f"{len(taken)} words cannot become new tokens, because they are tokens already or the tokenizer's ids have "
            f"gaps: {', '.join(map(repr, taken[:5]))}."
        )
    with torch.no_grad():
        _resize(model, len(tokenizer))
        weight = model.get_input_embeddings().weight
        weight[ids] = pack.embeddings.to(weight)
        _never_predict(model, ids)
    return model, tokenizer


def _check_accents(words: list[str], tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises a ValueError for words that would catch others, as "rosé" would "rose" in an uncased tokenizer."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    if normalizer is None:
        return
    # Without spaces, which some normalizers add or write as SentencePiece does.
    changed = {word: "".join(normalizer.normalize_str(word).replace("▁", " ").split()) for word in words}
    lost = {
        word: seen
        for word, seen in changed.items()
        if normalize_text(seen).lower() != normalize_text("".join(word.split())).lower()
    }
    if lost:
        listed = ", ".join(f"{word!r} is {seen!r}" for word, seen in list(lost.items())[:5])
        raise ValueError(
            f"{len(lost)} words are other words to the tokenizer, which would become the same token: {listed}. Leave "
            "them out to bake; the injector can tell them apart."
        )


def _added_token(word: str, is_byte_level: bool, ignore_case: bool, style: TokenStyle) -> AddedToken:
    if style == "released":
        return AddedToken(f"<BERTRAM:{word}>", lstrip=is_byte_level, normalized=False)
    is_spaced = not (has_unspaced(word[0]) and has_unspaced(word[-1]))
    return AddedToken(word, single_word=is_spaced, lstrip=is_byte_level, normalized=ignore_case)


def _resize(model: PreTrainedModel, size: int) -> None:
    """Makes room for new tokens, without a random start that would be overwritten anyway."""
    if size > model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(size, mean_resizing=False)


def _never_predict(model: PreTrainedModel, ids: list[int]) -> None:
    """Gives new tokens a logit that never wins, if the model has an output layer over the vocabulary."""
    output = model.get_output_embeddings()
    if output is None:
        return
    if getattr(output, "bias", None) is None:
        raise ValueError(f"{type(model).__name__} has an output layer without bias: new tokens cannot be ruled out.")
    output.bias[ids] = NEVER
