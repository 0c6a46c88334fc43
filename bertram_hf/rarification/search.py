"""The search for words on which a classifier's decision rests ("Test Set Generation" in Section 4).

Each round masks every single word of many candidates. All these inputs, sorted by length, go through the model in large
batches; a text is tokenised only once. Where the device is fast at bfloat16, all inputs are scored in it, and those
that may be the most decisive once more in full.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Literal

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..induction.batching import length_sorted_batches
from ..modeling_context import BERT_LAYERED_TYPES
from ..utils.models import in_eval_mode, is_fast_at_bfloat16
from ..utils.progress import progress_bar
from .baseline import check_max_length
from .masking import InputMasker, MaskedInput, TokenizedRow
from .replacement import ReplaceableWord
from .screening import ScreenedScores, Screening, classify

CANDIDATES_AT_ONCE = 1024
Reason = Literal["no_words", "truncated", "wrong_at_start", "not_flipped"]


@dataclass(frozen=True)
class Outcome:
    """What became of a candidate.

    Attributes:
        masked: Indices of the words that were masked until the model was wrong, the most decisive first.
        dropped: Why the candidate cannot be used, if so: it has no word with substitutes; it has, but no room for their
            masks; the model is wrong about it as it is; or is still right when all words it may are masked.
    """

    masked: tuple[int, ...] = ()
    dropped: Reason | None = None


@dataclass
class _Candidate:
    row: int
    label: int
    tokens: TokenizedRow
    choices: list[int]
    masked: list[int] = field(default_factory=list)


class DecisiveWordSearch:
    """Finds the words whose masks make a classifier err.

    Args:
        model: The classifier.
        tokenizer: Its tokenizer.
        max_length: Inputs are cut to so many tokens.
        max_masked: At most so many words are masked.
        tokens_per_batch: How many tokens, with padding, the model gets at once.
        screening: Whether words that cannot be the most decisive are ruled out by scores in bfloat16; by default for
            models with BERT's layers in single precision, where this is faster. Which word is the most decisive, and
            whether the label flips, is up to exact scores.

    Attributes:
        num_queries: How many different inputs the model has got so far.

    Raises:
        ValueError: If the tokenizer cannot mask, or `max_length` does not fit the model.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_length: int = 128,
        max_masked: int = 5,
        tokens_per_batch: int = 4096,
        screening: bool | None = None,
    ) -> None:
        check_max_length(model, max_length)
        self.model = model
        self.masker = InputMasker(tokenizer, max_length=max_length)
        self.max_masked = max_masked
        self.tokens_per_batch = tokens_per_batch
        self.num_queries = 0
        if screening is None:  # other models, such as DeBERTa, cannot all be run in bfloat16
            is_single = model.dtype == torch.float32 and model.config.model_type in BERT_LAYERED_TYPES
            screening = is_single and is_fast_at_bfloat16(model.device)
        self.screening = Screening() if screening and model.config.num_labels > 1 else None

    def find(
        self,
        rows: Sequence[Sequence[str]],
        words: Sequence[Sequence[ReplaceableWord]],
        labels: Sequence[int],
        *,
        show_progress: bool = True,
    ) -> list[Outcome]:
        """Returns what becomes of each candidate.

        Args:
            rows: The text, or the two texts, of each candidate.
            words: The words of each candidate that may be masked.
            labels: The correct class of each.
            show_progress: Whether a progress bar is shown.
        """
        outcomes: list[Outcome] = []
        progress = progress_bar(total=len(rows), desc="Masking words", unit="text", show_progress=show_progress)
        with in_eval_mode(self.model), progress:
            for start in range(0, len(rows), CANDIDATES_AT_ONCE):
                chunk = slice(start, start + CANDIDATES_AT_ONCE)
                outcomes += self._find_together(rows[chunk], words[chunk], labels[chunk])
                progress.update(len(rows[chunk]))
        return outcomes

    def score(self, inputs: Sequence[MaskedInput], *, rough: bool = False) -> np.ndarray:
        """Returns log p(y | x) for each input and class, shape (inputs, classes).

        Args:
            inputs: The inputs.
            rough: Whether to compute in bfloat16.

        Raises:
            ValueError: If a logit is not finite.
        """
        lengths = [len(item.input_ids) for item in inputs]
        scores = np.empty((len(inputs), self.model.config.num_labels))
        device = self.model.device
        with torch.inference_mode(), torch.autocast(device.type, dtype=torch.bfloat16, enabled=rough):
            for batch in length_sorted_batches(lengths, self.tokens_per_batch):
                tensors = self.masker.collate([inputs[index] for index in batch])
                logits = classify(self.model, {name: row.to(device) for name, row in tensors.items()})
                # In double precision, as a sure model's probabilities are all 1 in single precision.
                scores[batch] = logits.double().log_softmax(dim=-1).cpu().numpy()
        if not np.isfinite(scores).all():
            raise ValueError(
                "Expected finite logits from the model; got some that are not. Check its weights, or use float32."
            )
        return scores

    def _find_together(
        self, rows: Sequence[Sequence[str]], words: Sequence[Sequence[ReplaceableWord]], labels: Sequence[int]
    ) -> list[Outcome]:
        outcomes = [Outcome(dropped="no_words")] * len(rows)
        active: list[_Candidate] = []
        for row, tokens in enumerate(self.masker.tokenize(rows, words)):
            choices = [word for word in range(len(words[row])) if tokens.word_tokens[word] is not None]
            if not choices:
                continue
            active.append(_Candidate(row, labels[row], tokens, choices))
        is_right = self._ask([self._mask(candidate.tokens) for candidate in active], [each.label for each in active])
        for candidate in active:
            outcomes[candidate.row] = Outcome(dropped="wrong_at_start")
        active = list(compress(active, is_right))
        while active:
            active = self._mask_one_more(active, outcomes)
        return outcomes

    def _mask_one_more(self, candidates: list[_Candidate], outcomes: list[Outcome]) -> list[_Candidate]:
        """Masks the most decisive word of each candidate. Returns those about which the model is still right."""
        inputs: list[MaskedInput] = []
        owners: list[int] = []  # of each input, its candidate's index
        tried: list[tuple[_Candidate, list[int]]] = []
        for candidate in candidates:
            seen: list[int] = []
            for word in candidate.choices:
                item = (
                    None if word in candidate.masked else self.masker.mask(candidate.tokens, [*candidate.masked, word])
                )
                if item is not None:
                    seen.append(word)
                    inputs.append(item)
                    owners.append(len(tried))
            tried.append((candidate, seen))
        scores = self._score_decisive(inputs, np.array(owners, dtype=int), [each.label for each in candidates])
        still_right: list[_Candidate] = []
        start = 0
        for candidate, seen in tried:
            found = scores[start : start + len(seen)]
            start += len(seen)
            if not seen:
                outcomes[candidate.row] = Outcome(dropped="not_flipped" if candidate.masked else "truncated")
                continue
            decisive = int(found[:, candidate.label].argmin())
            candidate.masked.append(seen[decisive])
            if found[decisive].argmax() != candidate.label:
                outcomes[candidate.row] = Outcome(masked=tuple(candidate.masked))
            elif len(candidate.masked) == self.max_masked:
                outcomes[candidate.row] = Outcome(dropped="not_flipped")
            else:
                still_right.append(candidate)
        return still_right

    def _ask(self, inputs: Sequence[MaskedInput], labels: Sequence[int]) -> np.ndarray:
        """Returns whether the model is right about each input, shape (inputs,)."""
        self.num_queries += len(inputs)
        own_labels = np.array(labels, dtype=int)
        if self.screening is None:
            return self.score(inputs).argmax(axis=1) == own_labels
        screened = self._screen(inputs, own_labels, self.screening)
        # p(y | x) > 1 / 2 is right, p(y | x) < 1 / classes is wrong.
        right, wrong = 0, -np.log(self.model.config.num_labels - 1)
        while screened.make_exact((screened.low <= right) & (screened.high >= wrong)):
            pass  # each exact score may widen the bounds of the others
        return np.where(screened.is_exact, screened.scores.argmax(axis=1) == own_labels, screened.rough_odds > right)

    def _score_decisive(self, inputs: Sequence[MaskedInput], owners: np.ndarray, labels: Sequence[int]) -> np.ndarray:
        """Returns log p(y | x) for each input and class; infinite for inputs that are not the most decisive.

        Args:
            inputs: N inputs.
            owners: (N,), the index of the candidate of each.
            labels: The label of each candidate.
        """
        self.num_queries += len(inputs)
        if self.screening is None or not np.isfinite(self.screening.margin):
            return self.score(inputs)

        def lowest(odds: np.ndarray) -> np.ndarray:
            found = np.full(len(labels), np.inf)
            np.minimum.at(found, owners, odds)
            return found[owners]

        screened = self._screen(inputs, np.array(labels, dtype=int)[owners], self.screening)
        screened.make_exact(screened.rough_odds == lowest(screened.rough_odds))
        while screened.make_exact(screened.low <= lowest(screened.high)):
            pass  # each exact score may widen the bounds of the others
        return screened.scores

    def _screen(self, inputs: Sequence[MaskedInput], labels: np.ndarray, screening: Screening) -> ScreenedScores:
        """Scores inputs in bfloat16."""
        rough = self.score(inputs, rough=True)
        return ScreenedScores(labels, rough, lambda indices: self.score([inputs[i] for i in indices]), screening)

    def _mask(self, tokens: TokenizedRow) -> MaskedInput:
        item = self.masker.mask(tokens)
        assert item is not None, "without a mask there is always room"
        return item
