import json
import re
import time
from html.parser import HTMLParser

import pytest

from bertram_hf.adaptation.report import Axis, render_report, write_report

EVIL = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "\"&'",
    "a\u2028b\u2029c",
    "{{ 7 * 7 }} {% raw %} {# #}",
    "]]>\\u003c\\",
    "\x00\x1b[31m\u202e",
    "\ud800 alone",
    "&lt;b&gt;",
)


class Page(HTMLParser):
    """The elements, the text that people see, and the embedded words."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.data = [], [], "", ""
        self._inside = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self._inside = [tag, *attrs] if tag in ("script", "style") else []

    def handle_endtag(self, tag):
        self._inside = []

    def handle_data(self, data):
        if ("id", "data") in self._inside:
            self.data += data
        elif not self._inside:
            self.text += f" {data}"

    @property
    def words(self):
        return json.loads(self.data)


def make_gain(name, gain, **fields):
    ends = {"gain_low": gain - 0.01, "gain_high": gain + 0.01}
    return {"name": name, "plain": 0.8, "injected": 0.8 + gain, "gain": gain, **ends, "num_queries": 300} | fields


def make_word(number, **fields):
    word = f"word{number:05}"
    return {
        "word": word,
        "count": 30_000 - number,
        "pieces": ["wo", "##rd", f"##{number}"],
        "num_contexts": number % 9,
        "reliability": None if number % 10 == 0 else number % 10 / 10,
        "injected": number % 3 != 0,
        "reason": "too few sentences" if number % 3 == 0 else None,
        "before": ["ward", "lord"],
        "after": ["term", "lord"],
        "sentences": [
            {"text": f"A {word.upper()} in sentence {i} of a text.", "weight": 0.5 - i / 10} for i in range(3)
        ],
        "definitions": [],
        "same_as": None,
        "meant": None,
    } | fields


def make_report(num_words=120, **fields):
    points = [(1, 0.36), (4, 0.5), (16, 0.69)]
    return {
        "model": "all-MiniLM-L6-v2",
        "checkpoint": "bertram-pieces",
        "output": "my-model",
        "command": "bertram adapt abstracts.jsonl",
        "texts": {"num_texts": 33_000, "num_rare_words": 21_000, "num_injected_words": 80, "num_touched_texts": 12_000},
        "verdict": {
            "helps": True,
            "headline": "It helps: queries find their text better.",
            "advice": "Use my-model.",
            "mode": "auto",
            "retrieval": {
                "num_queries": 1_800,
                "num_documents": 5_000,
                "metric": "MRR",
                "ways": [make_gain("beside the word", 0.012, chosen=True), make_gain("in place of it", -0.02)],
                "by_contexts": [make_gain("1 sentence", -0.001)],
                "by_reliability": [make_gain("reliability 0.1 to 0.3", 0.004)],
            },
            "code_names": {
                "num_words": 200,
                "num_queries": 900,
                "points": [
                    {
                        "contexts": contexts,
                        "known": 0.8,
                        "renamed": 0.5,
                        "left_out": 0.55,
                        "injected": 0.6,
                        "won_back": share,
                    }
                    | {"won_back_low": share - 0.08, "won_back_high": share + 0.08}
                    for contexts, share in points
                ],
            },
        },
        "words": [make_word(number) for number in range(num_words)],
        "notes": ["3 rows of glossary.csv could not be used: line 7: no definition."],
        "seconds": {"counting words": 12.3, "inducing vectors": 240.1},
        "settings": {"mode": "auto", "max_contexts": 8, "title_column": None},
        "versions": {"bertram-hf": "0.1.0"},
    } | fields


def make_evil_report():
    lists = {name: list(EVIL) for name in ("before", "after", "pieces", "definitions")}
    words = [
        make_word(number, word=evil, reason=evil, meant=evil, same_as=evil, **lists)
        | {"sentences": [{"text": f"{evil} in {other}", "weight": 0.1} for other in EVIL]}
        for number, evil in enumerate(EVIL)
    ]
    everything = " ".join(EVIL)
    report = make_report(model=everything, output=everything, checkpoint=everything, command=everything, words=words)
    report["verdict"] |= {"headline": everything, "advice": everything, "mode": everything}
    report["verdict"]["retrieval"] |= {"metric": everything, "ways": [make_gain(evil, 0.01) for evil in EVIL]}
    report |= {"notes": list(EVIL), "seconds": dict.fromkeys(EVIL, 1.0)}
    return report | {"settings": dict.fromkeys(EVIL, everything), "versions": dict.fromkeys(EVIL, everything)}


def test_report_tells_verdict_numbers_notes_settings_and_times():
    text = " ".join(Page(render_report(make_report())).text.split())
    expected = ["Injection helps", "queries find their text better", "Use my-model.", "+0.012", "+0.002 to +0.022"]
    expected += ["−0.020", "0.812 injected", "69%", "of 21,000 rare words", "of 33,000 (36%)", "among 5,000 texts"]
    expected += ["line 7: no definition", "title column –", "4 min 0 s", "bertram-hf 0.1.0", "bertram adapt abstracts"]
    for part in expected:
        assert part in text
    places = [text.index(part) for part in ("Injection helps", "Ways to inject", "Open a word", "Notes", "Settings")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("helps", "retrieval", "label"),
    [
        (True, None, "Injection helps"),
        (False, None, "Injection does not help"),
        (None, None, "Not judged"),
        (None, {"ways": [make_gain("beside the word", 0.001)]}, "No clear effect"),
        (None, {"ways": [{"name": "beside the word", "gain": None}]}, "Not judged"),
    ],
)
def test_verdict_is_the_heading(helps, retrieval, label):
    page = render_report(make_report(verdict={"helps": helps, "retrieval": retrieval}))
    assert re.search(r"<h1[^>]*>(.*?)</h1>", page)[1] == label


def test_the_gain_shown_first_is_the_one_that_the_verdict_stands_on():
    report = make_report()
    assert '<dd class="big">+0.012</dd>' in render_report(report)
    report["verdict"]["retrieval"]["final"] = make_gain("beside the word", 0.034)
    assert '<dd class="big">+0.034</dd>' in render_report(report)


def test_words_and_sentences_are_only_text():
    plain, evil = Page(render_report(make_report())), Page(render_report(make_evil_report()))
    assert set(evil.tags) == set(plain.tags)
    assert evil.tags.count("script") == plain.tags.count("script")
    assert "onerror" not in evil.attributes
    assert "{{ 7 * 7 }}" in evil.text
    assert EVIL[0] in evil.text


def test_embedded_words_are_what_was_given_and_cannot_end_their_element():
    page = Page(render_report(make_evil_report()))
    assert not set("<>&\u2028\u2029") & set(page.data)
    assert [word["word"] for word in page.words] == [evil.replace("\ud800", "\ufffd") for evil in EVIL]
    assert page.words[1]["sentences"][0]["text"] == f"{EVIL[1]} in {EVIL[0]}"


def test_numbers_that_json_does_not_know_become_null():
    words = [make_word(1, reliability=float("nan"), count=float("inf"))]
    report = make_report(words=words)
    report["verdict"]["code_names"]["points"][0]["won_back"] = float("nan")
    page = Page(render_report(report))
    assert (page.words[0]["reliability"], page.words[0]["count"]) == (None, None)
    assert "nan" not in page.text


@pytest.mark.parametrize("verdict", [{}, {"helps": None, "headline": None, "retrieval": {}, "code_names": {}}])
@pytest.mark.parametrize("empty", [None, "missing", "empty"])
def test_missing_and_empty_parts_are_left_out(verdict, empty):
    report = make_report(words=[], verdict=verdict)
    for name in set(report) - {"model", "words", "verdict"}:
        if empty == "missing":
            del report[name]
        else:
            report[name] = type(report[name])() if empty else None
    text = Page(render_report(report)).text
    assert "Not judged" in text
    assert "There are no words to show" in text
    for part in ("Notes", "Settings", "Times", "Code names", "None", "nan"):
        assert part not in text


def test_parts_of_a_measurement_may_be_missing():
    report = make_report(words=[{"word": "kumquat"}])
    report["verdict"]["retrieval"] = {"ways": [{"name": "slash", "gain": 0.01}, {"name": "auto", "gain": None}, {}]}
    report["verdict"]["code_names"] = {"points": [{"contexts": 1, "won_back": 0.5}, {"contexts": 2}, {"won_back": 0.7}]}
    text = Page(render_report(report)).text
    assert "+0.010" in text
    assert "not measured" in text
    assert "50%" in text


@pytest.mark.parametrize("name", ["model", "verdict", "words"])
def test_a_report_without_what_it_needs_is_refused_and_nothing_is_written(name, tmp_path):
    report = make_report()
    del report[name]
    with pytest.raises(ValueError, match=f"{name} missing. Give what `bertram adapt` wrote"):
        write_report(report, tmp_path)
    assert not list(tmp_path.iterdir())


def test_files_hold_page_and_report(tmp_path):
    report = make_evil_report()
    write_report(report, tmp_path / "new")
    assert (tmp_path / "new" / "report.html").read_text(encoding="utf-8") == render_report(report)
    written = json.loads((tmp_path / "new" / "report.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(report).replace("\\ud800", "\\ufffd"))
    assert render_report(written) == render_report(report)
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"report.html", "report.json"}


def test_page_needs_no_network():
    page = render_report(make_report())
    assert "default-src 'none'" in page
    assert not re.search(r"https?://|@import|url\(", page)


def test_many_words_are_written_fast():
    report = make_report(num_words=20_000)
    start = time.perf_counter()
    page = render_report(report)
    assert time.perf_counter() - start < 10
    assert len(Page(page).words) == 20_000


@pytest.mark.parametrize("values", [[], [0.0], [1e-7, -3e-7], [0.5, -0.5], [12.0, 3.0], [-0.31, -0.02]])
def test_axis_holds_zero_all_values_and_a_few_round_ticks(values):
    axis = Axis.around(values)
    assert all(0 < axis.place(value) < 1 for value in [0.0, *values])
    assert 2 <= len(axis.ticks) <= 6
    assert 0 in axis.ticks
    assert all(0 <= axis.place(tick) <= 1 for tick in axis.ticks)


@pytest.fixture
def open_report(browser, tmp_path):
    """Returns a function that opens a report in a window; in the end no page may have complained."""
    complaints, pages = [], []

    def open_page(report, width=1280):
        write_report(report, tmp_path)
        page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
        pages.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
        page.goto((tmp_path / "report.html").as_uri())
        return page

    yield open_page
    for page in pages:
        page.close()
    assert not complaints


def shown_words(page):
    return page.locator(".word").all_inner_texts()


def assert_page_does_not_scroll_sideways(page):
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("width", [1280, 390])
def test_words_are_found_sorted_filtered_paged_and_opened(open_report, width):
    report = make_report()
    report["words"][7] |= {"meant": "word00009", "definitions": ["Something that is said."]}
    page = open_report(report, width)
    assert_page_does_not_scroll_sideways(page)
    assert shown_words(page) == [f"word{number:05}" for number in range(50)]

    page.fill("#search", "WORD0004")
    assert shown_words(page) == [f"word{number:05}" for number in range(40, 50)]
    assert page.inner_text("#shown") == "1 to 10 of 10 words"
    page.fill("#search", "quokka")
    assert "No word is like this" in page.inner_text("#rows")
    page.fill("#search", "")

    if width == 1280:
        page.click("th button:has-text('Count')")
        assert page.get_attribute("#heads th:nth-child(2)", "aria-sort") == "ascending"
        assert shown_words(page)[0] == "word00119"
        page.click("th button:has-text('Reliability')")
    else:
        page.select_option("#order", label="Count ↑")
        assert shown_words(page)[0] == "word00119"
        page.select_option("#order", label="Reliability ↑")
    assert page.inner_text("#shown") == "1 to 50 of 120 words"
    for _ in range(2):
        page.click("#next")
    unknown = [f"word{number:05}" for number in range(0, 120, 10)]
    assert shown_words(page)[-12:] == unknown  # whatever is sorted
    assert page.is_disabled("#next")
    page.click("#previous")
    assert page.inner_text("#page") == "Page 2 of 3"

    page.click("button:has-text('Not injected')")
    assert page.inner_text("#shown") == "1 to 40 of 40 words"
    assert "word00003" in shown_words(page)
    assert "word00004" not in shown_words(page)
    page.click("[data-filter=injected]")
    assert page.inner_text("#shown") == "1 to 50 of 80 words"

    page.fill("#search", "word00007")
    page.click(".word")
    assert page.get_attribute(".word", "aria-expanded") == "true"
    inside = page.inner_text(".inside")
    for part in ("A WORD00007 in sentence 2 of a text.", "30%", "Something that is said.", "ward", "term"):
        assert part in inside
    assert page.locator(".inside mark").all_inner_texts() == ["WORD00007"] * 3
    assert page.locator(".inside .new").all_inner_texts() == ["term"]
    assert_page_does_not_scroll_sideways(page)
    page.click(".word")
    assert page.locator(".inside").count() == 0
    page.click("[data-filter=all]")
    page.click(".word")
    page.click(".inside .link")
    assert shown_words(page) == ["word00009"]


@pytest.mark.parametrize("width", [1280, 390])
def test_markup_in_words_stays_text_in_a_browser(open_report, width):
    report = make_evil_report()
    long = "x" * 3_000
    report["words"].append(make_word(1, word=long, meant=long, pieces=[long], after=[long], reason=long, before=[long]))
    report["verdict"]["headline"] = report["notes"][0] = long
    report["settings"][long] = long
    page = open_report(report, width)
    assert page.locator("#rows img, #rows script").count() == 0
    for number in range(page.locator(".word").count()):
        page.locator(".word").nth(number).click(position={"x": 3, "y": 8})
    assert page.locator(".inside").count() == len(EVIL) + 1
    assert page.locator("#rows img, #rows script").count() == 0
    texts = page.locator(".word").evaluate_all("buttons => buttons.map((button) => button.textContent)")
    assert set(texts) == {evil.replace("\ud800", "\ufffd") for evil in EVIL} | {long}
    assert_page_does_not_scroll_sideways(page)


def test_a_report_without_words_opens(open_report):
    page = open_report({"model": "all-MiniLM-L6-v2", "verdict": {"helps": None}, "words": []}, 390)
    assert page.inner_text("h1") == "Not judged"
    assert_page_does_not_scroll_sideways(page)


def test_many_words_stay_quick_in_a_browser(open_report):
    report = make_report(num_words=20_000)
    start = time.perf_counter()
    page = open_report(report)
    page.fill("#search", "19999")
    assert shown_words(page) == ["word19999"]
    page.fill("#search", "")
    page.click("th button:has-text('Word')")
    assert page.inner_text("#page") == "Page 1 of 400"
    assert len(shown_words(page)) == 50
    assert time.perf_counter() - start < 20
