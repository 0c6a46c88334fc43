"""What words that are baked into a tokenizer cost a text: plain, injected, and baked by the number of words.

    python benchmarks/baking.py --json benchmarks/results/baking.json

The tokenizer is that of all-MiniLM-L6-v2, the sentences are from novels, `--share` of them with a rare word; the
other words are invented. Baked words keep their pieces beside their vectors (a rule of the normalizer for each) or are
replaced by them (a token for each). Every batch goes through all candidates in turn; a ratio is to the plain tokenizer.
"""

import argparse
import json
import random
from pathlib import Path

import torch
import transformers
from injection import BATCH_SIZE, ENCODER, compare, load_sentences, tokenizing
from transformers import AutoModel, AutoTokenizer

from bertram_hf import BertramEmbeddingInjector, WordVectors, bake


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, nargs="+", default=[100, 1_000, 5_000])
    for name, default in (("repetitions", 5), ("seed", 0), ("sentences", 320)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--share", type=float, default=0.1, help="share of sentences with a rare word")
    parser.add_argument("--json", metavar="OUT", help="write settings and results to this file")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    tokenizer, model = AutoTokenizer.from_pretrained(ENCODER), AutoModel.from_pretrained(ENCODER).eval()
    rare, _, texts = load_sentences(arguments.sentences, arguments.share, arguments.seed)
    batches = [texts[start : start + BATCH_SIZE] for start in range(0, len(texts), BATCH_SIZE)]
    draw = random.Random(arguments.seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    invented = ["quo" + "".join(draw.choices(letters, k=8)) for _ in range(max(arguments.words))]
    num_tokens = sum(map(len, tokenizer(texts)["input_ids"]))
    results = {}
    for number in arguments.words:
        words = [*rare, *invented][:number]
        vectors = WordVectors(words, torch.randn(number, model.config.hidden_size))
        injector = BertramEmbeddingInjector(model, tokenizer, vectors, mode="slash")
        tokenizers = {"plain": tokenizer, "plain again": tokenizer, "injector": injector.tokenizer}
        injector.remove()
        tokenizers |= {f"baked, {mode}": bake(model, tokenizer, vectors, mode=mode)[1] for mode in ("replace", "slash")}
        text_only = {name: tokenizing(given) for name, given in tokenizers.items()}
        results[number] = compare(f"{number} words", text_only, batches, arguments.repetitions, num_tokens)
    milliseconds = {
        number: {name: 1000 * found["seconds"] / len(texts) for name, found in measured.items()}
        for number, measured in results.items()
    }
    print("milliseconds a text:", json.dumps(milliseconds, indent=2))
    if arguments.json:
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        content = vars(arguments) | versions | {"results": results, "milliseconds_a_text": milliseconds}
        Path(arguments.json).write_text(json.dumps(content, indent=2))


if __name__ == "__main__":
    main()
