"""Induction of many words: in parts that are kept, so that a killed run goes on, and by several processes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.hashing import describe_files, fingerprint, hash_model
from ..utils.names import WORDS_PER_PART
from ..utils.progress import progress_bar
from .checks import check_processor_fits, find_failing_words, refuse_failing_words
from .induce import induce_vectors
from .word_vectors import METADATA_NAME, WordVectors


class ResumableInduction:
    """Vectors of many words, in parts of which each is kept in a folder of its own as soon as it is done.

    A part is named by all that it depends on: the model, the processor, its words and their contexts. So the same run
    goes on where it was killed, and several processes can share the parts among them.

    Args:
        model: The model, on any device.
        processor: Its processor.
        contexts: For each word the texts that contain it.
        folder: Folder of the parts.
        words_per_part: How many words a part has.
        errors: Whether a word that cannot have a vector raises, before anything is computed, or is left out and listed
            in `WordVectors.failed`.
        look_alikes: Whether words may be taken for misspellings.

    Raises:
        WordError, ValueError: As `induce_vectors`.

    Example:
        >>> parts = ResumableInduction(model, processor, contexts, "my-words.parts")
        >>> parts.induce()
        >>> parts.join().words
        ['kumquat', 'quokka']
    """

    def __init__(
        self,
        model: BertramModel,
        processor: BertramProcessor,
        contexts: Mapping[str, Sequence[str]],
        folder: str | Path,
        *,
        words_per_part: int = WORDS_PER_PART,
        errors: Literal["raise", "skip"] = "raise",
        look_alikes: bool = True,
    ) -> None:
        check_processor_fits(model, processor)
        if errors == "raise":
            refuse_failing_words(find_failing_words(model, processor, contexts), len(contexts))
        self.model, self.processor, self.contexts = model, processor, contexts
        self.look_alikes = look_alikes
        words = list(contexts)
        parts = [words[start : start + words_per_part] for start in range(0, len(words), words_per_part)]
        run = [hash_model(model), _hash_processor(processor), str(look_alikes)]
        run += [] if model.encoder_dtype is None else [str(model.encoder_dtype)]
        self._parts = [(Path(folder) / self._name(run, part), part) for part in parts]

    def _name(self, run: Sequence[str], words: Sequence[str]) -> str:
        return fingerprint([*run, [[word, list(self.contexts[word])] for word in words]])

    def induce(self, *, rank: int = 0, num_processes: int = 1, show_progress: bool = True) -> None:
        """Induces the parts of one of several processes, as far as they are not there."""
        mine = self._parts[rank::num_processes]
        total = sum(len(words) for _, words in mine)
        with progress_bar(
            total=total,
            desc="Inducing vectors",
            unit="word",
            show_progress=show_progress,
        ) as progress:
            for folder, words in mine:
                if not (folder / METADATA_NAME).is_file():
                    contexts = {word: self.contexts[word] for word in words}
                    vectors = induce_vectors(
                        self.model,
                        self.processor,
                        contexts,
                        errors="skip",
                        look_alikes=self.look_alikes,
                        show_progress=False,
                        warn=False,
                    )
                    vectors.save_pretrained(folder)
                progress.update(len(words))

    def join(self) -> WordVectors:
        """Returns the vectors of all parts, when they are all done."""
        return WordVectors.join([WordVectors.from_pretrained(folder) for folder, _ in self._parts])


def _hash_processor(processor: BertramProcessor) -> str:
    """Returns a name for all that a processor's results depend on: what it saves."""
    with TemporaryDirectory() as folder:
        processor.save_pretrained(folder)
        return describe_files(folder)[folder]
