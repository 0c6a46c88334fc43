"""The whole way from a user's texts to a model that knows their words, in one call."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

from datasets import Dataset, IterableDataset

from ..corpus.inputs import Paths
from ..utils.distributed import Processes
from ..utils.files import only_writer
from ..words.splitting import normalize_spelling
from .definitions import read_definitions
from .report import JSON_NAME
from .run import Adaptation, AdaptationRun
from .user_model import UserModel


def adapt(
    texts: Paths | Dataset | IterableDataset,
    model: Any,
    output: str | os.PathLike[str],
    *,
    bertram: str | os.PathLike[str] | None = None,
    words: Sequence[str] = (),
    glossary: str | os.PathLike[str] | Mapping[str, Sequence[str]] | None = None,
    aliases: str | os.PathLike[str] | Mapping[str, str] | None = None,
    text_column: str = "text",
    title_column: str | None = None,
    min_count: int = 2,
    max_words: int = 20_000,
    max_contexts: int = 8,
    num_documents: int = 5_000,
    share_inflections: bool = True,
    compare: bool = False,
    executor: Literal["local", "ray", "slurm"] = "local",
    num_workers: int = 1,
    executor_options: Mapping[str, Any] | None = None,
    device: str | None = None,
    seed: int = 0,
    show_progress: bool = True,
) -> Adaptation | None:
    """Gives a model the rare words of texts, and tells from the texts themselves whether that helps.

    It counts the words of the texts, samples sentences of those that the model breaks into pieces, induces their
    vectors, and judges them: titles or first sentences must find the rest of their texts, among others, with vectors
    that were made without these texts. What helps is saved, so that the output loads as the model itself does.

    A killed run goes on where it was with the same call. The result depends on texts and settings only, not on the
    number of workers.

    Args:
        texts: Files, folders or patterns (text, JSONL, CSV, TSV, Parquet), or a dataset; see `build_corpus`.
        model: Name or folder of the model, or a loaded `SentenceTransformer`.
        output: The folder to write.
        bertram: Folder or Hub name of the BERTRAM model; by default the one on this machine that fits.
        words: Words and terms, such as "type 2 diabetes", that get vectors however often they occur.
        glossary: Terms and definitions: a file (see `read_glossary`), or a list of definitions for each term.
        aliases: Short forms and what they stand for: a file (see `read_aliases`), or a mapping.
        text_column: For rows: the column that holds the text.
        title_column: For rows: the column that holds a title, by which texts are searched; by default, texts are
            searched by their first sentence.
        min_count: Words must occur so often.
        max_words: At most so many words get vectors.
        max_contexts: At most so many sentences of each word are read.
        num_documents: At most so many texts are searched.
        share_inflections: Whether "stents" gets the vector of "stent"; see `share_vectors`.
        compare: Whether simpler vectors are measured too: the mean of a word's pieces, and new, untrained tokens.
        executor: Where the corpus is read; see `build_corpus`.
        num_workers: How many tasks read it at once.
        executor_options: More arguments of the executor.
        device: Where models are run; by default a GPU if there is one.
        seed: Seed of all choices.
        show_progress: Whether to show progress bars.

    Returns:
        What was made; None if Slurm jobs were submitted (call again when they have run), and in all processes of
        `torchrun` but the first.

    Raises:
        ValueError, OSError: If the texts or the model cannot be used, or no word is rare.

    Example:
        >>> adapted = adapt("novels/*.txt", "bert-base-uncased", "my-model", bertram="my-bertram")
        >>> "kumquat" in adapted.vectors
        True
        >>> print(adapted.verdict.headline)
        Not judged: too few texts have a title or first sentence with an injected word...
    """
    for name, number in (("min_count", min_count), ("max_words", max_words), ("max_contexts", max_contexts)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1; got {number}.")
    if (folder := Path(output)).exists() and not (folder / JSON_NAME).is_file() and not _is_empty(folder):
        raise ValueError(
            f"Expected a new folder, or one that an earlier run wrote; {output} holds other files, which "
            "would be lost. Give another output."
        )
    definitions, notes = read_definitions(glossary, aliases)
    processes = Processes()
    run = AdaptationRun(
        model=UserModel.load(model, device=device or processes.device),
        output=Path(output),
        seed=seed,
        processes=processes,
        show_progress=show_progress and processes.is_main,
    )
    with only_writer(output) if processes.is_main else nullcontext():
        run.load_bertram(bertram)
        run.notes += notes
        for term, own in definitions.items():
            if own:  # spellings that are one word to the tokenizer share their definitions
                run.definitions.setdefault(normalize_spelling(term, run.lower_case), []).extend(own)
        with processes.main_first():
            is_done = run.read_texts(
                texts,
                asked=words,
                text_column=text_column,
                min_count=min_count,
                max_words=max_words,
                max_contexts=max_contexts,
                executor=executor,
                num_workers=num_workers,
                executor_options=executor_options,
            )
        if not is_done:
            return None
        run.draw_documents(texts, num_documents, text_column=text_column, title_column=title_column)
        run.induce(max_contexts, share_inflections=share_inflections)
        if not processes.is_main:
            return None
        verdict = run.judge(compare=compare)
        adapted = run.save(verdict)
        shutil.rmtree(run.work, ignore_errors=True)
    return adapted


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
