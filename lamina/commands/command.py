"""What every command shares: options, exit codes, errors in our words, the deployment that it opens."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from lamina import __version__
from lamina.failures import told
from lamina.render import Output, log_to_stderr
from lamina.settings import Settings, catalog_folder
from view_algebra.errors import Blocked, LaminaError

if TYPE_CHECKING:
    from lamina.deployment import Deployment
    from serving_layer.change.checks import Verdict
    from view_algebra.compiled import Catalog

DIFFERENT = 3
"""Exit code when a check or a proof found a difference, or `plan` something to do."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell gives it."""


class Different(Exception):
    """A check, a proof or `plan` found a difference; it has been shown."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="lamina")
@click.option("--json", "as_json", is_flag=True, help="Results as JSON; also accepted after the command's name.")
@click.pass_context
def lamina(context: click.Context, as_json: bool) -> None:
    """SQL views over Kafka, true at every instant."""
    context.obj = as_json


def command(*, parent: click.Group = lamina, name: str | None = None) -> Callable[[Callable[..., None]], click.Command]:
    """A command with the common option; its function takes the `Output` first."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def call(as_json: bool, **options: Any) -> None:
            output = Output(as_json=as_json or bool(click.get_current_context().find_root().obj))
            log_to_stderr(output.err)
            try:
                function(output, **options)
            except LaminaError as error:
                output.error(error)
                sys.exit(DIFFERENT if isinstance(error, Blocked) else 1)
            except Different:
                sys.exit(DIFFERENT)
            except BrokenPipeError:
                nobody_reads()
            except KeyboardInterrupt:
                output.tell("\ninterrupted")
                sys.exit(INTERRUPTED)
            except Exception as error:  # noqa: BLE001 (a mistake of ours is raised again)
                output.error(told(error))
                sys.exit(1)

        with_json = click.option("--json", "as_json", is_flag=True, help="Results as JSON, one object per line.")
        return parent.command(name or function.__name__.replace("_", "-"))(with_json(call))

    return decorate


def with_format(function: Callable[..., None]) -> Callable[..., None]:
    """Adds `--format`, `--null` and `--timestamp-format`: how a file of records is written."""
    for option in (
        click.option(
            "--timestamp-format",
            multiple=True,
            metavar="FORMAT",
            help="Times and dates of a CSV file, as '%d/%m/%Y %H:%M' (repeatable); by default ISO 8601.",
        ),
        click.option("--null", multiple=True, metavar="TEXT", help="NULL in a CSV file, next to nothing (repeatable)."),
        click.option(
            "--format",
            "file_format",
            type=click.Choice(["jsonl", "csv", "tsv", "parquet"]),
            help="By default by the file's name; needed with '-', standard input.",
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
    """The compiled catalog that --catalog names, or the deployed one, and the words for it.

    The deployed one is taken if --catalog is not given and there is no folder of the default name.
    """
    import view_algebra
    from lamina.catalogs import catalog_files

    given = click.get_current_context().get_parameter_source("catalog")
    if given == click.core.ParameterSource.DEFAULT and not catalog.exists():
        with deployment(output) as opened:
            return opened.deployed(), "the catalog that is deployed"
    return view_algebra.compile_catalog(catalog_files(catalog)), str(catalog)


@contextmanager
def deployment(output: Output) -> Iterator[Deployment]:
    """The deployment of the settings, closed at the end."""
    from lamina.deployment import Deployment

    opened = Deployment(Settings.read(), tell=output.tell, at=_stop_at, one_command=True)
    try:
        yield opened
    except KeyboardInterrupt:
        opened.give_up()
        raise
    finally:
        with suppress(Exception):
            opened.close()


def _stop_at(place: str) -> None:
    """Ends the process at a named place, as kill -9 would: only when LAMINA_STOP_AT asks for it (crash tests do)."""
    if os.environ.get("LAMINA_STOP_AT") == place:
        os.kill(os.getpid(), signal.SIGKILL)


def nobody_reads() -> NoReturn:
    """The reader of a pipe has gone (`| head`): there is nobody left to tell, and nothing went wrong."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def known(declared: Any, name: str, what: str) -> Any:
    """What is deployed under a name; LaminaError says what is, where nothing is."""
    if name not in declared:
        raise LaminaError(
            f"There is no {what} named {name}",
            evidence="deployed: " + (", ".join(declared) or "none"),
            way_out="`lamina apply` deploys a catalog.",
        )
    return declared[name]


def show_verdicts(output: Output, verdicts: Sequence[Verdict]) -> None:
    """A row per check of a view."""
    if output.as_json:
        for each in verdicts:
            output.record({**vars(each), "result": each.result})
    elif verdicts:
        rows = [(each.view, each.check, each.failing, each.result) for each in verdicts]
        output.table(("view", "check", "failing", "result"), rows)


def tell_failing(output: Output, verdicts: Sequence[Verdict]) -> bool:
    """Whether a check that blocks has failed; every check that fails is told in a sentence."""
    for each in verdicts:
        if each.failing:
            output.tell(each.sentence)
    return any(each.blocked for each in verdicts)
