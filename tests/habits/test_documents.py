"""The documents name every command and setting, avoid words that the glossary replaced, and form a site."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lamina import reference
from lamina.cli import lamina
from lamina.configuration.setting_texts import VARIABLES
from view_algebra import compile_catalog

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text()
DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("examples/*/*.md")])


def test_every_command_is_in_the_readme() -> None:
    documented = set(re.findall(r"`lamina ([a-z-]+)", README))
    assert set(lamina.commands) == documented


def test_every_step_is_in_the_readme() -> None:
    steps = lamina.commands["step"]
    assert isinstance(steps, click.Group)
    [row] = [line for line in README.splitlines() if line.startswith("| `lamina step …`")]
    assert set(steps.commands) <= set(re.findall(r"`([a-z-]+)`", row))


def test_every_setting_is_in_the_readme() -> None:
    assert all(f"`{variable}`" in README for variable in VARIABLES.values())


@pytest.mark.parametrize("page", ["commands", "settings"])
def test_reference_pages_equal_the_generated_text(page: str) -> None:
    assert (REPOSITORY / "docs" / f"{page}.md").read_text() == getattr(reference, page)()


def lines_of_shell(text: str) -> Iterator[str]:
    """The commands of a document's blocks: after a prompt if the block shows what they print, else every line."""
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if kind in ("sh", "console", ""):
            lines = re.sub(r"\\\n\s*", "", block).splitlines()
            yield from (line.removeprefix("$ ") for line in lines if kind != "console" or line.startswith("$ "))


def words_of_lamina(line: str) -> list[str]:
    """The arguments of `lamina` in a line of shell, up to a comment or a pipe. Empty if it runs something else."""
    inner = re.search(r"\$\(lamina (.*?)\)", line)
    match = re.search(r"(?:^| )lamina ([a-z].*)", line)
    words = shlex.split(inner[1] if inner else match[1] if match else "", comments=True)
    return words[: words.index("|")] if "|" in words else words


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    command: click.Command = lamina
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_every_command_of_a_document_exists_with_its_options(document: Path) -> None:
    text = document.read_text()
    if document.name == "commands.md":
        text = re.sub(r"```sh\n.*?```", "", text, flags=re.DOTALL)  # usage, with a literal [OPTIONS]
    for line in lines_of_shell(text):
        if not (words := words_of_lamina(line)):
            continue
        command, arguments = command_of(words)
        assert not isinstance(command, click.Group), line
        values, rest, _ = command.make_parser(click.Context(command)).parse_args(list(arguments))
        assert not rest, line
        required = [parameter.name for parameter in command.params if parameter.required]
        assert not [name for name in required if values.get(name or "") is None], line
    if document.parent.name == "decisions":  # they also name rejected commands
        return
    for line in re.findall(r"`lamina ([a-z][^`]*)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
        command, _ = command_of(line.split())
        assert command is not lamina, line
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"--[a-z][a-z0-9-]*", line)) <= options, line


def test_commands_are_found_in_documents() -> None:
    assert sum(bool(words_of_lamina(line)) for page in DOCUMENTS for line in lines_of_shell(page.read_text())) > 60
    assert words_of_lamina("docker compose run --rm catalog lamina plan | head  # a word") == ["plan"]


def test_the_declarations_of_change_events_compile() -> None:
    blocks = re.findall(r"```sql\n(.*?)```", (REPOSITORY / "docs/how-to/debezium.md").read_text(), re.DOTALL)
    flattened = [block for block in blocks if "__deleted" in block]
    others = [block for block in blocks if block not in flattened]
    for part in (flattened, others):
        assert compile_catalog({f"{number}.sql": block for number, block in enumerate(part)}).sources


def test_every_target_of_make_that_a_document_names_exists() -> None:
    targets = re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    for document in DOCUMENTS:
        assert set(re.findall(r"`make ([a-z]+)", document.read_text())) <= set(targets), document


def test_no_command_lacks_a_help_text_or_json() -> None:
    steps = lamina.commands["step"]
    assert isinstance(steps, click.Group)
    for command in [
        *(command_of_lamina for command_of_lamina in lamina.commands.values() if command_of_lamina is not steps),
        *steps.commands.values(),
    ]:
        assert command.help
        assert "--json" in {option for parameter in command.params for option in parameter.opts}


def test_the_list_of_commands_cuts_no_sentence_on_a_narrow_terminal() -> None:
    for group in ([], ["step"]):
        shown = CliRunner().invoke(lamina, [*group, "--help"], terminal_width=80).output
        assert not [line for line in shown.splitlines() if line.startswith("  ") and line.endswith("...")]


def test_documents_avoid_the_words_outside_the_glossary() -> None:
    texts = [
        README,
        *(path.read_text() for path in (REPOSITORY / "docs").rglob("*.md")),
        (REPOSITORY / "ARCHITECTURE.md").read_text(),
    ]
    for word in ("pipeline", "backfill", "swap", "flip", "lake"):
        assert not [text[:60] for text in texts if re.search(rf"\b{word}\b", text, re.IGNORECASE)], word


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (REPOSITORY / "ARCHITECTURE.md").read_text()
    paths = re.findall(r"`([a-z_]+/[\w./-]*\w)`", text)
    assert len(paths) > 100
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    packages = [file.parent for file in REPOSITORY.glob("*/__init__.py")]
    modules = {file.name for folder in [*packages, REPOSITORY / "tests"] for file in folder.rglob("*.py")}
    assert set(re.findall(r"`([a-z_]+\.py)`", text)) <= modules


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site name them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_every_relative_link_of_a_document_has_a_target(document: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if "://" not in link:
            name, _, anchor = link.partition("#")
            target = document.parent / name if name else document
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_the_site_is_built_from_all_documents_and_loads_nothing_from_the_network(tmp_path: Path) -> None:
    """The build is strict: a link to a missing page or anchor fails."""
    gathered = subprocess.run(
        [sys.executable, REPOSITORY / "website" / "pages.py", tmp_path], capture_output=True, text=True, check=True
    )
    configuration = Path(gathered.stdout.strip())
    arguments = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(configuration)]
    built = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = {path.relative_to(tmp_path / "pages").as_posix() for path in (tmp_path / "pages").rglob("*.md")}
    listed = re.findall(r'"([^"]+\.md)"', configuration.read_text())
    assert sorted(listed) == sorted(pages), "the navigation has every page, once"
    for page in (tmp_path / "site").rglob("*.html"):
        assert not re.findall(r'(?:src|<link[^>]+href)="(?:https?:)?//', page.read_text()), page.name
