"""The steps from texts to a model that knows their words."""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from datasets import Dataset, IterableDataset
from transformers import AutoProcessor, PreTrainedConfig

from ..configuration_bertram import BertramConfig
from ..corpus.build import CorpusSummary, build_corpus, load_contexts, load_counts
from ..corpus.inputs import list_slices
from ..induction.checkpoints import find_checkpoint
from ..induction.definitions import add_definitions
from ..induction.resumable import ResumableInduction
from ..induction.word_vectors import WordVectors
from ..injection.policy import divide_by_mode
from ..modeling_bertram import BertramModel
from ..modeling_slim import embedding_fingerprint
from ..processing_bertram import BertramProcessor
from ..processing_context import is_uncased
from ..utils.distributed import Processes
from ..utils.environment import installed_versions
from ..utils.files import write_whole
from ..utils.memory import release_free_memory
from ..utils.models import half_precision
from ..utils.names import Mode
from ..words.pieces import PieceReader
from ..words.splitting import normalize_spelling, split_words
from .code_names import CodeNameScore, choose_known_words, invent_names, score_code_names
from .documents import SearchPair, SharedText, count_touched, draw_pairs, read_documents
from .inflections import add_forms, choose_leaders
from .report import write_report
from .retrieval import Retrieval, Trials, try_simpler_vectors
from .user_model import UserModel
from .verdict import Verdict, judge, list_ways
from .vocabulary import Vocabulary, choose_words
from .word_table import describe_words

logger = logging.getLogger(__name__)
FEW_CONTEXTS = 8  # a word that has fewer without the judged documents gets those of these documents too
CODE_NAME_CONTEXTS = 16
NUM_CODE_NAMES = 200
KNOWN_NAME = "known_words.txt"  # the words of the texts, the most frequent first, for `UnknownWords`
MIN_KNOWN_COUNT = 2  # what occurs once may be a misspelling itself
NO_SENTENCE = "no sentence of the texts holds it"
UNREPEATED = ", texts that do not repeat the word"


@dataclass
class Adaptation:
    """A model that knows the words of some texts.

    Attributes:
        folder: Where the model was saved.
        vectors: The vectors that are injected.
        mode: How they are injected.
        verdict: Whether they help, by the texts themselves.
        report: What `report.json` holds.

    Example:
        >>> adapted = adapt("novels/*.txt", "bert-base-uncased", "my-model", bertram="my-bertram")
        >>> adapted.mode, adapted.folder.name, adapted.verdict.helps
        ('auto', 'my-model', None)
    """

    folder: Path
    vectors: WordVectors
    mode: Mode
    verdict: Verdict
    report: dict[str, Any] = field(repr=False)


