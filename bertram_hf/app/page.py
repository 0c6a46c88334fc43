"""The page: what it shows, and what its buttons do."""

from collections.abc import Sequence
from typing import Any

import gradio as gr

from .playground import MAX_LINE, MAX_LINES, MAX_WORD, Found, Playground, remember, zip_words

TITLE = "Words that your model does not know"
INTRODUCTION = (
    "Type a word and a few sentences that hold it, or what it means. You get a vector in the model's own input "
    "embedding space, without any training (BERTRAM; Schick and Schütze, 2020)."
)
EXAMPLES = [
    [
        "hansom",
        "He hailed a hansom and told the driver to hurry.\nA hansom, drawn by one horse, rattled past.",
        "",
    ],
    ["kumquat", "", "a small sour citrus fruit"],
    ["resigntaion", "", ""],
]
QUERY = "hansom fares"
TEXTS = (
    "The ransom was paid in gold.\nCabs with two wheels waited for hire outside the station.\n"
    "He is a handsome young man.\nThe ferry leaves at noon."
)
NONE_YET = "None yet."
SECONDS_KEPT = 3600
STYLE = """
.gradio-container {max-width: 60rem !important}
.bertram-word {overflow-x: auto}
.bertram-word :is(table, tr, th, td) {
  border: solid rgba(128, 128, 128, .3) !important; border-width: 0 0 1px !important
}
.bertram-word :is(th, td) {padding: .2em .8em .2em 0 !important}
"""


def build_page(playground: Playground) -> gr.Blocks:
    """Returns the page; `launch()` shows it. Each visitor has words of their own, which are gone with the visit.

    Args:
        playground: Does the work.

    Example:
        >>> page = build_page(Playground(model, processor, encoder))
        >>> page.title
        'Words that your model does not know'
    """
    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(SECONDS_KEPT, SECONDS_KEPT)) as page:
        words = gr.State({}, time_to_live=SECONDS_KEPT)
        gr.Markdown(f"# {TITLE}\n{INTRODUCTION}")
        examples = gr.Column()
        with gr.Row():
            with gr.Column():
                word = gr.Textbox(label="Word or term", max_length=MAX_WORD, elem_id="word")
                sentences = gr.Textbox(
                    label="Sentences that hold it, one on each line", lines=4, max_lines=12, elem_id="sentences"
                )
                definition = gr.Textbox(label="What it means (optional)", max_length=MAX_LINE, elem_id="definition")
                induce = gr.Button("Induce the vector", variant="primary", elem_id="induce")
            with gr.Column():
                message = gr.Textbox(label="Message", visible=False, elem_id="message")
                report = gr.HTML(elem_id="report")
        with examples:
            gr.Examples(EXAMPLES, [word, sentences, definition], label="Examples: choose one, then induce its vector")
        known = gr.Textbox(NONE_YET, label="Your words", interactive=False, elem_id="known")
        download = gr.DownloadButton("Download their vectors", interactive=False, elem_id="download")
        with gr.Tab("Search with your words"):
            query = gr.Textbox(QUERY, label="Query", max_length=MAX_LINE, elem_id="query")
            texts = gr.Textbox(TEXTS, label=f"Texts, one on each line (at most {MAX_LINES})", lines=5, elem_id="texts")
            search = gr.Button("Search", elem_id="search")
            with gr.Row():
                plain = _table("without", "plain")
                injected = _table("with your words", "injected")
        if playground.task:
            with gr.Tab("Ask the model"):
                question = gr.Textbox(label=_question(playground), max_length=MAX_LINE, elem_id="question")
                ask = gr.Button("Ask", elem_id="ask")
                with gr.Row():
                    before, after = _table("without", "before"), _table("with your words", "after")

        def on_induce(typed: str, lines: str, meaning: str, own: dict[str, Any]) -> tuple[Any, ...]:
            try:
                found, vectors = playground.induce(typed, lines, meaning)
            except ValueError as error:
                return _tell(error), "", own, gr.skip(), gr.skip()
            own = remember(own, vectors)
            shown = found._repr_html_()  # all text in it is escaped
            return _tell(), shown, own, ", ".join(own), gr.update(value=zip_words(own), interactive=True)

        def on_search(asked: str, lines: str, own: dict[str, Any]) -> tuple[Any, ...]:
            try:
                without, with_words = playground.search(asked, lines, own)
            except ValueError as error:
                return _tell(error), [], []
            return _tell(), _rows(without), _rows(without if with_words is None else with_words)

        def on_ask(asked: str, own: dict[str, Any]) -> tuple[Any, ...]:
            try:
                without, with_words = playground.ask(asked, own)
            except ValueError as error:
                return _tell(error), [], []
            return _tell(), _rows(without), _rows(with_words)

        hidden: Any = {"api_visibility": "private"}
        given = [word, sentences, definition, words]
        for event in (induce.click, word.submit, definition.submit):
            event(on_induce, given, [message, report, words, known, download], **hidden)
        for event in (search.click, query.submit):
            event(on_search, [query, texts, words], [message, plain, injected], **hidden)
        if playground.task:
            for event in (ask.click, question.submit):
                event(on_ask, [question, words], [message, before, after], **hidden)
    return page


def launch_page(page: gr.Blocks, **options: Any) -> None:
    """Serves a page until it is stopped, with fonts that need no network."""
    fonts = ["system-ui", "sans-serif"]
    page.launch(theme=gr.themes.Default(font=fonts, font_mono=["monospace"]), css=STYLE, footer_links=[], **options)


def _table(label: str, name: str) -> gr.Dataframe:
    return gr.Dataframe(
        headers=["text", "score"],
        column_widths=["80%", "20%"],
        datatype="str",
        label=label,
        interactive=False,
        wrap=True,
        elem_id=name,
    )


def _question(playground: Playground) -> str:
    mask = playground.tokenizer.mask_token
    return f"A text with one {mask}" if playground.task == "fill-mask" else "A text to classify"


def _rows(found: Sequence[Found]) -> list[list[str]]:
    return [[one.text, f"{one.similarity:.3f}"] for one in found]


def _tell(error: ValueError | None = None) -> Any:
    return gr.update(value="" if error is None else str(error), visible=error is not None)
