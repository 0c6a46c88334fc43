"""Inflections: which words of a vocabulary are forms of another one, so that they can share its vector.

`words.families` asks a similar question, but the other way round: its families are rather too large than too small,
and an answer needs one word only. Here a wrong pair would give a word the vector of another, so that a pair must be in
the vocabulary and follow a regular rule. What families know of English, irregular forms and words that only look like
forms, is used here too.
"""

import re
from collections.abc import Container, Iterator, Mapping

import torch

from ..induction.word_vectors import DETAILS, WordVectors
from ..words.english import IRREGULAR_FORMS
from ..words.families import KNOWN, ONE_SYLLABLE

MIN_FORM_LENGTH = 4
MIN_BASE_LENGTH = 3
MIN_EE_LENGTH = 5  # "agreed" is of "agree", but "tweed" is not of "twee"
MIN_BASE_COUNT = 2  # a base that occurs once may be a misspelling of the form,
MIN_BASE_SHARE = 0.1  # unless the form is nearly as rare
# "class", "virus" and "sepsis" are no plurals; "genetics" is, but not of the adjective "genetic".
UNINFLECTED_ENDS = ("ss", "us", "is", "ics")
UNINFLECTED = frozenset(
    {*KNOWN, *IRREGULAR_FORMS.values()}.union(
        """
        always asbestos biceps caries chaos cosmos diabetes faeces feces forceps herpes herring https kudos lens
        measles mumps pancreas perhaps rabies rickets scabies series sometimes species triceps
        """.split()  # noqa: SIM905 (a list literal would be three times as long)
    )
)
# Several syllables that end in one vowel and one consonant: "label" has "labeled" and "labelled".
MAY_DOUBLE = re.compile(r"\w*[^aeiou\W][aeiou][^aeiouwxy\W]")
HAS_VOWEL = re.compile(r"[aeiouy]")


def share_vectors(words: Mapping[str, int]) -> dict[str, str]:
    """Finds the inflected forms among words, and the word whose vector each can share.

    Forms are English plurals and verb forms in -s, -es, -ed and -ing. A form is found only if exactly one other word
    of the vocabulary gives it by a regular rule of spelling; "bases" has none beside "base" and "basis". A base must
    occur at least twice, or a tenth as often as the form, because a rare one may be a misspelling. A form of a form
    gets the base of that.

    All rules hold for words in small letters. Words with capitals or digits inside, such as acronyms and product
    codes, only have a plural in -s, and none after a digit ("T440s" is another product than "T440"). Capitalized words
    may be names ("Adams") and have no forms; nor have terms of several parts.

    Args:
        words: The words, and how often each occurs.

    Returns:
        The base of each form, in the order of the forms in `words`.

    Example:
        >>> share_vectors({"stent": 9, "stents": 5, "stenting": 3, "NSAID": 4, "NSAIDs": 6, "diabetes": 8})
        {'stents': 'stent', 'stenting': 'stent', 'NSAIDs': 'NSAID'}
    """
    bases: dict[str, set[str]] = {}
    for base in words:
        for form in (*_regular_forms(base), *_irregular_plurals(base)):
            if form in words and form != base:
                bases.setdefault(form, set()).add(base)
    shared: dict[str, str] = {}
    for form in sorted(bases, key=len):  # a base is shorter than its form, so that its own base is known
        base = min(bases[form])
        if len(bases[form]) == 1 and form in _regular_forms(base) and _may_be_form(form, base, words):
            shared[form] = shared.get(base, base)
    return {form: shared[form] for form in words if form in shared}


def choose_leaders(counts: Mapping[str, int], definitions: Container[str]) -> dict[str, str]:
    """Returns, for words that share the vector of another of their inflected forms, that other: the most frequent one.
    A word with definitions of its own keeps its vector.

    Example:
        >>> choose_leaders({"stent": 2, "stents": 5, "quokka": 3}, {})
        {'stent': 'stents'}
    """
    groups: dict[str, list[str]] = {}
    for form, base in share_vectors(counts).items():
        groups.setdefault(base, [base]).append(form)
    leaders: dict[str, str] = {}
    for group in groups.values():
        leader = max(group, key=lambda word: (word in definitions, counts[word], -len(word), word))
        leaders |= {word: leader for word in group if word != leader and word not in definitions}
    return leaders


