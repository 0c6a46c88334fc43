"""What better vectors could gain: tests on words whose true vectors are known, beside those of rare words.

    bertram corpus data/crw-dev/context heldout --unit line --lower-case --words data/heldout-words.txt \
        --max-contexts 64
    python examples/ceilings.py --model all-MiniLM-L6-v2 --contexts heldout --definitions data/wordnet.jsonl \
        --pairs MEN-TR-3k.tsv --pairs RW-STANFORD.tsv --output results/pieces-all-MiniLM-L6-v2/ceilings.json

Definitions: words that have a token, none of them trained on, search their definition among those of other words; read
by their own token, or cut into pieces as if unknown, with vectors from their contexts and without. Similarity: pairs of
words as people rate them (word, word, rating, with tabs between), by the true vectors of the words that have a token,
and of the same pairs by the mean of the pieces into which they are cut.
"""

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from scipy.stats import spearmanr
from transformers import AutoModel, AutoProcessor, AutoTokenizer

from bertram_hf import BertramModel, WordVectors, find_checkpoint
from bertram_hf.corpus import load_contexts
from bertram_hf.evaluation import SentenceEmbedder
from bertram_hf.evaluation.embedding import reciprocal_ranks
from bertram_hf.evaluation.statistics import bootstrap_interval
from bertram_hf.induction import ContextDraws
from bertram_hf.utils.models import unit_rows
from bertram_hf.words.families import word_family
from bertram_hf.words.unknown import UnknownSplitter

NUM_CONTEXTS, NUM_TEXTS, NUM_DRAWS = (1, 4, 16), 2_000, 2
Cuts = Mapping[str, list[int]]


class BareWords:
    """Embeds single words, by their pieces and vectors, as `SentenceEmbedder` embeds texts."""

    def __init__(self, encoder: Any, tokenizer: Any) -> None:
        self.encoder, self.table = encoder, encoder.get_input_embeddings().weight.detach()
        self.first, self.last = self.table[tokenizer.cls_token_id][None], self.table[tokenizer.sep_token_id][None]
        self.slash = self.table[tokenizer.convert_tokens_to_ids("/")][None]

    @torch.inference_mode()
    def embed(self, cuts: Cuts, vectors: WordVectors | None = None, *, replace: bool = False) -> torch.Tensor:
        """Returns the embeddings (W, H); slashes are left out of the mean."""
        found = []
        for word, pieces in cuts.items():
            rows, pooled = [self.first, self.table[pieces]], [1] * (1 + len(pieces))
            if vectors is not None:
                vector = vectors[word][None]
                rows = [self.first, vector] if replace else [*rows, self.slash, vector]
                pooled = [1, 1] if replace else [*pooled, 0, 1]
            inputs = torch.cat([*rows, self.last])[None]
            states = self.encoder(inputs_embeds=inputs).last_hidden_state[0]
            found.append(states[torch.tensor([*pooled, 1]).bool()].mean(dim=0))
        return unit_rows(torch.stack(found))


