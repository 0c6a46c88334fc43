"""Word families: which words must not stand on both sides of a split.

A family is found from the spelling alone, by English rules, and rather too large than too small: a word too many that
is kept out of training costs little, while *carburettor* in training would tell a test what *carburettors* means.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from ..processing_look_alikes import VOWELS
from ..processing_words import normalize_text
from .english import BOUND_ROOTS, FAMILIES, IRREGULAR_FORMS, UNPREFIXED, WHOLE

KNOWN = frozenset(WHOLE).union(FAMILIES.values())  # nothing is taken off from these
# What may be taken off, and how many letters must be left.
SUFFIXES = {
    3: ("er", "ful", "hood", "ity", "less", "ly", "ment", "ness", "ship"),
    4: (
        "able",
        "age",
        "al",
        "an",
        "ant",
        "ar",
        "ary",
        "ate",
        "atic",
        "ation",
        "ative",
        "ator",
        "atory",
        "dom",
        "ee",
        "eer",
        "en",
        "ent",
        "ery",
        "ia",
        "ial",
        "ian",
        "ible",
        "ic",
        "ical",
        "ician",
        "ific",
        "ify",
        "ious",
        "ish",
        "ism",
        "ist",
        "istic",
        "ition",
        "itive",
        "itor",
        "ive",
        "ize",
        "ological",
        "ologist",
        "ology",
        "or",
        "ory",
        "ous",
        "ry",
        "some",
        "ty",
        "ual",
        "uous",
        "ure",
        "ward",
        "wise",
        "y",
    ),
    5: ("ion",),
}
# Some of them only follow certain letters: not "opini-on", "sec-ure", "decl-are", "expl-ore", "portra-y".
STEM_ENDS = {"ion": ("s", "t", "x"), "ure": ("s", "t"), "ar": ("ul", "il", "ol"), "or": ("n", "r", "s", "t", "v", "y")}
STEM_ENDS |= {"y": tuple("bcdfghjklmnpqrstvwxz")}
MIN_LENGTHS = {suffix: length for length, suffixes in SUFFIXES.items() for suffix in suffixes}
LONGEST_FIRST = sorted(MIN_LENGTHS, key=lambda suffix: (-len(suffix), suffix))
# What may be taken off the beginning, and how many letters of a stem must be left. Further ones only negate adjectives.
PREFIXES = {"counter": 5, "super": 4, "under": 6, "inter": 5, "multi": 4, "trans": 6, "over": 6, "anti": 4, "semi": 4}
PREFIXES |= {"sub": 5, "non": 4, "dis": 4, "mis": 4, "out": 5, "pre": 5, "en": 4, "re": 4, "un": 3}
SURE_PREFIXES = ("un", "dis", "non", "mis")
NEGATION = re.compile(
    r"(in|im(?=[bmp])|il(?=l)|ir(?=r))\w{3,}(?:[ai]ble|ate|[ae]nt|al|ive|ous|fect|ite|ar|ure|acy|ity|\w{6}ed)"
)
ONE_SYLLABLE = r"[^aeiouy\W]*[aeiouy][^aeiouwxy\W]"  # which ends in one consonant; without -e it would be doubled
NEEDS_E = re.compile(rf"\w*(?:at|i[sz]|[ts]ur|ag|[ai]bl|nc|[^s\W]s|[vz])|{ONE_SYLLABLE}")
RESPELLINGS = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"(?<=\w{3})our", "or"),  # "colour"
        (r"(?<=[^aeiou\W])re$", "er"),  # "fibre"
        (r"(?<=\w{3}[^aeoucv\W]|\w\wic)is(?=e$|ation$|able$|er$)", "iz"),  # "realise"
        (r"(?<=i)fication$", "fy"),
        (r"(?<=[ai])bly$", "ble"),
        (r"(?<=\w{3}i)ck$", "c"),  # "panicked"
        (r"(?<=[ai])bility$", "ble"),
        (r"(?<=[aeiouy])(\w*[ae])nc[ey]$", r"\1nt"),  # "silence" and "silent", "agency" and "agent"
        (r"ptcy$", "pt"),
        (r"(?<=\w{3})acy$", "ate"),  # "piracy"
        (r"(?<=\w{3})ere$", "er"),  # as "severity" and "adhering"
        (r"crat$", "crate"),  # as "democracy" and "democratic"
        (r"(?<=\w)iful$", "y"),
        (r"(?<=\w{2})(ly|the|pha)(?:s[ie]s|se|ze|st|t?ical|t?ics?|si[sz]e|ti[sz]e|ti[sz]ation)$", r"\1s"),
    )
)
# What changes within a family at the end of a stem.
ALTERNATIONS = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"(?<=\w{5})a$|(?<=\w\wi)a$", ""),  # "canada" and "canadian"
        (r"(?<=\w{3})(?:ie|i|o|(?<![aeo])y)$", ""),
        (r"(?<=\w{3}n)d$|(?<=\w{3}[aeiou])d$", "s"),  # "extend" and "extension", "divide" and "division"
        (r"mi(?:t|ss)$", "mis"),  # "submit" and "submission"
        (r"(?<!ad)vert$", "vers"),
        (r"cei(?:v|pt)$", "cept"),
        (r"scrib$", "script"),
        (r"olv$", "olut"),
        (r"duc$", "duct"),
        (r"pel$", "puls"),
        (r"(?<=\w\w)sum$", "sumpt"),
        (r"claim$", "clam"),
        (r"(?<=\w[^c\W][tbdg])r$", ""),  # "central" and "center"
        (r"(?<=\w\wi)c$|z$", "s"),  # "advice"
        (r"(?<=[aeioulr])f(?=e?$)", "v"),  # "belief"
    )
)


class FamilySplit(NamedTuple):
    """Words of two sides that share no family, each in the order given."""

    train: list[str]
    heldout: list[str]


def word_family(word: str) -> str:
    """Returns the key of a word's family; words of one family have one key.

    Irregular forms are looked up; inflections, derivational suffixes and prefixes are taken off while enough is left;
    spelling that changes in between (doubled letters, -e, -y, f/v, c/s, British and American) is evened out. The parts
    of a term with spaces or hyphens are treated one by one.

    Example:
        >>> word_family("carburettors") == word_family("carburetted") == word_family("Carburettor")
        True
        >>> word_family("accusation") == word_family("accusing"), word_family("horse") == word_family("house")
        (True, False)
    """
    return " ".join(_stem(part) for part in re.split(r"[\s\-_]+", normalize_text(word).casefold()) if part)


def group_families(words: Iterable[str]) -> dict[str, list[str]]:
    """Returns the families among words, by key, in the order in which they first appear.

    Example:
        >>> list(group_families(["poet", "horse", "Poetry", "poets"]).values())
        [['poet', 'Poetry', 'poets'], ['horse']]
    """
    families: dict[str, list[str]] = {}
    for word in words:
        families.setdefault(word_family(word), []).append(word)
    return families


def drop_families(words: Iterable[str], heldout: Iterable[str]) -> list[str]:
    """Returns the words that are in no family of a held-out word.

    Example:
        >>> drop_families(["academy", "horses", "zebra"], heldout=["academic", "horse"])
        ['zebra']
    """
    heldout_families = {word_family(word) for word in heldout}
    return [word for word in words if word_family(word) not in heldout_families]


def split_by_family(words: Iterable[str], heldout_share: float, *, seed: int = 0) -> FamilySplit:
    """Splits words so that no family stands on both sides.

    A hash of seed and family decides, so that a word's side depends neither on the order nor on the other words.

    Args:
        words: The words.
        heldout_share: Expected share of families that are held out, between 0 and 1.
        seed: Another seed gives another split.

    Raises:
        ValueError: If the share is not between 0 and 1.
    """
    if not 0 <= heldout_share <= 1:
        raise ValueError(
            f"heldout_share must be a share between 0 and 1; got {heldout_share}. For 10 %, pass heldout_share=0.1."
        )
    split = FamilySplit([], [])
    for word in words:
        digest = hashlib.sha256(f"{seed} {word_family(word)}".encode(errors="surrogatepass")).digest()
        is_heldout = int.from_bytes(digest[:8], "big") / 2**64 < heldout_share
        (split.heldout if is_heldout else split.train).append(word)
    return split


def _stem(word: str) -> str:
    word = word.removesuffix("'s").removesuffix("’s").strip("'’")
    base = _base(word)
    stem = _strip_suffixes(base)
    if not base.startswith(UNPREFIXED) and stem not in KNOWN:
        negation = NEGATION.fullmatch(base.removesuffix("ly").removesuffix("ness"))
        for prefix, min_length in (PREFIXES | ({negation[1]: 4} if negation else {})).items():
            if not base.startswith(prefix):
                continue
            # "named" of "unnamed" is "name"; "nam" would tell less
            rest = (word if word.endswith(("ed", "ing")) else base).removeprefix(prefix)
            rest = _strip_suffixes(_base(rest))
            letters = rest.removesuffix("e")
            # "enjoyment" has no -ment left if "joyment" is looked at
            is_as_short = prefix in SURE_PREFIXES or rest in KNOWN or len(letters) <= len(stem) - len(prefix)
            if (
                len(letters) >= min_length
                and is_as_short
                and _has_vowel(rest)
                and (prefix == "un" or letters not in BOUND_ROOTS)
            ):
                return _even_out(rest)
    return _even_out(stem)


def _base(word: str) -> str:
    """Looks up irregular forms, takes off an inflection, and writes what has several spellings in one."""
    if word in IRREGULAR_FORMS:
        word = IRREGULAR_FORMS[word]
    else:
        is_plural = word.endswith("s")
        word = _take_off_inflection(re.sub(r"(?<=ing|.ed)ly$", "", word))
        word = IRREGULAR_FORMS.get(word, word) if is_plural else word
    word = FAMILIES.get(word, word)
    if word not in KNOWN:
        for pattern, spelling in RESPELLINGS:
            word = pattern.sub(spelling, word)
    return FAMILIES.get(word, word)


def _take_off_inflection(word: str) -> str:
    """Takes off one of -s, -ed, -ing and -est, as far as the spelling tells."""
    if _find_known(word):
        return word
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if re.search(r"(?:s|x|z|ch|sh|o)es$", word) and len(word) > 4:
        return word[:-1] if re.search(r"[^s]ses$|zes$", word) else word[:-2]
    if re.search(r"[^sui]s$", word) and len(word) > 3:
        return _take_off_inflection(word[:-1]) if word.endswith("ings") else word[:-1]
    if word.endswith("eed"):
        return word if len(word) < 6 or word.endswith(("ceed", "speed", "breed", "indeed")) else word[:-1]
    for suffix, min_length in (("ed", 2), ("ing", 2), ("est", 3)):
        stem = word.removesuffix(suffix)
        if stem != word and len(stem) >= min_length and _has_vowel(stem):
            # "lowest" and "happiest" are superlatives, "interest" is none
            if suffix == "est" and not stem.endswith("i") and len(re.findall("[aeiouy]+", stem)) > 1:
                return word
            if suffix == "est":
                return stem[:-1] + "y" if stem.endswith("i") else _restore(stem)
            return f"{stem}e" if stem.endswith("ic") else _restore(stem)  # "noticed"
    return word


def _strip_suffixes(word: str) -> str:
    """Takes off one suffix after the other, longest first."""
    while (shorter := _strip_one(word)) != word:
        word = FAMILIES.get(shorter, shorter)  # which is known, so that this ends
    return word


def _strip_one(word: str) -> str:
    if _find_known(word) or word.endswith(("rry", "ffer", "gree")):
        return word
    for suffix in LONGEST_FIRST:
        stem = word.removesuffix(suffix)
        if stem == word or len(stem) < MIN_LENGTHS[suffix] or not _has_vowel(stem):
            continue
        if suffix in STEM_ENDS and not stem.endswith(STEM_ENDS[suffix]):
            continue
        if suffix in ("ition", "itive", "itor") and stem[-1] in "bd":  # "prohibition"
            continue
        if len(suffix) < 4 and suffix[0] in VOWELS and stem[-1] == "e":  # "appeal", "screen"
            continue
        if stem.endswith("i") and suffix in SUFFIXES[3] and suffix != "ity":  # "happiness"
            return f"{stem[:-1]}y"
        return _restore(stem) if suffix[0] in VOWELS else _base(stem)
    return word


def _restore(stem: str) -> str:
    """Writes the end of a stem as it was before a suffix: "runn" as "run", "rid" as "ride"."""
    if known := _find_known(stem):
        return known
    if len(stem) > 3 and (undoubled := _undouble(stem)) != stem:
        return undoubled
    return stem + "e" if NEEDS_E.fullmatch(stem) else stem


def _undouble(stem: str) -> str:
    """Writes a doubled consonant once; "class", "ball", and "kill" unlike "labell", keep theirs."""
    is_doubled = stem[-1] == stem[-2] and (
        stem[-1] in "bdgmnprt" or (stem[-1] == "l" and len(stem) > 5 and not stem.endswith("ball"))
    )
    return stem[:-1] if is_doubled else stem


def _find_known(word: str) -> str | None:
    """Returns the known word that this is, but for a final -e."""
    return next((known for known in (word, f"{word}e", word.removesuffix("e")) if known in KNOWN), None)


def _has_vowel(text: str) -> bool:
    return not VOWELS.isdisjoint(text)


def _even_out(stem: str) -> str:
    """Writes endings that change within a family in one way."""
    if known := _find_known(stem):
        return known
    if len(stem) > 3 and not re.fullmatch(rf"{ONE_SYLLABLE}e", stem):
        stem = stem.removesuffix("e")
    if len(stem) > 4:
        stem = _undouble(stem)
    for pattern, spelling in ALTERNATIONS:
        stem = pattern.sub(spelling, stem)
    return stem