def add_forms(vectors: WordVectors, leaders: Mapping[str, str]) -> WordVectors:
    """Returns vectors with those of words that share another's."""
    forms = {form: leader for form, leader in leaders.items() if leader in vectors}
    details = {
        name: {form: found[leader] for form, leader in forms.items() if leader in found}
        for name in DETAILS
        if name != "failed"
        for found in [getattr(vectors, name)]
    }
    rows = torch.stack([vectors[leader] for leader in forms.values()]) if forms else vectors.embeddings[:0]
    added = WordVectors(list(forms), rows, vectors.embedding_fingerprint, encoder=vectors.encoder, **details)
    return WordVectors.join([vectors, added])


def _may_be_form(form: str, base: str, words: Mapping[str, int]) -> bool:
    """Whether nothing but the rule itself speaks against a form of a base."""
    return (
        len(form) >= MIN_FORM_LENGTH
        and form not in UNINFLECTED
        and not form.endswith(UNINFLECTED_ENDS)
        and IRREGULAR_FORMS.get(form, base) == base
        and (words[base] >= MIN_BASE_COUNT or words[base] >= MIN_BASE_SHARE * words[form])
    )


def _regular_forms(base: str) -> set[str]:
    """Returns the forms that a base has by regular rules."""
    if len(base) < MIN_BASE_LENGTH or not base.isalnum():
        return set()
    if base.isalpha() and base.islower():
        return {*_s_forms(base), *_verb_forms(base)}
    is_code = any(character.isupper() or character.isdigit() for character in base[1:])
    return {f"{base}s"} if is_code and base[-1].isalpha() else set()


def _s_forms(base: str) -> Iterator[str]:
    """Yields the forms in -s and -es."""
    if re.search(r"[^aeiou]y$", base):
        yield f"{base[:-1]}ies"
    elif re.search(r"(?:s|x|z|sh)$", base):
        yield f"{base}es"
        if base.endswith("z"):
            yield f"{base}zes"  # "quizzes"
    else:
        yield f"{base}s"
        if re.search(r"(?:ch|[^aeiou]o)$", base):  # "stomachs" and "churches", "photos" and "potatoes"
            yield f"{base}es"


def _verb_forms(base: str) -> Iterator[str]:
    """Yields the forms in -ed and -ing; a base without a vowel before is no verb ("str", "the")."""
    if not HAS_VOWEL.search(base.removesuffix("e")):
        return
    if base.endswith("e"):
        if not base.endswith("ee") or len(base) >= MIN_EE_LENGTH:
            yield f"{base}d"
        yield f"{base}ing" if base.endswith(("ee", "oe", "ye")) else f"{base[:-1]}ing"
        return
    if re.search(r"[^aeiou]y$", base):
        yield f"{base[:-1]}ied"
        yield f"{base}ing"
        return
    plain = f"{base}k" if base.endswith("ic") else base  # "panicked"
    sounds = base.replace("qu", "q")  # whose "u" is no vowel
    must_double = re.fullmatch(ONE_SYLLABLE, sounds)
    may_double = must_double or MAY_DOUBLE.fullmatch(sounds)
    for stem in ([] if must_double else [plain]) + ([base + base[-1]] if may_double else []):
        yield f"{stem}ed"
        yield f"{stem}ing"


def _irregular_plurals(base: str) -> Iterator[str]:
    """Yields plurals that only tell that a form may be of another base: "bases" of "basis", "leaves" of "leaf"."""
    for ending, plural in (("is", "es"), ("ix", "ices"), ("ex", "ices"), ("f", "ves"), ("fe", "ves")):
        if base.endswith(ending):
            yield base.removesuffix(ending) + plural
