"""Any input is read or refused in one sentence. No command hangs or ends in a traceback."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interchange.files import Line, lines
from interchange.judgements import Rules
from interchange.opening import MOST_OF_A_LINE, seekable
from lamina.authoring.catalog_files import catalog_files
from lamina.configuration.settings import Settings
from lamina.reports.lag_lines import tables_of
from lamina.reports.receipt_lines import read
from lamina.testing.fixtures import fixture
from serving_layer.readers.receipts import Receipt
from view_algebra import compile_catalog
from view_algebra.errors import LaminaError

MARK = b"\xef\xbb\xbf"
"""A byte order mark. Editors on Windows begin UTF-8 files with it."""

CATALOG = compile_catalog(
    {
        "a.sql": "CREATE TABLE events (n BIGINT) USING kafka OPTIONS (topic 'events', format 'json');"
        "CREATE VIEW total AS SELECT sum(n) AS n FROM events;"
    }
)


def test_a_byte_order_mark_is_not_part_of_a_files_text(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_bytes(MARK + b"CREATE VIEW a AS SELECT 1 AS one;")
    assert catalog_files(tmp_path) == {"a.sql": "CREATE VIEW a AS SELECT 1 AS one;"}
    (tmp_path / "url").write_bytes(MARK + b"postgresql://lamina:secret@db/lamina\n")
    (tmp_path / "lamina.toml").write_bytes(MARK + b'kafka = "broker:9092"\n')
    read_from = Settings.read(tmp_path, {"LAMINA_POSTGRES_FILE": str(tmp_path / "url")})
    assert (read_from.postgres, read_from.kafka) == ("postgresql://lamina:secret@db/lamina", "broker:9092")
    receipt = io.StringIO((MARK + b'{"receipt": 99}').decode())
    with pytest.raises(LaminaError, match="This receipt has another format"):
        read(receipt)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def nowhere(path: Path) -> None:
    path.symlink_to("/no/such/file")


@pytest.mark.parametrize("name", ["a.sql", "b.test"])
@pytest.mark.parametrize("make", [fifo, device, nowhere])
def test_a_fifo_or_a_device_in_a_catalog_is_refused(tmp_path: Path, make: Callable[[Path], None], name: str) -> None:
    from lamina.testing.fixtures import tests_of

    make(tmp_path / name)
    with pytest.raises(LaminaError, match=f"{name} (is not a file|cannot be read)"):
        catalog_files(tmp_path) if name == "a.sql" else tests_of(tmp_path, CATALOG, [])


def nested(levels: int) -> str:
    """An object whose only field is a list nested this deep."""
    return '{"n": ' + "[" * levels + "]" * levels + "}"


@pytest.mark.parametrize("levels", [850, 900, 940, 980, 1_000, 100_000])
def test_json_of_any_depth_is_read_or_refused(levels: int) -> None:
    with pytest.raises(LaminaError, match="This is not a receipt"):
        Receipt.read(nested(levels))
    test = "-- given events\n{0}\n-- expect total\n{0}\n".format(nested(levels))
    try:
        fixture("deep.test", test, CATALOG)
    except LaminaError as error:
        assert error.what == "deep.test:2: nested too deep"  # noqa: PT017 (either is right)


def test_an_endless_receipt_is_refused() -> None:
    with Path("/dev/zero").open(encoding="utf-8") as endless, pytest.raises(LaminaError, match="This is not a receipt"):
        read(endless)


def test_a_device_is_refused_as_a_file_of_records() -> None:
    for name in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(LaminaError, match=f"{name} is a device"), seekable(name, io.BytesIO()):
            pass
    with (
        Path("/dev/zero").open("rb") as endless,
        pytest.raises(LaminaError, match="- is a device"),
        seekable("-", endless),
    ):
        pass
    with seekable("/dev/null", io.BytesIO()) as nothing:
        assert nothing.read() == b""


def lines_of(name: str, stdin: io.BytesIO) -> list[Line]:
    """The lines of a file of records."""
    with seekable(name, stdin) as content:
        return list(lines(content, name, "jsonl", Rules({}), 1_000_000))


def test_an_endless_line_is_not_read_forever(tmp_path: Path) -> None:
    (tmp_path / "endless.jsonl").write_bytes(b"{}\n")
    os.truncate(tmp_path / "endless.jsonl", 2 * MOST_OF_A_LINE)  # a hole takes no room on the disk
    with pytest.raises(LaminaError, match=r"endless.jsonl: line 2 has no end within 268 MB"):
        lines_of(str(tmp_path / "endless.jsonl"), io.BytesIO())
    with pytest.raises(LaminaError, match="-: a line has no end within 268 MB"):
        lines_of("-", io.BytesIO(b"{}\n" + bytes(MOST_OF_A_LINE + 1)))
    assert [line.number for line in lines_of("-", io.BytesIO(b"{}\n{}\n"))] == [1, 2]


def test_a_select_or_a_setting_of_any_depth_is_read_or_refused(tmp_path: Path) -> None:
    """Postgres judges the SELECT. `tables_of` only finds the views whose lag is reported."""
    assert tables_of("SELECT (((1))) FROM x") == {"x"}
    assert tables_of("SELECT " + "(" * 5_000 + "1" + ")" * 5_000 + " FROM x") == set()
    (tmp_path / "lamina.toml").write_text("kafka = " + "[" * 5_000 + "]" * 5_000)
    with pytest.raises(LaminaError, match=r"lamina\.toml is not TOML"):
        Settings.read(tmp_path, {})
