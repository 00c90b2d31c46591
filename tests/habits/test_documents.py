"""The documents say what is there: every command, every setting, the words of the glossary."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
from click.testing import CliRunner

from lamina.cli import lamina
from lamina.settings import VARIABLES

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text()


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


def test_every_command_of_the_readme_parses() -> None:
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", README, re.DOTALL)
    lines = [line.removeprefix("$ ").split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("lamina ")]
    assert len(commands) > 8
    for _, name, *arguments in commands:
        command = lamina.commands[name]
        command.make_context(name, list(arguments), resilient_parsing=False)


def test_no_command_lacks_a_help_text_or_json() -> None:
    steps = lamina.commands["step"]
    assert isinstance(steps, click.Group)
    for command in [*(each for each in lamina.commands.values() if each is not steps), *steps.commands.values()]:
        assert command.help
        assert "--json" in {option for parameter in command.params for option in parameter.opts}


def test_the_list_of_commands_cuts_no_sentence_on_a_narrow_terminal() -> None:
    for group in ([], ["step"]):
        shown = CliRunner().invoke(lamina, [*group, "--help"], terminal_width=80).output
        assert not [line for line in shown.splitlines() if line.startswith("  ") and line.endswith("...")]


def test_the_words_that_are_not_ours_are_not_in_the_documents() -> None:
    texts = [
        README,
        *(path.read_text() for path in (REPOSITORY / "docs").rglob("*.md")),
        (REPOSITORY / "ARCHITECTURE.md").read_text(),
    ]
    for word in ("pipeline", "backfill"):
        assert not [text[:60] for text in texts if re.search(rf"\b{word}\b", text, re.IGNORECASE)], word


def test_every_file_that_the_architecture_names_is_there() -> None:
    text = (REPOSITORY / "ARCHITECTURE.md").read_text()
    for name in re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", text):
        assert (REPOSITORY / name).exists(), name


def test_no_link_of_the_documents_leads_nowhere() -> None:
    for document in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"
