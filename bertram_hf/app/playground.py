"""What the page does with what people type: everything is text, and has a limit."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, NamedTuple
from zipfile import ZipFile

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoProcessor,
    AutoTokenizer,
    pipeline,
)

from ..evaluation.embedding import SentenceEmbedder
from ..induction.checkpoints import find_checkpoint
from ..induction.definitions import add_definitions
from ..induction.induce import induce_vectors
from ..induction.report import WordReport, report_word, visible
from ..induction.word_vectors import WordVectors
from ..injection.injector import BertramEmbeddingInjector
from ..modeling_bertram import BertramModel
from ..modeling_slim import embedding_fingerprint
from ..processing_bertram import BertramProcessor

MAX_WORD, MAX_LINE, MAX_LINES = 100, 2_000, 200  # characters of a word and of a line, and lines
MAX_WORDS = 50  # of one visitor
MAX_LENGTH = 256  # tokens of a text that is searched
NUM_ANSWERS = 5
TASKS = {
    "ForMaskedLM": ("fill-mask", AutoModelForMaskedLM),
    "ForSequenceClassification": ("text-classification", AutoModelForSequenceClassification),
}


class Found(NamedTuple):
    """A text that was searched, and its cosine with the query."""

    text: str
    similarity: float


class Playground:
    """Induces words, searches texts, and asks a model, for many visitors who know nothing of each other.

    Args:
        bertram: A BERTRAM model.
        processor: Its processor.
        encoder: Its encoder, a sentence encoder that averages over tokens.
        model: Folder or Hub name of a masked language model, or of a classifier of texts, with the same embeddings.

    Raises:
        ValueError: If the model is of another kind.

    Example:
        >>> playground = Playground(model, processor, encoder)
        >>> report, vectors = playground.induce("kumquat", "She peeled a kumquat.", "")
        >>> report.word, vectors.words
        ('kumquat', ['kumquat'])
    """

    def __init__(
        self, bertram: BertramModel, processor: BertramProcessor, encoder: Any, model: str | None = None
    ) -> None:
        self.bertram, self.processor, self.encoder = bertram, processor, encoder
        self.tokenizer = processor.tokenizer
        self._embedder = SentenceEmbedder(encoder, self.tokenizer, max_length=MAX_LENGTH, show_progress=False)
        self._lock = threading.Lock()  # an injector changes its model
        self.task: str | None = None
        if model is not None:
            self.task, self._model, self._model_tokenizer = _load(model)

    @classmethod
    def load(cls, encoder: str, bertram: str | None = None, model: str | None = None) -> "Playground":
        """Loads the models by name or folder; by default the BERTRAM model that goes with the encoder."""
        loaded = AutoModel.from_pretrained(encoder).eval()
        folder = bertram or find_checkpoint(encoder, embedding_fingerprint(loaded.get_input_embeddings().weight))
        return cls(
            BertramModel.from_pretrained(folder, encoder=loaded).eval(),
            AutoProcessor.from_pretrained(folder),
            loaded,
            model,
        )

    def induce(self, word: str, sentences: str, definition: str) -> tuple[WordReport, WordVectors]:
        """Returns the report and the vector of a word, from lines of sentences and a definition.

        Raises:
            ValueError: If something is missing or too long.
        """
        word = _one_line(word, "word", MAX_WORD)
        if not word:
            raise ValueError("Type a word.")
        contexts: Mapping[str, Sequence[str]] = {word: _lines(sentences, "sentences")}
        definition = _one_line(definition, "definition", MAX_LINE)
        if definition:
            contexts = add_definitions(contexts, {word: [definition]})
        with self._lock:
            vectors = induce_vectors(self.bertram, self.processor, contexts, show_progress=False, warn=False)
            report = report_word(word, vectors, self.encoder, self.tokenizer, contexts=contexts[word])
        return report, vectors

    def search(
        self, query: str, texts: str, words: Mapping[str, WordVectors]
    ) -> tuple[list[Found], list[Found] | None]:
        """Returns lines of text by falling similarity with a query: by the plain model, and with vectors if there are
        any.

        Raises:
            ValueError: If something is missing or too long.
        """
        query = _one_line(query, "query", MAX_LINE)
        lines = _lines(texts, "texts")
        if not query or len(lines) < 2:
            raise ValueError("Type a query, and two or more texts, one on each line.")
        with self._lock:
            plain = self._embedder.embed([query, *lines])
            injected = self._embedder.embed([query, *lines], _join(words)) if words else None
        return _sort(lines, plain), None if injected is None else _sort(lines, injected)

    def ask(self, text: str, words: Mapping[str, WordVectors]) -> tuple[list[Found], list[Found]]:
        """Returns the answers of the model to a text: words for its mask, or classes; plain and with vectors.

        Raises:
            ValueError: If something is missing or too long.
        """
        text = _one_line(text, "text", MAX_LINE)
        mask = self.tokenizer.mask_token
        if not text or (self.task == "fill-mask" and text.count(mask) != 1):
            raise ValueError(f"Type a text{f' with one {mask}' if self.task == 'fill-mask' else ''}.")
        with self._lock:
            plain = self._answer(self._model, self._model_tokenizer, text)
            vectors: Any = _join(words) if words else {}
            injector = BertramEmbeddingInjector(self._model, self._model_tokenizer, vectors)
            try:
                return plain, self._answer(injector, injector.tokenizer, text)
            finally:
                injector.remove()

    def _answer(self, model: Any, tokenizer: Any, text: str) -> list[Found]:
        answers = pipeline(self.task, model=model, tokenizer=tokenizer)(text, top_k=NUM_ANSWERS)
        return [
            Found(visible(found["token_str" if "token_str" in found else "label"]), found["score"]) for found in answers
        ]


def remember(words: Mapping[str, WordVectors], vectors: WordVectors) -> dict[str, WordVectors]:
    """Returns the words of a visitor with a new one, which is the last; the oldest are forgotten."""
    (word,) = vectors.words
    kept = {known: own for known, own in words.items() if known != word} | {word: vectors}
    return dict(list(kept.items())[-MAX_WORDS:])


def zip_words(words: Mapping[str, WordVectors]) -> str:
    """Writes vectors as they are loaded by `WordVectors.from_pretrained`, and returns the path of the archive.

    Raises:
        ValueError: If there are none.
    """
    if not words:
        raise ValueError("There is no word yet.")
    path = Path(mkdtemp()) / "my-words.zip"
    with TemporaryDirectory() as folder, ZipFile(path, "w") as archive:
        _join(words).save_pretrained(folder)
        for file in sorted(Path(folder).iterdir()):
            archive.write(file, f"my-words/{file.name}")
    return str(path)


def _join(words: Mapping[str, WordVectors]) -> WordVectors:
    return WordVectors.join(list(words.values()))


def _load(name: str) -> tuple[str, Any, Any]:
    """Returns task, model and tokenizer."""
    architectures = AutoConfig.from_pretrained(name).architectures or [""]
    for suffix, (task, auto_class) in TASKS.items():
        if architectures[0].endswith(suffix):
            return task, auto_class.from_pretrained(name).eval(), AutoTokenizer.from_pretrained(name)
    raise ValueError(
        f"Expected a masked language model or a classifier of texts; {name} is a {architectures[0] or 'plain model'}."
    )


def _one_line(text: str | None, what: str, longest: int) -> str:
    line = visible(text or "")[: longest + 1]
    if len(line) > longest:
        raise ValueError(f"The {what} is too long: at most {longest:,} characters.")
    return line


def _lines(text: str | None, what: str) -> list[str]:
    given = text or ""
    if len(given) > MAX_LINE * MAX_LINES:
        raise ValueError(f"The {what} are too long: at most {MAX_LINES} lines of {MAX_LINE:,} characters.")
    lines = [line for part in given.splitlines() if (line := visible(part))]
    if len(lines) > MAX_LINES or max(map(len, lines), default=0) > MAX_LINE:
        raise ValueError(f"The {what} are too long: at most {MAX_LINES} lines of {MAX_LINE:,} characters.")
    return lines


def _sort(texts: list[str], embeddings: Any) -> list[Found]:
    similarities = (embeddings[1:] @ embeddings[0]).tolist()
    found = [Found(text, similarity) for text, similarity in zip(texts, similarities, strict=True)]
    return sorted(found, key=lambda one: -one.similarity)
