"""The parts that every command shares: options, exit codes, errors in our words, and the deployment."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from lamina import __version__
from lamina.configuration.setting_texts import catalog_folder
from lamina.configuration.settings import Settings
from lamina.interrupts import end_interrupted
from lamina.terminal.failures import as_lamina_error, follows_interrupt
from lamina.terminal.render import Output, log_to_stderr
from view_algebra.errors import Blocked, Unknown

if TYPE_CHECKING:
    from lamina.operations.deployment import Deployment
    from serving_layer.change.view_checks import Verdict
    from view_algebra.compiled import Catalog

T = TypeVar("T")

DIFFERENT = 3
"""Exit code if a check or a proof found a difference, or `plan` found changes."""

GREATEST_PORT = 65_535
"""TCP's ports have 16 bits."""


class Different(Exception):
    """Raised after a command has shown a difference or a change."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="lamina")
@click.option("--json", "as_json", is_flag=True, help="Results as JSON; also accepted after the command's name.")
@click.pass_context
def lamina(context: click.Context, as_json: bool) -> None:
    """SQL views over Kafka, true at every instant."""
    context.obj = as_json


def command(*, parent: click.Group = lamina, name: str | None = None) -> Callable[[Callable[..., None]], click.Command]:
    """Registers a command with the option `--json`. Its function takes the `Output` first."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def call(as_json: bool, **options: Any) -> None:
            output = Output(as_json=as_json or bool(click.get_current_context().find_root().obj))
            log_to_stderr(output.err)
            try:
                function(output, **options)
            except Different:
                sys.exit(DIFFERENT)
            except BrokenPipeError:
                end_unread()
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (a bug is raised again)
                if isinstance(error, KeyboardInterrupt) or follows_interrupt(error):
                    output.tell("\ninterrupted")
                    end_interrupted()
                output.error(as_lamina_error(error))
                sys.exit(DIFFERENT if isinstance(error, Blocked) else 1)

        with_json = click.option("--json", "as_json", is_flag=True, help="Results as JSON, one object per line.")
        return parent.command(name or function.__name__.replace("_", "-"))(with_json(call))

    return decorate


def with_format(function: Callable[..., None]) -> Callable[..., None]:
    """Adds `--format`, `--null` and `--timestamp-format`, which describe a file of records."""
    for option in (
        click.option(
            "--timestamp-format",
            multiple=True,
            metavar="FORMAT",
            help="Format of times in a CSV file, such as '%d/%m/%Y %H:%M' (repeatable); by default ISO 8601.",
        ),
        click.option(
            "--null",
            multiple=True,
            metavar="TEXT",
            help="Text for NULL in a CSV file, besides an empty one (repeatable).",
        ),
        click.option(
            "--format",
            "file_format",
            type=click.Choice(["jsonl", "csv", "tsv", "parquet"]),
            help="By default the file name's ending; needed for '-', standard input.",
        ),
    ):
        function = option(function)
    return function


def with_catalog(function: Callable[..., None]) -> Callable[..., None]:
    """Adds `--catalog DIR`."""

    @functools.wraps(function)
    def call(*arguments: Any, catalog: Path | None, **options: Any) -> None:
        function(*arguments, catalog=catalog or catalog_folder(), **options)

    return click.option(
        "--catalog",
        type=click.Path(path_type=Path),
        help="Folder of .sql files; by default LAMINA_CATALOG, or `catalog`.",
    )(call)


def chosen_catalog(output: Output, catalog: Path) -> tuple[Catalog, str]:
    """The compiled catalog that --catalog names, or the deployed one, and a phrase for it.

    The deployed one is used if --catalog is missing and there is no folder of the default name.
    """
    import view_algebra
    from lamina.authoring.catalog_files import catalog_files

    origin = click.get_current_context().get_parameter_source("catalog")
    if origin == click.core.ParameterSource.DEFAULT and not catalog.exists():
        with open_deployment(output) as deployment:
            return deployment.deployed(), "the deployed catalog"
    return view_algebra.compile_catalog(catalog_files(catalog)), str(catalog)


def listen_address(listen: str, example: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT. The host is 127.0.0.1 by default."""
    host, _, port = listen.rpartition(":")
    if not port.isdecimal() or int(port) > GREATEST_PORT:
        raise click.BadParameter(f"{listen!r} has no port from 0 to {GREATEST_PORT}: write HOST:PORT, as in {example}")
    return host.strip("[]") or "127.0.0.1", int(port)


@contextmanager
def open_deployment(output: Output, *, installed: bool = False) -> Iterator[Deployment]:
    """The deployment of the settings, closed at the end.

    With `installed`, raises LaminaError unless this version of Lamina is installed in its database.
    """
    from lamina.operations.deployment import Deployment

    deployment = Deployment(Settings.read(), tell=output.tell, at=_stop_at, one_command=True)
    try:
        if installed:
            deployment.require_installed()
        yield deployment
    except KeyboardInterrupt:
        deployment.give_up()
        raise
    finally:
        with suppress(Exception):
            deployment.close()


def _stop_at(place: str) -> None:
    """Ends the process at a named place, as kill -9 would. Only crash tests set LAMINA_STOP_AT."""
    if os.environ.get("LAMINA_STOP_AT") == place:
        os.kill(os.getpid(), signal.SIGKILL)


def end_unread() -> NoReturn:
    """Ends a command whose output nobody reads any more (`| head`). That is not an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def look_up(declared: Mapping[str, T], name: str, kind: str) -> T:
    """The deployed view or source of a name. Raises Unknown, which lists the existing names, if there is none."""
    if name not in declared:
        raise Unknown(kind, name, declared, way_out="`lamina apply` deploys a catalog.")
    return declared[name]


def show_verdicts(output: Output, verdicts: Sequence[Verdict]) -> None:
    """Prints a row per check of a view."""
    if output.as_json:
        for verdict in verdicts:
            output.record({**vars(verdict), "result": verdict.result})
    elif verdicts:
        rows = [(verdict.view, verdict.check, verdict.failing, verdict.result) for verdict in verdicts]
        output.table(("view", "check", "failing", "result"), rows)


def tell_failing(output: Output, verdicts: Sequence[Verdict]) -> bool:
    """Narrates each failing check in a sentence. Returns True if one of them blocks."""
    for verdict in verdicts:
        if verdict.failing:
            output.tell(verdict.sentence)
    return any(verdict.blocked for verdict in verdicts)
