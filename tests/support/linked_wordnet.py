"""A WordNet of a few synsets that stand in relations, written as the plain files that NLTK reads."""

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
# For each synset: part of speech, words (of each the first synset is the most frequent sense), and pointers.
SYNSETS = {
    "entity": ("n", ["entity"], []),
    "object": ("n", ["object"], [("@", "entity")]),
    "living": ("n", ["organism"], [("@", "object")]),
    "animal": ("n", ["animal", "beast"], [("@", "living")]),
    "mammal": ("n", ["mammal"], [("@", "animal")]),
    "dog": ("n", ["dog"], [("@", "mammal")]),
    "horse": ("n", ["horse", "Equus_caballus"], [("@", "mammal")]),
    "quokka": ("n", ["quokka"], [("@", "mammal")]),
    "wallaby": ("n", ["wallaby"], [("@", "mammal")]),
    "dark": ("n", ["dark"], [("@", "mammal")]),  # a noun that mostly is an adjective
    "plant": ("n", ["plant"], [("@", "living")]),
    "tree": ("n", ["tree"], [("@", "plant")]),
    "kumquat": ("n", ["kumquat"], [("@", "tree")]),
    "lemon": ("n", ["lemon"], [("@", "tree")]),
    "warm": ("a", ["warm"], [("!", "cold"), ("&", "tepid")]),
    "cold": ("a", ["cold"], [("!", "warm"), ("&", "gelid")]),
    "tepid": ("s", ["tepid"], [("&", "warm")]),
    "gelid": ("s", ["gelid"], [("&", "cold")]),
    "shadowy": ("a", ["dark"], []),
}
INVERSE = {"@": "~"}


def write_linked_wordnet(folder):
    """Writes the files into a new folder and returns it."""
    folder.mkdir(parents=True)
    pointers = {name: list(links) for name, (_, _, links) in SYNSETS.items()}
    for name, (_, _, links) in SYNSETS.items():
        for symbol, other in links:
            if symbol in INVERSE:
                pointers[other].append((INVERSE[symbol], name))
    for part, letter in PARTS.items():
        names = [name for name, (pos, _, _) in SYNSETS.items() if pos.replace("s", "a") == letter]
        (folder / f"{part}.exc").write_text("")
        offsets = {}
        for _ in range(2):  # the first round finds where lines begin; offsets have a fixed width
            text = "  A tiny WordNet for tests.\n"
            for name in names:
                line = _data_line(name, pointers[name], offsets)
                offsets[name] = len(text)
                text += line
        (folder / f"data.{part}").write_text(text)
        senses = {}
        for name in names:
            for word in SYNSETS[name][1]:
                senses.setdefault(word.lower(), []).append(f"{offsets[name]:08d}")
        index = [
            f"{word} {letter} {len(found)} 0 {len(found)} 0 {' '.join(found)}  \n"
            for word, found in sorted(senses.items())
        ]
        (folder / f"index.{part}").write_text("  A tiny WordNet for tests.\n" + "".join(index))
    (folder / "cntlist.rev").write_text("dark%1:05:00:: 1 1\ndark%3:00:00:: 1 9\n")
    return folder


def _data_line(name, links, offsets):
    pos, words, _ = SYNSETS[name]
    number = {"n": "05", "a": "00", "s": "00"}[pos]
    fields = [f"{offsets.get(name, 0):08d}", number, pos, f"{len(words):02x}"]
    fields += [f"{word} 0" for word in words]
    fields.append(f"{len(links):03d}")
    for symbol, other in links:
        lexical = "0101" if symbol == "!" else "0000"
        fields.append(f"{symbol} {offsets.get(other, 0):08d} {SYNSETS[other][0]} {lexical}")
    return " ".join(fields) + f" | {name}  \n"
