"""Prints docs/commands.md or docs/settings.md: `python -m lamina.reference commands`, or `settings`.

The pages come from the command line's own help and from the table of settings, and a test compares them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import click

from lamina.cli import lamina
from lamina.configuration.setting_texts import FILE, SETTINGS, VARIABLES

_COMMANDS = """\
# Commands

`lamina COMMAND --help` prints the same. Every command also takes `--json`: then it prints its results as JSON, one
object per line. Results go to stdout, narration and errors to stderr.
[The README](../README.md#a-deployment-of-your-own) has one line per command, and the exit codes.
"""

_SETTINGS = f"""\
# Settings

A setting comes from the environment, or else from `{FILE}` in the working folder:

```toml
kafka = "broker:9092"
postgres = "postgresql://lamina:secret@db:5432/lamina"
alarm_after = "120"
```

Every value is a text. A variable whose name ends in `_FILE`, such as `LAMINA_POSTGRES_FILE`, names a file that holds
the value. Set `LAMINA_POSTGRES` and `LAMINA_KAFKA` together, or neither for the embedded services. A key that Lamina
does not know is refused.
"""

_OTHERS = """\
[operations.md](operations.md#what-runs) says what Kafka and Postgres need, and lists the variables of
[the DAGs](operations.md#schedule) and of [lineage](operations.md#lineage). `.env.example` explains those of
`docker-compose.yml`.
"""


def commands() -> str:
    """The page of commands: usage, help and options of each."""
    return "\n".join((_COMMANDS, *_described(lamina, click.Context(lamina, info_name="lamina"))))


def settings() -> str:
    """The page of settings, in Markdown."""
    rows = (
        f"| `{VARIABLES[key]}` | `{key}` | {setting.default} | {setting.means} |" for key, setting in SETTINGS.items()
    )
    table = "\n".join(("| variable | key | default | means |", "|---|---|---|---|", *rows, ""))
    return f"{_SETTINGS}\n{table}\n{_OTHERS}"


def _described(group: click.Group, context: click.Context) -> Iterator[str]:
    """A section for each command of a group, and after a sub-group the sections of its commands."""
    for name, command in sorted(group.commands.items()):
        below = click.Context(command, info_name=name, parent=context)
        yield f"## {below.command_path}\n"
        yield f"```sh\n{' '.join((below.command_path, *command.collect_usage_pieces(below)))}\n```\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
        records = [parameter.get_help_record(below) for parameter in command.params if parameter.name != "as_json"]
        options = [f"- `{record[0]}`: {record[1]}" for record in records if record and record[1]]
        if options:
            yield "\n".join((*options, ""))
        if isinstance(command, click.Group):
            yield from _described(command, below)


if __name__ == "__main__":
    print({"commands": commands, "settings": settings}[sys.argv[1]](), end="")
