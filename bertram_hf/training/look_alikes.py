"""Learning to tell misspellings of known words from new words, from words with typing errors put into them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from torch import nn

from ..configuration_bertram import BertramConfig
from ..modeling_bertram import BertramModel
from ..modeling_look_alikes import LookAlikeMixture, compare_with
from ..processing_bertram import BertramProcessor
from ..processing_look_alikes import VOWELS
from ..words.families import word_family
from .batches import WordCollator, draw_sizes
from .recipe import LookAlikeSettings

FITTING_VERSION = 2  # of what is learnt and how, so that stages of another are not taken for those of this one
WORDS_PER_BLOCK = 128
MAX_TRIES = 20
MIN_UNKNOWN = 100  # training words of several pieces that are enough
MAX_ITERATIONS = 200
USUAL_SHARE = 0.5
PENALTY = 1e-5  # on squared steps away from the start, so that kinds which hardly occur stay unlikely


@dataclass
class Examples:
    """Words of which it is known whether one of their look-alikes is meant.

    Attributes:
        agreements: (W, K), cosines of the words' vectors and their look-alikes'.
        token_ids: (W, K).
        kinds: (W, K).
        num_contexts: (W,).
        meant: (W,), 0 for none, 1 for the first look-alike, and so on.
    """

    agreements: torch.Tensor
    token_ids: torch.Tensor
    kinds: torch.Tensor
    num_contexts: torch.Tensor
    meant: torch.Tensor


def misspell(word: str, letters: str, random: Random) -> str:
    """Puts one typing error into a word: a letter too few, too much or wrong, or two neighbours in the wrong order.

    People often write one letter in the place of two, or two in the place of one, and confuse vowels: half of such
    errors are of this kind where the word allows it.

    Example:
        >>> [misspell("kumquat", "aeiou", Random(seed)) for seed in range(4)]
        ['kumuqat', 'kumquaat', 'kuquat', 'kiumquat']
    """
    kind, is_usual = random.randrange(4), random.random() < USUAL_SHARE
    places: Sequence[int] = range(len(word) - 1 if kind == 3 else len(word))
    if kind == 0 and is_usual:
        places = [i for i in places if word[i] == word[i - 1 : i]] or places
    elif kind == 2 and is_usual:
        places = [i for i in places if word[i] in VOWELS] or places
    position = random.choice(places)
    before, letter, after = word[:position], word[position], word[position + 1 :]
    if kind == 0:
        return before + after
    if kind == 1:
        return before + (letter if is_usual else random.choice(letters)) + letter + after
    if kind == 2:
        others = [vowel for vowel in sorted(VOWELS) if vowel != letter]
        return before + (random.choice(others) if is_usual and letter in VOWELS else random.choice(letters)) + after
    return before + after[0] + letter + after[1:]


def misspell_words(words: Sequence[str], known: set[str], *, two_errors_share: float, seed: int) -> list[str | None]:
    """Misspells words so that no known word comes out; None for a word that no attempt gives anything new for."""
    random = Random(seed)
    letters = "".join(words)  # a letter of a word is drawn as often as words have it
    misspelt: list[str | None] = []
    for word in words:
        num_errors = 2 if random.random() < two_errors_share else 1
        found = None
        for _ in range(MAX_TRIES):
            attempt = word
            for _ in range(num_errors):
                attempt = misspell(attempt, letters, random) if len(attempt) > 1 else attempt
            if attempt not in known:
                found = attempt
                break
        misspelt.append(found)
    return misspelt


def fit_look_alikes(
    model: BertramModel,
    processor: BertramProcessor,
    inputs: WordCollator,
    occurrences: np.ndarray,
    settings: LookAlikeSettings,
    *,
    seed: int = 0,
) -> tuple[BertramModel, float]:
    """Adds look-alikes to a trained model: their log-odds are fitted by maximum likelihood, the rest stays.

    Args:
        model: The trained model, which reads contexts.
        processor: Its processor, which knows the look-alikes.
        inputs: Makes inputs of the training words.
        occurrences: (W,), how often each of them occurs in the corpus.
        settings: How to train.
        seed: Seed of all draws.

    Returns:
        A new model on the same encoder, and the mean negative log-likelihood.

    Raises:
        ValueError: If no training word is among those that the processor knows.
    """
    assert processor.look_alikes is not None
    model.eval()
    known = set(processor.look_alikes.words)
    words = inputs.contexts.words
    rows = np.array([row for row, word in enumerate(words) if word in known])
    if not len(rows):
        raise ValueError("look_alikes needs training words of one token, to be misspelt; there is none. Leave it out.")
    number = min(settings.num_words, len(rows))
    generator = np.random.default_rng(seed)
    frequencies = np.sqrt(np.maximum(occurrences[rows], 1))
    frequent = generator.choice(rows, number, replace=False, p=frequencies / frequencies.sum()).tolist()
    spellings = misspell_words(
        [words[row] for row in frequent], known, two_errors_share=settings.two_errors_share, seed=seed
    )
    misspelt = {row: spelling for row, spelling in zip(frequent, spellings, strict=True) if spelling is not None}
    longer = np.setdiff1d(np.arange(len(words)), rows)  # words of one piece have far more look-alikes
    longer = longer if len(longer) >= MIN_UNKNOWN else rows
    unknown = {row: words[row] for row in generator.choice(longer, min(number, len(longer)), replace=False).tolist()}
    # What an encoder says of a context depends on the spelling if it reads that too.
    reads_spelling = model.config.encoder_reads_form or model.config.reads_pieces
    misspelt_inputs = inputs.respell(misspelt, keep_features=not reads_spelling)
    examples = _make_examples(model, processor, misspelt_inputs, misspelt, settings, seed)
    others = _make_examples(model, processor, inputs, unknown, settings, seed)
    parts = [
        (examples, misspelt_share(settings, examples.num_contexts)),
        (others, 1 - misspelt_share(settings, others.num_contexts)),
    ]
    mixing = _with_mixture(model)
    return mixing, _fit_log_odds(mixing.look_alike_mixture, parts)


def misspelt_share(settings: LookAlikeSettings, num_contexts: torch.Tensor) -> torch.Tensor:
    """Returns how many of the unknown words with so many contexts are misspellings.

    Example:
        >>> misspelt_share(LookAlikeSettings(misspelt_share=0.5), torch.tensor([0, 1, 2])).tolist()
        [0.5, 0.2, 0.1]
    """
    others = (1 - settings.misspelt_share) * (1 + num_contexts.double()) ** 2
    return settings.misspelt_share / (settings.misspelt_share + others)


@torch.no_grad()
def _make_examples(
    model: BertramModel,
    processor: BertramProcessor,
    inputs: WordCollator,
    spellings: Mapping[int, str],
    settings: LookAlikeSettings,
    seed: int,
) -> Examples:
    """Induces vectors of words, given by row with their spelling, and compares them with their look-alikes.

    For a word that is misspelt, the word itself is meant. One that is not counts as unknown: no word of its family is
    among its look-alikes, and none is meant.
    """
    assert processor.look_alikes is not None
    generator = np.random.default_rng(seed)
    offsets, rows = inputs.contexts.offsets, np.array(list(spellings), dtype=np.int64)
    words = [inputs.contexts.words[row] for row in rows]
    token_of = dict(zip(processor.look_alikes.words, processor.look_alikes.token_ids.tolist(), strict=True))
    # Not by the processor, to which a known word is no misspelling: here it may stand for an unknown one.
    found = processor.look_alikes([processor.normalize_word(spelling) for spelling in spellings.values()])
    token_ids, kinds = map(torch.from_numpy, found)
    family_of = {token: word_family(word) for word, token in token_of.items()}
    is_misspelt = torch.tensor([spelling != word for word, spelling in zip(words, spellings.values(), strict=True)])
    is_family = torch.tensor(
        [
            [family_of.get(token) == family for token in tokens]
            for family, tokens in zip(map(word_family, words), token_ids.tolist(), strict=True)
        ]
    )
    kinds = kinds.masked_fill(is_family & ~is_misspelt[:, None], 0)
    is_meant = (token_ids == torch.tensor([token_of.get(word, -1) for word in words])[:, None]) & (kinds > 0)
    meant = torch.where(is_meant.any(dim=1), 1 + is_meant.long().argmax(dim=1), 0)
    available = np.diff(offsets)[rows]
    counts = np.minimum(draw_sizes(len(rows), 1, settings.max_contexts + 1, generator) - 1, available)
    table = model.get_input_embeddings()
    mean = table.weight.float().mean(dim=0).to(model.dtype)
    agreements = []
    for start in range(0, len(rows), WORDS_PER_BLOCK):
        block = slice(start, start + WORDS_PER_BLOCK)
        contexts = [
            offsets[row] + generator.permutation(size)[:count]
            for row, size, count in zip(rows[block], available[block], counts[block], strict=True)
        ]
        batch = inputs(rows[block], np.concatenate(contexts), counts[block])
        batch.pop("labels")
        vectors = model(**{name: tensor.to(model.device) for name, tensor in batch.items()}).word_embeddings
        agreements.append(compare_with(vectors, table(token_ids[block].to(model.device)), mean).double().cpu())
    return Examples(torch.cat(agreements), token_ids, kinds, torch.from_numpy(counts), meant)


def _with_mixture(model: BertramModel) -> BertramModel:
    """Returns a model on the same encoder that has a mixture of look-alikes too."""
    config = BertramConfig.from_dict(model.config.to_dict() | {"look_alikes": True})
    mixing = BertramModel(config, model.encoder).to(device=model.device, dtype=model.dtype).eval()
    mixing.load_state_dict(model.state_dict(), strict=False)
    mixing.vocabulary_mean.copy_(model.get_input_embeddings().weight.detach().float().mean(dim=0))
    return mixing


def _fit_log_odds(mixture: LookAlikeMixture, parts: Sequence[tuple[Examples, torch.Tensor]]) -> float:
    """Fits a mixture in place to examples with their weights (W,); a convex problem."""
    fitted = LookAlikeMixture().double()
    starts = [parameter.detach().clone() for parameter in fitted.parameters()]
    optimizer = torch.optim.LBFGS(fitted.parameters(), max_iter=MAX_ITERATIONS, line_search_fn="strong_wolfe")

    def likelihood() -> torch.Tensor:
        losses = []
        for part, weights in parts:
            logits = fitted(part.agreements, part.token_ids, part.kinds, part.num_contexts)
            loss = nn.functional.cross_entropy(logits, part.meant, reduction="none")
            losses.append((weights * loss).mean())
        return torch.stack(losses).sum()

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        moved = [(now - start).square().sum() for now, start in zip(fitted.parameters(), starts, strict=True)]
        loss = likelihood() + PENALTY * torch.stack(moved).sum()
        loss.backward()
        return loss

    optimizer.step(step)
    mixture.load_state_dict(fitted.state_dict())
    return likelihood().item()
