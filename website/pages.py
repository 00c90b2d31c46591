"""Gathers the pages of the documentation site: `python website/pages.py FOLDER` writes them and the configuration.

A page keeps its path in the repository, so that links between pages work in both. A link to a file that is not a
page, such as an example or a DAG, becomes plain text.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CONFIGURATION = REPOSITORY / "website" / "zensical.toml"
DECISIONS = "docs/decisions"
INDEX = f"{DECISIONS}/index.md"


def gather(folder: Path) -> Path:
    """Writes pages and pictures into the folder `pages`, and the configuration next to it, whose path it returns."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(REPOSITORY / "docs", pages / "docs")
    for page in REPOSITORY.glob("*.md"):
        shutil.copy(page, pages)
    decisions = sorted((pages / DECISIONS).glob("*.md"))
    (pages / INDEX).write_text(_index(decisions), encoding="utf-8")
    names = {path.relative_to(pages).as_posix() for path in pages.rglob("*") if path.is_file()}
    for name in names:
        if name.endswith(".md"):
            text = (pages / name).read_text(encoding="utf-8")
            (pages / name).write_text(_within(text, name, names), encoding="utf-8")
    listed = json.dumps([INDEX, *(page.relative_to(pages).as_posix() for page in decisions)])
    configuration = folder / CONFIGURATION.name
    configuration.write_text(CONFIGURATION.read_text(encoding="utf-8").replace('"DECISIONS"', listed), encoding="utf-8")
    return configuration


def _index(decisions: list[Path]) -> str:
    """A page that links each decision by its title."""
    titles = [page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for page in decisions]
    links = [f"- [{title}]({page.name})" for title, page in zip(titles, decisions, strict=True)]
    about = "Each page gives the context, the decision, its price, and what would change our mind."
    return "\n".join(["# Decisions", "", about, "", *links, ""])


def _within(text: str, name: str, names: set[str]) -> str:
    """The text of the page `name`, with links to files that are not on the site turned into plain text."""

    def link_on_site(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), link[2]))
        if path == DECISIONS:
            return f"[{link[1]}]({posixpath.relpath(INDEX, posixpath.dirname(name) or '.')})"
        return link[1] if path not in names and (REPOSITORY / path).exists() else link[0]

    return re.sub(r"\[([^\]]+)\]\(([^)#:]+)\)", link_on_site, text)


if __name__ == "__main__":
    print(gather(Path(sys.argv[1])))