class AdaptationRun:
    """The steps of one `adapt`.

    Args:
        model: The model that is to learn words.
        output: Folder of the result. What is kept for a run that is killed lies beside it.
        seed: Seed of all choices.
        processes: Those that share the induction; by default this one alone.
        show_progress: Whether to show progress bars.
    """

    def __init__(
        self,
        *,
        model: UserModel,
        output: Path,
        seed: int = 0,
        processes: Processes | None = None,
        show_progress: bool = True,
    ) -> None:
        self.model, self.output, self.seed, self.show_progress = model, output, seed, show_progress
        self.processes = processes or Processes()
        self.work = output.with_name(f"{output.name}.work")
        self.lower_case = is_uncased(model.tokenizer)
        self.seconds: dict[str, float] = {}
        self.notes: list[str] = []
        self.reasons: dict[str, str] = {}
        self.definitions: dict[str, list[str]] = {}
        self.summary: CorpusSummary
        self.counts: dict[str, int]
        self.bertram: BertramModel
        self.processor: BertramProcessor
        self.checkpoint: str
        self.vocabulary: Vocabulary
        self.contexts: dict[str, list[str]]
        self.known_contexts: dict[str, list[str]]
        self.read_again: Callable[[], Iterator[tuple[str | None, str]]]  # the texts
        self.pairs: list[SearchPair]
        self.shared: SharedText
        self.leaders: dict[str, str]
        self.given: dict[str, list[str]]  # what each vector was made from
        self.vectors: WordVectors
        self.judged: WordVectors
        self.num_judged_contexts: dict[str, int]

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        """Notes how long a step takes, and gives back the memory that it no longer needs."""
        start = time.perf_counter()
        logger.info("%s ...", name)
        yield
        release_free_memory()
        self.seconds[name] = round(time.perf_counter() - start, 1)

    def load_bertram(self, bertram: str | os.PathLike[str] | None) -> None:
        """Loads the BERTRAM model that fits the user's model."""
        table = self.model.encoder.get_input_embeddings().weight
        self.checkpoint = os.fspath(bertram or find_checkpoint(self.model.name, embedding_fingerprint(table)))
        config, _ = PreTrainedConfig.get_config_dict(self.checkpoint)
        if config.get("model_type") != BertramConfig.model_type:
            raise ValueError(
                f"Expected a BERTRAM model in {self.checkpoint}; it is of the type {config.get('model_type')!r}. Give "
                "the folder that `bertram train` wrote (bertram=, --bertram)."
            )
        # The checkpoint brings its own layers, if it has trained them; the rest is the user's.
        encoder = {} if config.get("encoder_included", True) else {"encoder": self.model.encoder}
        self.bertram = BertramModel.from_pretrained(self.checkpoint, **encoder).eval().to(self.model.encoder.device)
        self.bertram.encoder_dtype = half_precision("auto", self.bertram.device)  # as in training
        self.processor = AutoProcessor.from_pretrained(self.checkpoint)

    def read_texts(
        self,
        texts: Any,
        *,
        asked: Sequence[str],
        text_column: str,
        min_count: int,
        max_words: int,
        max_contexts: int,
        executor: Literal["local", "ray", "slurm"],
        num_workers: int,
        executor_options: Mapping[str, Any] | None,
    ) -> bool:
        """Counts words, chooses those that get vectors, and samples their sentences.

        Returns:
            Whether that is done: Slurm jobs may have been submitted.
        """
        with self._step("reading texts"):
            folder = self.work / "corpus"
            reader = PieceReader(self.model.tokenizer)
            asked = [normalize_spelling(word, self.lower_case) for word in asked]
            for word, pieces in zip(self.definitions, reader.split(list(self.definitions)), strict=True):
                if reader.breaks_up(pieces, 2):
                    asked.append(word)
                elif word not in asked:
                    self.notes.append(
                        f"{word!r:.60} is defined and stays as it is: the model has a token for it. If it means "
                        "something else to you, name it among the words."
                    )
            summary = build_corpus(
                texts,
                folder,
                lower_case=self.lower_case,
                words=list(asked) or None,
                min_count=min_count,
                max_contexts=max(max_contexts, CODE_NAME_CONTEXTS),
                text_column=text_column,
                seed=self.seed,
                executor=executor,
                num_workers=num_workers,
                executor_options=executor_options,
                show_progress=self.show_progress,
            )
            if summary is None:
                return False
            self.summary = summary
            table = load_counts(folder)
            self.counts = dict(zip(table["word"][:], table["count"][:], strict=True))
            self.vocabulary = choose_words(
                self.counts, self.model.tokenizer, asked=asked, min_count=min_count, max_words=max_words
            )
            if not self.vocabulary.rare:
                raise ValueError(
                    f"Expected words in the texts that {self.model.name} breaks into pieces and that occur at least "
                    f"{min_count} times; none of {len(self.counts):,} different words is such. Give more texts, lower "
                    "min_count, or name words."
                )
            for word, reason in self.vocabulary.left_out.items():
                self.notes.append(f"{word!r:.60} is left out: it {reason}.")
            contexts = {row["word"]: row["contexts"] for row in load_contexts(folder)} if self.summary.num_words else {}
            self.contexts = {word: contexts.get(word, []) for word in self.vocabulary.rare}
            self.known_contexts = {word: contexts[word] for word in self.vocabulary.known if word in contexts}
        return True

    def draw_documents(self, texts: Any, number: int, *, text_column: str, title_column: str | None) -> None:
        """Draws the texts by which vectors are judged."""
        with self._step("drawing documents"):
            source = texts if isinstance(texts, Dataset | IterableDataset) else list_slices(texts)
            columns: dict[str, Any] = {"text_column": text_column, "title_column": title_column}
            self.read_again = partial(read_documents, source, **columns)
            self.pairs = draw_pairs(source, number=number, seed=self.seed, **columns)
            self.shared = SharedText([f"{pair.query} {pair.document}" for pair in self.pairs])

    def induce(self, max_contexts: int, *, share_inflections: bool = True) -> None:
        """Induces the vectors to judge, without sentences of judged documents, and those to keep."""
        with self._step("inducing vectors"):
            self.leaders = choose_leaders(self.vocabulary.rare, self.definitions) if share_inflections else {}
            own = {word: texts for word, texts in self.contexts.items() if word not in self.leaders}
            others = {word: [text for text in texts if not self.shared.holds(text)] for word, texts in own.items()}
            definitions = {word: texts for word, texts in self.definitions.items() if word in own}
            few = {
                word: self.contexts[word][:max_contexts]
                for word, texts in others.items()
                if len(texts) < min(FEW_CONTEXTS, max_contexts, len(self.contexts[word]))
            }
            given = add_definitions({word: texts[:max_contexts] for word, texts in others.items()}, definitions)
            given_anew = add_definitions(few, {word: texts for word, texts in definitions.items() if word in few})
            self.given = given | given_anew
            self.judged, renewed = self._induce(given), self._induce(given_anew)
            kept = [word for word in self.judged if word not in renewed]
            self.vectors = WordVectors.join([self.judged.select(kept), renewed]) if len(renewed) else self.judged
            self.vectors, self.judged = (add_forms(each, self.leaders) for each in (self.vectors, self.judged))
            self.vectors = self.vectors.select([word for word in self.vocabulary.rare if word in self.vectors])
            self.num_judged_contexts = {word: len(self.judged.used_contexts.get(word, ())) for word in self.judged}
            # Without any sentence a vector says little more than the pieces, unless it is that of a known word.
            vectors, judged = keep_founded(self.vectors), keep_founded(self.judged)
            self.reasons |= {word: NO_SENTENCE for word in self.vectors if word not in vectors}
            self.vectors, self.judged = vectors, judged

    def _induce(self, contexts: Mapping[str, Sequence[str]]) -> WordVectors:
        parts = ResumableInduction(self.bertram, self.processor, contexts, self.work / "vectors", errors="skip")
        parts.induce(rank=self.processes.rank, num_processes=self.processes.number, show_progress=self.show_progress)
        self.processes.wait()
        return parts.join()

    def judge(self, *, compare: bool = False) -> Verdict:
        """Asks the texts whether the vectors help and, to compare, whether simpler vectors do."""
        if len(self.pairs) < 2:
            return Verdict(None, list_ways(self.vectors, {})[0])
        with self._step("judging"):
            retrieval = Retrieval(self.model.make_embedder(show_progress=self.show_progress), self.pairs)
            trials = Trials(retrieval, self.judged.words, ignore_case=self.lower_case)
            verdict = judge(trials, self.judged, self.num_judged_contexts, defined=self.definitions)
        if compare and len(trials):
            with self._step("comparing with simpler vectors"):
                measured = try_simpler_vectors(trials, self.judged.words, self.model.encoder, self.model.tokenizer)
                verdict.simpler = [
                    replace(gain, name=gain.name + suffix)
                    for gains in measured
                    for gain, suffix in zip(gains, ("", UNREPEATED), strict=True)
                    if gain is not None
                ]
        with self._step("judging code names"):
            verdict.code_names = self._judge_code_names(retrieval)
        return verdict

    def _judge_code_names(self, retrieval: Retrieval) -> list[CodeNameScore]:
        """Renames known words that have sentences enough outside the judged documents."""
        in_queries = {word for pair in self.pairs for word in split_words(pair.query.lower())}
        contexts = {
            word: [text for text in texts if not self.shared.holds(text)]
            for word, texts in self.known_contexts.items()
            if word in in_queries and word.isalpha() and len(word) > 3
        }
        reader, known = PieceReader(self.model.tokenizer), self.vocabulary.known
        candidates = [word for word, texts in contexts.items() if len(texts) >= CODE_NAME_CONTEXTS // 2]
        words = choose_known_words(retrieval, known, candidates, number=NUM_CODE_NAMES, seed=self.seed)
        chosen = sorted({word for own in words.values() for word in own})
        names = invent_names(chosen, {*known, *self.vocabulary.rare}, reader, seed=self.seed)
        return score_code_names(
            retrieval,
            self.bertram,
            self.processor,
            {row: named for row, own in words.items() if (named := [word for word in own if word in names])},
            names,
            contexts,
            seed=self.seed,
            show_progress=self.show_progress,
        )

    def save(self, verdict: Verdict) -> Adaptation:
        """Saves the model with what the verdict allows, and the report."""
        with self._step("saving"):
            mode: Mode = verdict.way.mode if verdict.way else "auto"
            chosen = verdict.way.choose(self.vectors) if verdict.way else self.vectors.select([])
            with write_whole(self.output) as (folder,):
                self.model.save(chosen, mode, folder)
                known = [word for word, count in self.counts.items() if count >= MIN_KNOWN_COUNT]
                known.sort(key=lambda word: (-self.counts[word], word))
                (folder / KNOWN_NAME).write_text("".join(f"{word}\n" for word in known), encoding="utf-8")
                report = self.describe(verdict, chosen)
                write_report(report, folder)
        return Adaptation(self.output, chosen, mode, verdict, report)

    def describe(self, verdict: Verdict, chosen: WordVectors) -> dict[str, Any]:
        """Returns the report."""
        reasons = self.reasons | {word: f"verdict: {verdict.way_name}" for word in self.vectors if word not in chosen}
        if verdict.way is not None:
            _, unreliable = divide_by_mode(chosen, verdict.way.mode)
            reasons |= {word: f"its vector is unreliable ({chosen.reliability[word]:.2f})" for word in unreliable}
            chosen = chosen.select([word for word in chosen if word not in unreliable])
        num_texts, num_touched = count_touched(self.read_again(), chosen.words, ignore_case=self.lower_case)
        return {
            "model": self.model.name,
            "checkpoint": Path(self.checkpoint).name,
            "output": self.output.name,
            "texts": {
                "num_texts": num_texts,
                "num_different_words": self.summary.num_different_words,
                "num_rare_words": self.vocabulary.num_rare,
                "num_injected_words": len(chosen),
                "num_touched_texts": num_touched,
            },
            "verdict": verdict.to_dict(),
            "words": describe_words(
                self.vocabulary,
                self.vectors,
                self.given,
                injected=chosen,
                reasons=reasons,
                leaders=self.leaders,
                definitions=self.definitions,
                embeddings=self.model.encoder.get_input_embeddings().weight,
                tokenizer=self.model.tokenizer,
            ),
            "notes": self.notes,
            "seconds": self.seconds,
            "versions": installed_versions(),
        }


def keep_founded(vectors: WordVectors) -> WordVectors:
    """Returns the vectors that come from sentences or definitions, or are those of known words."""
    misspellings = vectors.misspellings()
    return vectors.select([word for word in vectors if vectors.used_contexts.get(word) or word in misspellings])
