"""Baking: an injected model as an ordinary checkpoint that needs no bertram_hf."""

import copy
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import torch
from tokenizers import AddedToken, Regex
from tokenizers.normalizers import Normalizer, Replace
from tokenizers.normalizers import Sequence as Normalizers
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TokenizersBackend

from ..induction.word_vectors import WordVectors
from ..processing_context import is_uncased
from ..processing_words import WordBoundaries, has_unspaced, normalize_text
from ..utils.names import Mode
from .policy import divide_by_mode

logger = logging.getLogger(__name__)
# Added to the logit of a new token, so that it is never predicted; finite, and inside half precision.
NEVER = -3e4
TokenStyle = Literal["word", "released"]
# Around the names of tokens that stand beside words: of what no text has.
OPEN, CLOSE = "⟦", "⟧"
SLASH = f"{OPEN}/{CLOSE}"
GUARD = "\u2060"  # before a word inside a term, which keeps the rule of that word away; it is taken out again
MANY_RULES = 1_000  # from here on the tokenizer becomes slow


def bake(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    vectors: WordVectors | Mapping[str, torch.Tensor],
    *,
    mode: Mode = "auto",
    token_style: TokenStyle = "word",
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Returns copies of a model and its tokenizer that know words by themselves.

    They are ordinary ones that need no bertram_hf, and give the outputs of an injector of the same mode. Vectors are
    rows of the embeddings, and never predicted. A word that is replaced by its vector is a token; for one that keeps
    its pieces, the tokenizer's normalizer has a rule that writes slash and vector behind it. Rules cost time: see
    "Deploy" in the documentation. Character offsets inside such a word are not exact.

    Args:
        model: Any encoder model with any head, without an injector; `injector.bake` bakes that of an injector.
        tokenizer: Its tokenizer.
        vectors: The words and their vectors.
        mode: How they are injected; see [`BertramEmbeddingInjector`].
        token_style: `"word"`: words in raw text get their vectors. `"released"`: the text must say `<BERTRAM:word>`, as
            with the released code, which also allows slash by hand: "kumquat / <BERTRAM:kumquat>".

    Raises:
        ValueError: If a word is a token already, or another word to the tokenizer, which drops accents.

    Example:
        >>> classifier, tokenizer = bake(classifier, tokenizer, vectors, mode="replace")
        >>> tokenizer.tokenize("a kumquat")
        ['a', 'kumquat']
    """
    pack = vectors if isinstance(vectors, WordVectors) else WordVectors.from_dict(vectors)
    beside, left = divide_by_mode(pack, mode)
    return bake_words(
        model, tokenizer, pack.select([word for word in pack if word not in left]), beside, token_style=token_style
    )


def bake_words(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    pack: WordVectors,
    beside: Collection[str],
    *,
    token_style: TokenStyle,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Does what `bake` does for all words of a pack, of which some keep their pieces beside the vector."""
    if token_style == "word":
        _check_accents(pack.words, tokenizer)
    else:
        beside = ()
    model, tokenizer = copy.deepcopy(model), copy.deepcopy(tokenizer)
    # A byte-level token takes the space before it along, which `lstrip` does for an added one.
    is_byte_level = any(token.startswith("Ġ") for token in tokenizer.tokenize(" a"))
    slash_id = tokenizer(" /", add_special_tokens=False)["input_ids"][-1]  # as it stands in "kumquat / vector"
    ignore_case = is_uncased(tokenizer)
    names = _name_tokens([word for word in pack.words if word in beside])
    tokens = [
        AddedToken(names[word], normalized=True)
        if word in names
        else _added_token(word, is_byte_level, ignore_case, token_style)
        for word in pack.words
    ]
    if names:
        tokenizer = _with_rules(tokenizer, names)
        tokens.append(AddedToken(SLASH, normalized=True))
    known_ids = set(tokenizer.get_vocab().values())
    tokenizer.add_tokens(tokens)
    ids = tokenizer.convert_tokens_to_ids([token.content for token in tokens])
    taken = [token.content for token, token_id in zip(tokens, ids, strict=True) if token_id in known_ids]
    if taken:
        raise ValueError(
            f"{len(taken)} words cannot become new tokens, because they are tokens already or the tokenizer's ids have "
            f"gaps: {', '.join(map(repr, taken[:5]))}."
        )
    with torch.no_grad():
        _resize(model, len(tokenizer))
        weight = model.get_input_embeddings().weight
        rows = pack.embeddings.to(weight)
        weight[ids] = torch.cat([rows, weight[slash_id][None]]) if names else rows
        _never_predict(model, ids)
    return model, tokenizer


def _name_tokens(words: Sequence[str]) -> dict[str, str]:
    """Returns the names of the tokens that stand beside words, in which no rule finds a word."""
    names: dict[str, str] = {}  # by name
    for word in words:
        name = re.sub(r"\W", "_", word.lower())
        while name in names:
            name += "_"
        names[name] = word
    return {word: f"{OPEN}{name}{CLOSE}" for name, word in names.items()}


def _with_rules(tokenizer: PreTrainedTokenizerBase, names: Mapping[str, str]) -> TokenizersBackend:
    """Returns a tokenizer that writes a slash and the name of a token behind each of some words.

    It is of the class that reads all of tokenizer.json; a `BertTokenizer` would build its normalizer anew.
    """
    if len(names) > MANY_RULES:
        logger.warning(
            f"{len(names):,} words keep their pieces beside their vectors: so many rules make the tokenizer slow "
            "(docs/deploy.md has the times). Bake fewer words, inject them with mode='replace', or keep the injector."
        )
    rust = tokenizer.backend_tokenizer
    own = rust.normalizer
    # Longer terms first: a word inside is guarded then.
    rules = [_rule(word, names[word], own) for word in sorted(names, key=lambda word: (-len(word), word))]
    rust.normalizer = Normalizers([*([own] if own else []), *rules, Replace(GUARD, "")])
    special = {token.content: token for token in tokenizer.added_tokens_decoder.values()}
    return TokenizersBackend(
        tokenizer_object=rust,
        model_max_length=tokenizer.model_max_length,
        padding_side=tokenizer.padding_side,
        truncation_side=tokenizer.truncation_side,
        model_input_names=tokenizer.model_input_names,
        **{name: special.get(token, token) for name, token in tokenizer.special_tokens_map.items()},
    )


def _rule(word: str, name: str, normalizer: Normalizer | None) -> Replace:
    """Returns the rule that writes slash and vector behind a word, where it stands alone in normalised text."""
    parts = (normalizer.normalize_str(word) if normalizer else word).replace("▁", " ").split()
    spelled = " ".join(parts)
    ends = WordBoundaries(spelled)
    before = f"(?<![\\w{OPEN}{GUARD}])" if ends.starts_inside else f"(?<![{OPEN}{GUARD}])"
    after = f"(?![\\w{CLOSE}])" if ends.ends_inside and not ends.ends_unspaced else f"(?!{CLOSE})"
    if len(parts) > 1:
        spelled = re.sub(r"\w+", lambda match: f"{GUARD}{match.group()}", spelled)
    pattern = r"[\s▁]+".join(map(re.escape, parts))
    return Replace(Regex(f"{before}{pattern}{after}"), f"{spelled}{SLASH}{name}")


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
