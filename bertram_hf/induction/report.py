"""One page on one induced vector: where it came from and where it lies."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..modeling_bertram import BertramModel
from ..modeling_slim import embedding_fingerprint
from ..processing_bertram import BertramProcessor
from ..processing_words import WordPattern, check_contexts, normalize_text
from ..utils.models import in_eval_mode
from ..utils.tables import format_columns
from ..words.pieces import PieceReader
from .checks import check_processor_fits
from .neighbours import NearestTokens, Neighbour, visible
from .word_vectors import WordVectors

NUM_CONTEXTS_SHOWN = 10
EXCERPT_WIDTH = 64
NO_TEXT = "(text not given)"


@dataclass(frozen=True)
class ContextUse:
    """What became of one context: its weight if it was used, the reason if it was dropped, its text if known."""

    index: int
    weight: float | None
    dropped: str | None
    text: str | None


@dataclass(frozen=True, repr=False)
class WordReport:
    """What is to be said of one word's vector. Print it, or let a notebook show it.

    Attributes:
        word: The word.
        pieces: What the model sees without the vector.
        neighbours_before: The tokens nearest to the mean of the pieces, other than the pieces.
        neighbours_after: The tokens nearest to the induced vector.
        norm: Length of the vector.
        median_norm: Length of the vocabulary's median vector.
        norm_percentile: How many percent of the vocabulary's vectors are shorter.
        form_agreement: Cosine, after centring, between the vector of the spelling alone and the induced vector; None if
            neither the vectors tell it nor a model that reads the spelling was given.
        reliability: The cosine that the vector is expected to have with the true one; None if it is not known.
        look_alikes: Known words that the word may be a misspelling of, with their shares in the vector.
        contexts: The used contexts by falling weight, then the dropped ones.

    Example:
        >>> report = report_word("kumquat", vectors, encoder, tokenizer, num_neighbours=3)
        >>> len(report.neighbours_before), report.norm > 0
        (3, True)
    """

    word: str
    pieces: list[str]
    neighbours_before: list[Neighbour]
    neighbours_after: list[Neighbour]
    norm: float
    median_norm: float
    norm_percentile: float
    form_agreement: float | None
    reliability: float | None
    look_alikes: dict[str, float]
    contexts: list[ContextUse]

    def to_dict(self) -> dict[str, Any]:
        """Returns all of it, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"WordReport({self.word!r}, {self._num_used} of {len(self.contexts)} contexts used)"

    @property
    def _num_used(self) -> int:
        return sum(context.dropped is None for context in self.contexts)

    def _facts(self) -> list[tuple[str, str]]:
        comparison = f"longer than {self.norm_percentile:.0f}% of the vocabulary (median {self.median_norm:.3g})"
        facts = [("pieces", " ".join(self.pieces)), ("length", f"{self.norm:.3g}, {comparison}")]
        if self.form_agreement is not None:
            facts.append(("spelling", f"its vector alone has cosine {self.form_agreement:.2f} with the induced one"))
        if self.reliability is not None:
            facts.append(("reliability", f"{self.reliability:.2f}, the cosine that it may have with the true vector"))
        if self.look_alikes:
            listed = ", ".join(f"{visible(known)} ({share:.0%})" for known, share in self.look_alikes.items())
            facts.append(("misspelling", f"of {listed}?"))
        facts.append(("contexts", f"{self._num_used} used, {len(self.contexts) - self._num_used} dropped"))
        return facts

    def _neighbour_rows(self) -> list[tuple[str, str, str, str]]:
        before = [(neighbour.token, f"{neighbour.similarity:.2f}") for neighbour in self.neighbours_before]
        after = [(neighbour.token, f"{neighbour.similarity:.2f}") for neighbour in self.neighbours_after]
        num_rows = max(len(before), len(after))
        before += [("", "")] * (num_rows - len(before))
        after += [("", "")] * (num_rows - len(after))
        return [(*left, *right) for left, right in zip(before, after, strict=True)]

    def _context_rows(self) -> list[tuple[str, str, tuple[str, str, str]]]:
        """Returns index, weight or reason, and text before, at and after the word, of the contexts that are shown."""
        rows = []
        for context in self.contexts[:NUM_CONTEXTS_SHOWN]:
            weight = "" if context.weight is None else f"{context.weight:.2f}"
            excerpt = (NO_TEXT, "", "") if context.text is None else _excerpt(context.text, self.word)
            rows.append((str(context.index), context.dropped or weight, excerpt))
        return rows

    def _footer(self) -> str:
        num_hidden = len(self.contexts) - NUM_CONTEXTS_SHOWN
        return f"... and {num_hidden:,} more" if num_hidden > 0 else ""

    def __str__(self) -> str:
        neighbours = [("before", "cosine", "after", "cosine"), *self._neighbour_rows()]
        parts = [visible(self.word), format_columns(self._facts()), format_columns(neighbours, right_aligned=(1, 3))]
        if self.contexts:
            rows = [(index, use, "".join(excerpt)) for index, use, excerpt in self._context_rows()]
            parts.append(format_columns([("#", "weight", "context"), *rows]) + f"\n{self._footer()}".rstrip())
        return "\n\n".join(parts)

    def __rich__(self) -> Any:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        # All text is given as Text, since a plain string such as "[MASK]" would be read as markup.
        facts = Table.grid(padding=(0, 2))
        for name, value in self._facts():
            facts.add_row(Text(name, style="dim"), Text(value))
        neighbours = Table(box=box.SIMPLE_HEAD, title="nearest tokens", title_justify="left", title_style="bold")
        for name in ("before: mean of pieces", "after: induced vector"):
            neighbours.add_column(name, min_width=24)
            neighbours.add_column("cosine", justify="right", style="dim")
        for row in self._neighbour_rows():
            neighbours.add_row(*map(Text, row))
        parts: list[Any] = [Text(visible(self.word), style="bold underline"), Text(), facts, Text(), neighbours]
        if self.contexts:
            contexts = Table(box=box.SIMPLE_HEAD, title="contexts", title_justify="left", title_style="bold")
            contexts.caption, contexts.caption_justify = self._footer() or None, "left"
            contexts.add_column("#", justify="right", style="dim")
            contexts.add_column("weight", justify="right")
            contexts.add_column("text")
            for index, use, (before, found, after) in self._context_rows():
                contexts.add_row(Text(index), Text(use), Text.assemble(before, (found, "bold"), after))
            parts.append(contexts)
        return Group(*parts)

    def _repr_html_(self) -> str:
        """Returns one element of HTML. It has no colours of its own, so it suits dark and light notebooks."""
        escape = html.escape
        facts = [f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in self._facts()]
        neighbours = [
            f"<tr><td>{escape(before)}</td><td class='n'>{left}</td>"
            f"<td>{escape(after)}</td><td class='n'>{right}</td></tr>"
            for before, left, after, right in self._neighbour_rows()
        ]
        contexts = [
            f"<tr><td class='n'>{index}</td><td class='n'>{escape(use)}</td>"
            f"<td>{escape(before)}<b>{escape(found)}</b>{escape(after)}</td></tr>"
            for index, use, (before, found, after) in self._context_rows()
        ]
        heads = "<tr><th>before: mean of pieces</th><th>cosine</th><th>after: induced vector</th><th>cosine</th></tr>"
        parts = [
            f"<style>{STYLE}</style><h3>{escape(visible(self.word))}</h3>",
            f"<table>{''.join(facts)}</table>",
            f"<h4>nearest tokens</h4><table class='lines'>{heads}{''.join(neighbours)}</table>",
        ]
        if contexts:
            heads = "<tr><th>#</th><th>weight</th><th>text</th></tr>"
            parts.append(f"<h4>contexts</h4><table class='lines'>{heads}{''.join(contexts)}</table>{self._footer()}")
        return f"<div class='bertram-word'>{''.join(parts)}</div>"


