"""`lamina generate` and `lamina completion`: files for other tools, and a script for a shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click
from click.shell_completion import get_completion_class

from lamina.commands.command import chosen_catalog, command, lamina, with_catalog
from lamina.configuration.settings import Settings
from lamina.terminal.render import Output
from serving_layer.narration import amount
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from lamina.generating.view_facts import Address
    from view_algebra.compiled import Catalog

    ToolAddress = Callable[[], Address]


def _markdown(catalog: Catalog, _: ToolAddress) -> dict[str, bytes]:
    from lamina.generating import dictionary

    return {dictionary.FILE: dictionary.markdown(catalog).encode()}


def _dbt(catalog: Catalog, _: ToolAddress) -> dict[str, bytes]:
    from lamina.generating import dbt

    return _encoded(dbt.project(catalog))


def _grafana(catalog: Catalog, address: ToolAddress) -> dict[str, bytes]:
    from lamina.generating import grafana

    return _encoded(grafana.provisioning(catalog, address()))


def _superset(catalog: Catalog, address: ToolAddress) -> dict[str, bytes]:
    from lamina.generating import superset

    return {superset.FILE: superset.bundle(catalog, address())}


def _encoded(files: Mapping[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in files.items()}


class Kind(NamedTuple):
    """A kind of files for a tool.

    files: makes the files, by name
    form: one text, one zip file, or a folder, even if a catalog gives only one file
    """

    files: Callable[[Catalog, ToolAddress], dict[str, bytes]]
    form: Literal["text", "zip", "folder"]


KINDS = {
    "markdown": Kind(_markdown, "text"),
    "dbt": Kind(_dbt, "folder"),
    "grafana": Kind(_grafana, "folder"),
    "superset": Kind(_superset, "zip"),
}
"""Kinds of files, by the name that the command takes."""


@command()
@click.argument("kind", type=click.Choice(list(KINDS)))
@with_catalog
@click.option("--output", "to", metavar="PATH", type=click.Path(path_type=Path), help="Write there, not to stdout.")
@click.option("--database", metavar="URL", help="Postgres as the tool reaches it; by default LAMINA_ANALYST.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
def generate(output: Output, kind: str, catalog: Path, to: Path | None, database: str | None, force: bool) -> None:
    """Make files for other tools from a catalog.

    markdown: a data dictionary. dbt: sources with descriptions, tests and freshness. grafana: a data source, and a
    board with a panel per view. superset: a bundle with a dashboard that has a chart per view. docs/dashboards.md
    explains how to import them.

    The catalog is the one that --catalog names. Without --catalog and a folder of the default name, it is the deployed
    one. No file holds a password.
    """
    compiled, where = chosen_catalog(output, catalog)
    if not compiled.views:
        raise LaminaError(
            "The catalog has no view",
            evidence=f"{where} declares {amount(len(compiled.sources), 'source')}",
            way_out="Declare one with CREATE VIEW. `examples/` shows some.",
        )
    contents = KINDS[kind].files(compiled, partial(_address, database))
    if to is None:
        _print(output, kind, contents)
        return
    if kind == "dbt":
        contents |= _dbt_project(output, to, database)
    for path in _write(contents, _places(kind, contents, to), force=force):
        output.text(str(path), file=str(path))


def _dbt_project(output: Output, to: Path, database: str | None) -> dict[str, bytes]:
    """The first files of a dbt project. Empty if the folder is a project already, whose files are never overwritten."""
    from lamina.generating import dbt

    if (to / dbt.PROJECT).exists():
        return {}
    try:
        address = _address(database)
    except LaminaError:
        if database is not None:
            raise
        output.tell(f"{to} gets no {dbt.PROJECT}: there is no deployment here. Name its database with --database URL.")
        return {}
    output.tell(f"{to} begins a dbt project: models go to schema {dbt.MODELS_SCHEMA}, the password is ${dbt.VARIABLE}")
    return {name: text.encode() for name, text in dbt.beginning(address).items() if not (to / name).exists()}


def _address(database: str | None) -> Address:
    """The address of Postgres as a tool reaches it."""
    from lamina.configuration.postgres_urls import postgres_url
    from lamina.generating.view_facts import Address

    return Address.of(postgres_url(database, "--database") if database else Settings.read().reader())


def _print(output: Output, kind: str, contents: Mapping[str, bytes]) -> None:
    form = KINDS[kind].form
    if form == "zip" or (form == "folder" and not output.as_json):
        raise LaminaError(
            f"{kind} is a zip file" if form == "zip" else f"{kind} is several files",
            evidence=", ".join(contents),
            way_out="Name a file or a folder with --output PATH.",
        )
    for name, content in contents.items():
        output.text(content.decode().rstrip("\n"), file=name, content=content.decode())


def _places(kind: str, contents: Mapping[str, bytes], to: Path) -> dict[str, Path]:
    """The path of each file. A single file may have any name. Several go into a folder, which is created if it is
    missing.
    """
    if KINDS[kind].form != "folder" and not to.is_dir():
        return dict.fromkeys(contents, to)
    return {name: to / name for name in contents}


def _write(contents: Mapping[str, bytes], places: Mapping[str, Path], *, force: bool) -> list[Path]:
    """Writes all files, or none if one of them would be overwritten. Returns their paths."""
    existing = [path for path in places.values() if path.exists() or path.is_symlink()]
    if existing and not force:
        raise LaminaError(
            f"{len(existing)} of {len(places)} files exist" if len(places) > 1 else f"{existing[0]} exists",
            evidence=", ".join(map(str, existing)),
            way_out="Overwrite with --force, or name another place with --output.",
        )
    for name, path in places.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents[name])
        except OSError as error:
            raise LaminaError(
                f"{path} cannot be written",
                evidence=str(error.strerror or error),
                way_out="Name another place with --output.",
            ) from error
    return list(places.values())


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(output: Output, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    For bash: eval "$(lamina completion bash)". For zsh, the same with zsh. For fish: lamina completion fish | source.
    """
    of_shell = get_completion_class(shell)
    assert of_shell is not None
    output.text(of_shell(lamina, {}, "lamina", "_LAMINA_COMPLETE").source())
