"""Output shows every column and every character, and a command continues if nobody reads its narration."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import BadParameter
from py4j.protocol import Py4JError

from lamina.authoring.catalog_files import catalog_files
from lamina.commands.command import listen_address
from lamina.configuration.kafka_urls import brokers
from lamina.configuration.settings import Settings
from lamina.terminal.failures import as_lamina_error
from lamina.terminal.render import Output, cell, json_value, log_to_stderr
from view_algebra.errors import LaminaError

COLUMNS = [f"c{number}" for number in range(60)]
VALUES = [f"{number:08}" for number in range(60)]


def test_a_piped_table_shows_every_column_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table(COLUMNS, [VALUES])
    header, row = capsys.readouterr().out.splitlines()
    assert (header.split(), row.split()) == (COLUMNS, VALUES)


def test_a_row_too_wide_for_the_terminal_is_shown_line_by_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output = Output()
    output.out._force_terminal, output.out.width = True, 80
    output.table(COLUMNS, [VALUES])
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split() for line in lines] == [list(pair) for pair in zip(COLUMNS, VALUES, strict=True)]


def test_texts_are_shown_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table(["mac", "urn"], [["00:ab:3c:cd:11:22", "urn:id:42 [bold]"]])
    assert capsys.readouterr().out.splitlines()[1].split(maxsplit=1) == ["00:ab:3c:cd:11:22", "urn:id:42 [bold]"]


def test_json_has_every_column_and_no_nan_or_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).table(["count", "count", "x"], [[1, 2, float("nan")], [3, 4, [float("-inf")]]])

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    records = [json.loads(line, parse_constant=refuse) for line in capsys.readouterr().out.splitlines()]
    assert records == [{"count": 1, "count_2": 2, "x": "NaN"}, {"count": 3, "count_2": 4, "x": ["-Infinity"]}]


def test_work_continues_if_nobody_reads_its_narration() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    program = (
        "from lamina.terminal.render import Output\no = Output()\nfor _ in range(3): o.tell('a line')\no.text('done')"
    )
    ran = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=writer, text=True, check=False)
    os.close(writer)
    assert (ran.returncode, ran.stdout) == (0, "done\n")


@pytest.mark.parametrize("port", ["", "x", "²", "65536"])
def test_an_address_without_a_port_is_wrong_usage(port: str) -> None:
    with pytest.raises(BadParameter, match="has no port from 0 to 65535"):
        listen_address(f"127.0.0.1:{port}", "127.0.0.1:80")


def test_an_error_that_ctrl_c_caused_is_not_reported_as_a_failure() -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JError("the job was cancelled")

    with pytest.raises(Py4JError) as cancelled:
        interrupted()
    with pytest.raises(Py4JError):
        as_lamina_error(cancelled.value)


def test_an_unreadable_folder_is_refused_and_hidden_files_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views, hidden = tmp_path / "views", tmp_path / ".ipynb_checkpoints"
    for folder in (views, hidden):
        folder.mkdir()
        (folder / "a.sql").write_text("SELECT 1")
    assert catalog_files(tmp_path) == {"views/a.sql": "SELECT 1"}
    scandir = os.scandir

    def closed(path: str) -> Iterator[os.DirEntry[str]]:  # a superuser, who may run this test, could read it
        if Path(path) == views:
            raise PermissionError(13, "Permission denied", str(views))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(LaminaError, match="views cannot be read"):
        catalog_files(tmp_path)


@pytest.mark.parametrize("password", ["abc/de?f=ghi", "abc?ghi=1", "abc?mechanism=ghi", "abc#ghi"])
def test_no_part_of_a_password_is_printed(password: str) -> None:
    with pytest.raises(LaminaError) as refused:
        brokers(f"sasl_ssl://key:{password}@kafka:9092?mechanism=PLAIN")
    assert "abc" not in str(refused.value)
    assert "ghi" not in str(refused.value)
    assert "…@kafka:9092" in str(refused.value)


def test_the_demo_reads_no_settings_outside_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lamina.toml").write_text("postgres = 'postgresql://production/lamina'\nkafka = 'production:9092'\n")
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    with pytest.raises(LaminaError) as refused:  # the embedded services do not run there
        Settings.read(home, {"LAMINA_HOME": str(home)})
    assert "production" not in str(refused.value)


def test_a_character_that_the_locale_lacks_does_not_end_a_command() -> None:
    """The command has done its work before it prints."""
    command = "import lamina.cli as cli; cli.lamina = lambda **_: print('→'); cli.main()"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\\u2192\n", "")


def test_bytes_are_shown_as_postgres_writes_them() -> None:
    assert cell(memoryview(b"\x00\xff")) == json_value(b"\x00\xff") == "\\x00ff"


HOSTILE = "x\x1b[31m\x07y\r\x9b2Jz\u202e"
SHOWN = r"x\x1b[31m\x07y\x0d\x9b2Jz\x202e"


def test_a_control_character_never_reaches_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    output.tell(f"told {HOSTILE}")
    output.text(f"a\tb\n{HOSTILE}")
    output.alarm(HOSTILE)
    output.error(LaminaError(HOSTILE, evidence=f"line 1\n{HOSTILE}", way_out=HOSTILE))
    output.table([HOSTILE], [[HOSTILE]])
    log_to_stderr(output.err)
    logging.getLogger("lamina.test").warning("logged %s", HOSTILE)
    shown = "".join(capsys.readouterr())
    assert shown.count(SHOWN) == 9
    Output(as_json=True).table([HOSTILE], [[HOSTILE]])
    Output(as_json=True).error(LaminaError(HOSTILE))
    shown += "".join(capsys.readouterr())
    assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e"} & set(shown)


def test_json_keeps_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).table(["text"], [[HOSTILE]])
    assert json.loads(capsys.readouterr().out) == {"text": HOSTILE}