def score_definitions(
    arguments: argparse.Namespace, encoder: Any, tokenizer: Any, words: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Returns the mean reciprocal rank of each way to read the words, with 95% intervals."""
    definitions = {}
    for line in Path(arguments.definitions).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        definitions[row["word"]] = [text for text in row["definitions"] if row["word"] not in text.lower()]
    own = {word: definitions[word] for word in words if definitions.get(word)}
    families = set(map(word_family, own))
    others = sorted(word for word, texts in definitions.items() if texts and word_family(word) not in families)
    others = random.Random(arguments.seed).sample(others, NUM_TEXTS - len(own))
    texts = list(dict.fromkeys([*(t for kept in own.values() for t in kept), *(definitions[w][0] for w in others)]))
    rows = {text: row for row, text in enumerate(texts)}
    most = max(map(len, own.values()))
    places = torch.tensor([[rows[t] for t in kept] + [rows[kept[0]]] * (most - len(kept)) for kept in own.values()])
    found, bare = SentenceEmbedder(encoder, tokenizer).embed(texts), BareWords(encoder, tokenizer)

    def score(embeddings: torch.Tensor) -> list[float]:
        ranks = reciprocal_ranks(embeddings, found, places)
        return [round(float(x), 4) for x in (ranks.mean(), *bootstrap_interval(len(ranks), lambda i: ranks[i].mean()))]

    splitter = UnknownSplitter(tokenizer)
    checkpoint = arguments.bertram or find_checkpoint(Path(arguments.model).name)
    model, processor = (
        BertramModel.from_pretrained(checkpoint, encoder=arguments.model),
        AutoProcessor.from_pretrained(checkpoint),
    )
    scores: dict[str, Any] = {"num_words": len(own), "num_texts": len(texts)}
    scores["own token"] = score(bare.embed({word: tokenizer.convert_tokens_to_ids([word]) for word in own}))
    for name, hard in (("without any token of the family", True), ("without the own token", False)):
        cuts = {word: cut for word in own if (cut := splitter.split(word, hard=hard))}
        kept = processor.with_pieces(cuts)
        kept.look_alikes = None
        draws = ContextDraws(model, kept, {word: words[word] for word in own}, max_contexts=2 * max(NUM_CONTEXTS))
        scores[name] = {"pieces": score(bare.embed(cuts))}
        for number in NUM_CONTEXTS:
            drawn = [draws.induce_words(number) for _ in range(NUM_DRAWS)]
            for mode in ("slash", "replace"):
                every = [score(bare.embed(cuts, vectors, replace=mode == "replace")) for vectors in drawn]
                scores[name][f"{mode}, {number}"] = [
                    round(sum(part) / len(part), 4) for part in zip(*every, strict=True)
                ]
    return scores


def score_similarity(paths: Sequence[str], encoder: Any, tokenizer: Any) -> dict[str, Any]:
    """Returns Spearman's correlation for pairs both of whose words have a token."""
    splitter, table, known = (
        UnknownSplitter(tokenizer),
        encoder.get_input_embeddings().weight.detach(),
        tokenizer.get_vocab(),
    )
    scores: dict[str, Any] = {}
    for path in paths:
        lines = [line.split("\t")[:3] for line in Path(path).read_text(encoding="utf-8").splitlines()]
        pairs = [
            (a.lower(), b.lower(), float(rating)) for a, b, rating in lines if {a.lower(), b.lower()} <= known.keys()
        ]
        # As in CRW, one word is read by its own token, and the other by what is known of it.
        pairs = [
            (a, b, rating) for a, b, rating in pairs if splitter.split(b, hard=True) and splitter.split(b, hard=False)
        ]
        mean, ratings = table.mean(dim=0), [rating for *_, rating in pairs]
        left = unit_rows(table[[known[a] for a, _, _ in pairs]] - mean)
        scores[Path(path).stem] = row = {"num_pairs": len(pairs)}
        for name, hard in (("own token", None), ("easy pieces", False), ("hard pieces", True)):
            cuts = [[known[b]] if hard is None else splitter.split(b, hard=hard) for _, b, _ in pairs]
            right = unit_rows(torch.stack([table[cut].mean(dim=0) for cut in cuts]) - mean)
            row[name] = round(float(spearmanr((left * right).sum(dim=1), ratings).statistic), 4)
    return scores


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--bertram", help="checkpoint; by default the one for the model")
    parser.add_argument("--contexts", required=True, help="folder of `bertram corpus`")
    parser.add_argument("--definitions", required=True, help="JSON lines with `word` and `definitions`")
    parser.add_argument("--pairs", action="append", default=[], help="rated pairs; may be given more often")
    parser.add_argument("--output", required=True, help="JSON file")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    encoder, tokenizer = (
        AutoModel.from_pretrained(arguments.model).eval(),
        AutoTokenizer.from_pretrained(arguments.model),
    )
    words = {row["word"]: row["contexts"] for row in load_contexts(arguments.contexts)}
    scores = {"similarity": score_similarity(arguments.pairs, encoder, tokenizer)}
    scores["definitions"] = score_definitions(arguments, encoder, tokenizer, words)
    content = json.dumps(vars(arguments) | scores, indent=2)
    Path(arguments.output).write_text(content + "\n", encoding="utf-8")
    print(content)


if __name__ == "__main__":
    main()