STYLE = (
    ".bertram-word{color:inherit;max-width:60em}"
    ".bertram-word h3,.bertram-word h4{margin:.8em 0 .3em}"
    ".bertram-word table{border-collapse:collapse;margin:0;background:none}"
    ".bertram-word tr{background:none!important}"
    ".bertram-word th,.bertram-word td{text-align:left;padding:.15em 1.2em .15em 0;color:inherit;vertical-align:top}"
    ".bertram-word th{font-weight:normal;opacity:.65}"
    ".bertram-word .lines td{border-top:1px solid rgba(128,128,128,.3)}"
    ".bertram-word .n{font-variant-numeric:tabular-nums;white-space:nowrap}"
)


@torch.no_grad()
def report_word(
    word: str,
    vectors: WordVectors,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    contexts: Sequence[str] | None = None,
    bertram: BertramModel | None = None,
    processor: BertramProcessor | None = None,
    num_neighbours: int = 8,
) -> WordReport:
    """Tells where a word's vector came from and where in the embedding space it lies.

    Special and unused tokens, and rows of the embedding matrix without a token, are left out of all comparisons.

    Args:
        word: A word of `vectors`.
        vectors: The induced vectors.
        model: The language model, whose input embeddings the vector is compared with.
        tokenizer: Its tokenizer.
        contexts: The contexts that `induce_vectors` was given for the word, to show their text.
        bertram: The model that induced the vector, and
        processor: its processor, to compare the vector with that of the spelling alone.
        num_neighbours: How many nearest tokens to list.

    Raises:
        KeyError: If the word has no vector.
        ValueError: If the vectors or the tokenizer belong to another model, or contexts are missing.

    Example:
        >>> report = report_word("kumquat", vectors, encoder, tokenizer, contexts=contexts["kumquat"])
        >>> report.pieces, len(report.neighbours_after)
        (['ku', '·m', '·qua', '·t'], 8)
        >>> print(report)
        kumquat...
    """
    vector = vectors[word].float().cpu()
    embeddings = model.get_input_embeddings().weight
    _check_space(vectors, embeddings)
    if (bertram is None) != (processor is None):
        raise ValueError("To compare with the spelling, give both bertram= and processor=; got one of them.")
    reader = PieceReader(tokenizer)
    nearest = NearestTokens(embeddings, reader)
    pieces = reader.split([word])[0]
    if max(pieces, default=0) >= len(embeddings):
        raise ValueError(
            f"The tokenizer gives {word!r} the id {max(pieces)}, but the model has {len(embeddings)} embeddings. "
            "Give the tokenizer that belongs to the model, without injected words."
        )
    mean_of_pieces = embeddings.detach()[pieces].float().cpu().mean(dim=0) if pieces else None
    form_agreement = vectors.agreement.get(word)
    if form_agreement is None and bertram is not None and processor is not None and bertram.config.has_form:
        form = _form_vector(word, bertram, processor)
        form_agreement = torch.cosine_similarity(form - nearest.mean, vector - nearest.mean, dim=0).item()
    return WordReport(
        word=word,
        pieces=[visible(reader.read(piece)) for piece in pieces],
        neighbours_before=[]
        if mean_of_pieces is None
        else nearest.find(mean_of_pieces[None], num_neighbours, [pieces])[0],
        neighbours_after=nearest.find(vector[None], num_neighbours)[0],
        norm=vector.norm().item(),
        median_norm=nearest.norms.median().item(),
        norm_percentile=100 * (nearest.norms < vector.norm()).float().mean().item(),
        form_agreement=form_agreement,
        reliability=vectors.reliability.get(word),
        look_alikes=vectors.look_alikes.get(word, {}),
        contexts=_context_uses(word, vectors, contexts),
    )


