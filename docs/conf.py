"""The documentation site: the Markdown files and notebooks of the repository as they are, and pages from docstrings."""

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent
# For each package its public names and what they are for; a test compares the names with each `__all__`.
PACKAGES = {
    section.partition("\n")[0]: dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, flags=re.MULTILINE))
    for section in (ROOT / "docs" / "reference.md").read_text("utf-8").split("\n## ")[1:]
}
PATHS = {name: f"{package}.{name}" for package, names in PACKAGES.items() for name in names}

project = "bertram_hf"
html_title = project
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# The source folder is the repository, so that relative links lead to the same files as on GitHub.
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/api/*.rst",
    "examples/notebooks/*.ipynb",
    "model_cards/*/README.md",
    "results/*/README.md",
]
myst_heading_anchors = 4
nb_execution_mode = "off"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False
napoleon_use_ivar = True
default_role = "code"
maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"


def find_pages(pattern: str) -> list[str]:
    """Returns the names that Sphinx has for the files of a pattern."""
    return sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.glob(pattern))


# What stands below a page in the sidebar, by caption. The README's table of documents gives their order.
documents = re.findall(r"^\| \[.*?\]\((.*?)\.(?:md|ipynb)\)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
navigation = {
    "README": {
        "Documentation": documents,
        "Notebooks": [page for page in find_pages("examples/notebooks/*.ipynb") if page not in documents],
        "Model cards": find_pages("model_cards/*/README.md"),
        "Development": ["CONTRIBUTING"],
    },
    "docs/reference": {"Packages": [f"docs/api/{package}" for package in PACKAGES]},
    "docs/results": {"Tables and figures": find_pages("results/*/README.md")},
}


def write_docstring_pages() -> None:
    """Writes docs/api/<package>.rst for each package, from which Sphinx makes a page of docstrings."""
    folder = ROOT / "docs" / "api"
    folder.mkdir(exist_ok=True)
    for package, names in PACKAGES.items():
        blocks = [f"{package}\n{'=' * len(package)}", f".. py:module:: {package}"]
        for name, purpose in names.items():
            if name.isupper():  # a constant has no docstring
                blocks.append(f".. py:data:: {name}\n\n   {purpose}")
            else:
                blocks.append(f".. auto{'class' if name[0].isupper() else 'function'}:: {package}.{name}")
        page, text = folder / f"{package}.rst", "\n\n".join(blocks) + "\n"
        if not page.exists() or page.read_text("utf-8") != text:  # else Sphinx would read it again
            page.write_text(text, "utf-8")


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Adds to a page what only the site shows: the sidebar's entries, and links from names to their docstrings."""
    if page == "docs/reference":
        source[0] = re.sub(r"^\| `(\w+)`", lambda row: f"| {{py:obj}}`{row[1]}`", source[0], flags=re.MULTILINE)
    for caption, pages in app.config.navigation.get(page, {}).items():
        if pages:
            entries = "\n".join(f"/{entry}" for entry in pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"


def link_names(app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Makes links of the public names in a docstring: `name` and [`name`], as Transformers writes them."""

    def link(match: re.Match) -> str:
        name = match[1] or match[2]
        return f":py:obj:`{name}`" if name in PATHS else f"`{name}`"

    lines[:] = [re.sub(r"\[`(\w+)`\]|(?<!`)`(\w+)`", link, line) for line in lines]


def resolve_name(app, env, node, content):
    """Finds a public name wherever it is defined, in text and in the types of signatures."""
    path = PATHS.get(node["reftarget"].rpartition(".")[2]) if node.get("refdomain") == "py" else None
    return path and env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", path, node, content)


def setup(app: Sphinx) -> None:
    """Sphinx calls this first."""
    write_docstring_pages()
    app.add_config_value("navigation", {}, rebuild="env")
    app.connect("source-read", add_navigation)
    app.connect("autodoc-process-docstring", link_names)
    app.connect("missing-reference", resolve_name)
