"""From text to sentences: splitting them, and reading long files in pieces that do not cut any."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, Literal

Unit = Literal["line", "paragraph"]
HEAD_SIZE = 1 << 16
PAGE_WIDTH = 120  # characters
BLOCK_SIZE = 1 << 20
CLOSERS = "\"'”’»)\\]}›」』"
OPENERS = "\"'“‘«([{‹「『*_—–-"
# Runs, not single stops, and nothing after them that could fail: so a line of a million dots takes linear time.
STOP = re.compile(rf"[.!?…。！？｡]+[{CLOSERS}]*")
STOPS_WITHOUT_SPACE = frozenset("。！？｡")
BLANK_LINE = re.compile(r"\n\s*\n")
BLANK_LINE_BYTES = re.compile(rb"\n[ \t\r\f\v]*\n")
LAST_CHARACTERS = tuple(".!?…。！？｡:")
# Of wrapped lines.
MIN_WIDTH, MAX_WIDTH = 30, 160
DOTTED = re.compile(r"(?:\w\.)+\w\Z")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Before a name or a number, so never the end of a sentence.
TITLES = _words(
    "mr mrs ms messrs mme mlle dr prof rev hon st gen col capt lt sgt maj cmdr adm gov sen rep pres supt esq mt ft "
    "vs cf viz eg ie e.g i.e approx ca dept ed eds trans fr sr"
)


BEFORE_NUMBERS = _words("no nos p pp vol vols fig figs ch chap sec art eq op cap lib")


# May end a sentence: they do if the next word is one that begins sentences.
DOUBTFUL = _words("etc inc ltd co corp jr bros ave blvd rd al jan feb mar apr aug sept oct nov dec")


STARTERS = _words(
    "the a an he she it they we you i this that these those there his her its their our my but and or so in on at as "
    "if when while what who why how then now not no yes for from with after before however"
)


def split_sentences(text: str, unit: Unit = "paragraph") -> Iterator[str]:
    """Yields the sentences of a text, with single spaces for all white space in them.

    A sentence ends at a stop, with the quotes and brackets that close after it, before white space and something that
    can begin a sentence: not before a small letter, and not after titles ("Mr."), initials ("J.") or such abbreviations
    as "e.g.". A stop that stands alone, as in tokenised text, always ends one. "。！？" need no space. Time is linear.

    Args:
        text: The text.
        unit: What ends a sentence besides stops: the end of every "line", or of a "paragraph" (a blank line), in which
            a line break is a space.

    Yields:
        The sentences; none is empty.

    Example:
        >>> list(split_sentences('Mr. J. Hyde\\nleft. "Why?" asked Dr. Poole.'))
        ['Mr. J. Hyde left.', '"Why?" asked Dr. Poole.']
    """
    for paragraph in text.split("\n") if unit == "line" else BLANK_LINE.split(text):
        paragraph = paragraph.replace("\n", " ")
        start = 0
        has_case = not paragraph.islower()
        for stop in STOP.finditer(paragraph):
            first, end = stop.span()
            if _ends_sentence(paragraph, first, end, has_case):
                sentence = _single_spaced(paragraph[start:end])
                start = end
                if sentence:
                    yield sentence
        sentence = _single_spaced(paragraph[start:])
        if sentence:
            yield sentence


def _single_spaced(text: str) -> str:
    """Returns a text with single spaces for all white space in it. All but the space is not printable."""
    return text.strip() if text.isprintable() and "  " not in text else " ".join(text.split())


def _ends_sentence(text: str, start: int, end: int, has_case: bool) -> bool:
    """Whether the stop at `start` to `end` ends a sentence."""
    if not text.isascii() and not STOPS_WITHOUT_SPACE.isdisjoint(text[start:end]):
        return True
    following = text[end : end + 24]
    if following and not following[0].isspace():
        return False
    if start == 0 or text[start - 1].isspace():
        return True
    following = following.lstrip().lstrip(OPENERS).lstrip()
    if not following:
        return True
    if has_case and following[0].islower():
        return False
    if text[start] != "." or text[start + 1 : start + 2] == ".":
        return True
    last = text[max(0, start - 24) : start].rsplit(None, 1)[-1].lstrip(OPENERS)
    folded = last.lower()
    if folded in TITLES:
        return False
    if folded in BEFORE_NUMBERS and following[0].isdigit():
        return False
    if len(last) == 1 and last.isalpha():
        # An initial; but "I" may end a sentence, and so may a small letter, as in a list, where case can be trusted.
        return last == "I" or (has_case and last.islower())
    if folded in DOUBTFUL or ("." in folded and DOTTED.search(folded)):
        return following.split(None, 1)[0].rstrip(",").lower() in STARTERS
    return True


def detect_unit(head: str) -> Unit:
    """Tells text with hard line breaks from text that has a paragraph, sentence or document on each line.

    Lines are wrapped if sentences run on in the next line: the line has no stop at its end and the next begins with a
    small letter. Between paragraphs set off by blank lines, a sixth of such lines are enough. Without, there must be
    more than half of them, and they must be about equally long, since lower-cased text and chats look alike otherwise.

    Example:
        >>> detect_unit("It was a dark\\nand stormy night.\\n\\nThe end.\\n")
        'paragraph'
        >>> detect_unit("It was dark.\\nIt was stormy.\\n\\nThe end.\\n")
        'line'
    """
    lines = [line.strip() for line in head.split("\n")]
    lengths = sorted(len(line) for line in lines if line)
    followed = [(line, after) for line, after in pairwise(lines) if line and after]
    running_on = [
        line for line, after in followed if line.rstrip(CLOSERS)[-1:] not in LAST_CHARACTERS and not after[0].isupper()
    ]
    if not running_on:
        return "line"
    num_blank = sum(not line for line in lines[1:-1])
    if not head.islower() and 4 * num_blank >= len(lengths):
        return "paragraph" if 6 * len(running_on) > len(followed) else "line"
    width = lengths[int(0.95 * (len(lengths) - 1))]
    num_full = sum(4 * len(line) >= 3 * width for line in running_on)
    is_block = MIN_WIDTH <= width <= MAX_WIDTH and 3 * num_full >= 2 * len(running_on)
    return "paragraph" if is_block and 2 * len(running_on) > len(followed) else "line"


def find_break(stream: BinaryIO, position: int, unit: Unit) -> int:
    """Returns where the first line or paragraph after `position` begins, or where the file ends.

    Whoever asks about the same position gets the same answer, so parts of a file between such places can be read
    apart from each other.
    """
    if position == 0:
        return 0
    position -= 1
    stream.seek(position)
    window = b""
    while chunk := stream.read(BLOCK_SIZE):
        window += chunk
        found = window.find(b"\n") + 1 if unit == "line" else 0
        if unit == "paragraph" and (blank_line := BLANK_LINE_BYTES.search(window)):
            found = blank_line.end()
        if found:
            return position + found
        # What may be the beginning of a blank line stays.
        kept = len(window) - max(window.rfind(b"\n"), len(window) - BLOCK_SIZE, 0) if b"\n" in window else 0
        position += len(window) - kept
        window = window[len(window) - kept :]
    return position + len(window)


def read_blocks(stream: BinaryIO, unit: Unit, size: int | None = None) -> Iterator[tuple[bytes, bool]]:
    """Reads a file in blocks of about 1 MB that end where a line or paragraph ends.

    A longer line or paragraph is cut at the last white space of each MB, or at 1 MB if it has none. Wrapped text
    without blank lines is no such case: it is cut where a line ends in a stop.

    Args:
        stream: The file, at the beginning of a line or paragraph.
        unit: What is not to be cut, unless it is too long.
        size: How many bytes to read; all if not given.

    Yields:
        A block, and whether it is the first part of a line or paragraph that was cut.
    """
    rest, cut_before = b"", False
    while True:
        chunk = stream.read(BLOCK_SIZE if size is None else min(size, BLOCK_SIZE))
        if size is not None:
            size -= len(chunk)
        rest += chunk
        # Before whole ones are taken, so that cuts do not depend on where in the file a long one stands.
        while _first_length(rest, unit) > BLOCK_SIZE:
            end = max(rest.rfind(b".\n", 0, BLOCK_SIZE) + 2, rest.rfind(b".\r\n", 0, BLOCK_SIZE) + 3)
            if end > 3:
                yield rest[:end], False
                rest, cut_before = rest[end:], False
                continue
            end = _cut_position(rest)
            yield rest[:end], not cut_before
            rest, cut_before = rest[end:], True
        end = _last_break(rest, unit) if chunk else len(rest)
        if end:
            yield rest[:end], False
            rest, cut_before = rest[end:], False
        if not chunk:
            return


def _first_length(block: bytes, unit: Unit) -> int:
    """Returns the length of the first line or paragraph of a block."""
    if unit == "line":
        end = block.find(b"\n")
        return len(block) if end < 0 else end
    blank_line = BLANK_LINE_BYTES.search(block)
    return blank_line.start() if blank_line else len(block)


def _last_break(block: bytes, unit: Unit) -> int:
    """Returns the end of the last whole line or paragraph of a block; 0 if there is none."""
    if unit == "line":
        return block.rfind(b"\n") + 1
    end = 0
    for blank_line in BLANK_LINE_BYTES.finditer(block):
        end = blank_line.end()
    return end


def _cut_position(block: bytes) -> int:
    """Returns where to cut a line that is too long: after white space, else between two characters."""
    space = max(block.rfind(separator, 0, BLOCK_SIZE) for separator in (b" ", b"\t", b"\n"))
    if space > 0:
        return space + 1
    end = BLOCK_SIZE
    while end > BLOCK_SIZE - 4 and block[end] & 0xC0 == 0x80:  # inside a character of several bytes
        end -= 1
    return end