def _check_space(vectors: WordVectors, embeddings: torch.Tensor) -> None:
    """Raises a ValueError if the vectors cannot belong to the input embeddings (V, H)."""
    size = vectors.embeddings.shape[1]
    if size != embeddings.shape[1]:
        raise ValueError(
            f"The vectors have {size} dimensions, the model's input embeddings {embeddings.shape[1]}. "
            "Give the model that they were induced for."
        )
    found = embedding_fingerprint(embeddings)
    if vectors.embedding_fingerprint not in (None, found):
        raise ValueError(
            f"The vectors belong to the input embeddings {vectors.embedding_fingerprint}, the model has {found}. "
            "Give the model that they were induced for, as it was before words were added to it."
        )


def _form_vector(word: str, bertram: BertramModel, processor: BertramProcessor) -> torch.Tensor:
    """Returns the vector (H,) of the spelling alone."""
    check_processor_fits(bertram, processor)
    with in_eval_mode(bertram):
        form_ids = torch.tensor([processor.encode_form(word)], dtype=torch.long, device=bertram.device)
        return bertram.encode_forms(form_ids)[0].float().cpu()


def _context_uses(word: str, vectors: WordVectors, texts: Sequence[str] | None) -> list[ContextUse]:
    used, dropped = vectors.used_contexts.get(word, []), vectors.dropped_contexts.get(word, {})
    if texts is not None:
        if isinstance(texts, Mapping):
            raise TypeError(
                f"contexts must be those of one word; got a {type(texts).__name__}. Pass contexts[{word!r}]."
            )
        check_contexts(word, texts)
        num_known = max([*used, *dropped], default=-1) + 1
        if len(texts) < num_known:
            raise ValueError(
                f"The vector of {word!r} was induced from {num_known} contexts; got {len(texts)}. "
                "Give all of them, in the same order."
            )
    weights = vectors.context_weights.get(word)
    values = [None] * len(used) if weights is None else weights.tolist()

    def text(index: int) -> str | None:
        return None if texts is None else texts[index]

    uses = [ContextUse(index, weight, None, text(index)) for index, weight in zip(used, values, strict=True)]
    uses.sort(key=lambda use: -(use.weight or 0))
    return uses + [ContextUse(index, None, reason, text(index)) for index, reason in sorted(dropped.items())]


def _excerpt(text: str, word: str) -> tuple[str, str, str]:
    """Returns some text before the word's first occurrence, the occurrence, and some text after it."""
    text = visible(normalize_text(text))
    found = next(WordPattern(word, ignore_case=True).find_all(text), None)
    start, end = found.span() if found else (0, 0)
    before, after = text[:start], text[end:]
    room = max(EXCERPT_WIDTH - (end - start), 0)
    num_after = max(room // 2, room - len(before))
    num_before = max(room // 2, room - len(after))
    if len(before) > num_before:
        cut = before[len(before) - num_before :]
        before = "… " + (cut.partition(" ")[2] or cut)
    if len(after) > num_after:
        cut = after[:num_after]
        after = (cut.rpartition(" ")[0] or cut) + " …"
    return before, text[start:end], after
