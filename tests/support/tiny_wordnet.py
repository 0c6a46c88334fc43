"""A WordNet of a few synsets in WordNet's own file format (wndb(5WN), senseidx(5WN))."""

from collections import Counter, defaultdict

# Part of speech, and the words of a synset with how often WordNet has counted each in this sense.
SYNSETS = [
    ("noun", {"laundry": 3, "wash": 1, "washing": 0, "washables": 0}),
    ("noun", {"laundry": 1, "cleaning_shop": 0}),
    ("noun", {"vineyard": 2, "vinery": 0}),
    ("noun", {"answer": 5, "reply": 4}),
    ("verb", {"answer": 9, "respond": 2}),
    ("verb", {"improve": 7, "better": 1, "ameliorate": 0, "meliorate": 0}),
    ("verb", {"walk": 6, "foot_it": 0, "undergo": 0}),
    ("verb", {"see": 40, "behold": 0}),
    ("noun", {"saw": 1, "proverb": 1}),
    ("adj", {"good": 30, "goodly": 0}),
    ("adj", {"Japanese": 4, "Nipponese": 0}),
    ("adj", {"excellent": 4, "fantabulous": 0, "first-class": 0}),
    ("adv", {"often": 8, "ofttimes": 0, "oftentimes": 1}),
    ("noun", {"in": 0, "inch": 0}),
    ("verb", {"put": 5, "place": 2}),
    ("noun", {"home": 3, "place": 2}),
    ("adv", {"home": 9, "homeward": 0}),
]
LETTERS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
NUMBERS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
LEXICOGRAPHER_FILES = {"noun": 6, "verb": 30, "adj": 0, "adv": 2}
EXCEPTIONS = {"verb": "saw see\n", "adj": "better good\n"}


def write_tiny_wordnet(folder):
    """Writes the files into a folder and returns it."""
    counts = {}
    for pos, letter in LETTERS.items():
        lines, offset = "  1 a line of the licence\n", 0
        senses = defaultdict(list)
        lexical_ids = Counter()
        for synset_pos, words in SYNSETS:
            if synset_pos != pos:
                continue
            offset = len(lines.encode())
            named = []
            for word, count in words.items():
                number = lexical_ids[word.lower()]
                lexical_ids[word.lower()] += 1
                named.append(f"{word} {number:x}")
                senses[word.lower()].append((count, offset))
                key = f"{word.lower()}%{NUMBERS[pos]}:{LEXICOGRAPHER_FILES[pos]:02d}:{number:02d}::"
                counts[key] = count
            frames = "01 + 02 00 " if pos == "verb" else ""
            lines += f"{offset:08d} {LEXICOGRAPHER_FILES[pos]:02d} {letter} {len(words):02x} {' '.join(named)} 000 "
            lines += f"{frames}| a gloss  \n"
        (folder / f"data.{pos}").write_text(lines, encoding="utf-8")
        index = "  1 a line of the licence\n"
        for word, found in sorted(senses.items()):
            offsets = [f"{offset:08d}" for _, offset in sorted(found, key=lambda sense: -sense[0])]
            num_tagged = sum(count > 0 for count, _ in found)
            index += f"{word} {letter} {len(found)} 0 {len(found)} {num_tagged} {' '.join(offsets)}  \n"
        (folder / f"index.{pos}").write_text(index, encoding="utf-8")
        (folder / f"{pos}.exc").write_text(EXCEPTIONS.get(pos, ""), encoding="utf-8")
    lines = "".join(f"{key} 1 {count}\n" for key, count in sorted(counts.items()) if count)
    (folder / "cntlist.rev").write_text(lines, encoding="utf-8")
    return folder
