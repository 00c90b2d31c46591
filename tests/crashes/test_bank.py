"""Money moves between the accounts of a bank, on two topics. The sum over all accounts never changes."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator

import psycopg2
from pyspark.sql import SparkSession

from lamina.operations import applying
from tests.fix_lamina import CommandLine, Deployed, short_lived

ACCOUNTS, OPENING, TRANSFERS = 40, 1_000, 400

MOVED = "LATERAL VIEW stack(2, payer, -amount, payee, amount) m AS account, amount"
"""The amount that a transfer takes from one account and gives to another."""

BANK = f"""
    CREATE TABLE accounts (id INT PRIMARY KEY, branch STRING)
    USING kafka OPTIONS (topic '{{topics}}_accounts', format 'json') TBLPROPERTIES ('partitions' = '2');
    CREATE TABLE wires (payer INT, payee INT, amount BIGINT)
    USING kafka OPTIONS (topic '{{topics}}_wires', format 'json') TBLPROPERTIES ('partitions' = '2');
    CREATE TABLE cheques (payer INT, payee INT, amount BIGINT)
    USING kafka OPTIONS (topic '{{topics}}_cheques', format 'json') TBLPROPERTIES ('partitions' = '1');

    CREATE VIEW wired AS SELECT m.account, sum(m.amount) AS amount FROM wires {MOVED} GROUP BY m.account;
    CREATE VIEW cashed AS SELECT m.account, sum(m.amount) AS amount FROM cheques {MOVED} GROUP BY m.account;
    CREATE VIEW balances AS
    SELECT a.id, {OPENING} + coalesce(w.amount, 0) + coalesce(c.amount, 0) AS balance
    FROM accounts a LEFT JOIN wired w ON w.account = a.id LEFT JOIN cashed c ON c.account = a.id;

    CREATE VIEW branches AS
    SELECT a.branch, sum(w.amount) AS amount
    FROM (SELECT m.account, m.amount FROM wires {MOVED}) w JOIN accounts a ON a.id = w.account GROUP BY a.branch;
"""

ADDED_UP = """
    SELECT (SELECT count(*) FROM balances), (SELECT sum(balance) FROM balances),
           (SELECT coalesce(sum(amount), 0) FROM branches)
"""


def account(dice: random.Random, id: int) -> dict[str, object]:
    """An account at a random branch. An account that moves takes its money along."""
    return {"id": id, "branch": dice.choice(["north", "south", "west"])}


def transfer(deployed: Deployed, dice: random.Random) -> None:
    """Sends transfers of random amounts to both topics, and moves some accounts."""
    for topic in ("wires", "cheques"):
        transfers = [[*dice.sample(range(ACCOUNTS), 2), dice.randrange(1, 500)] for _ in range(TRANSFERS)]
        deployed.send(
            topic, *(dict(zip(("payer", "payee", "amount"), transfer, strict=True)) for transfer in transfers)
        )
    deployed.send("accounts", *(account(dice, id) for id in dice.sample(range(ACCOUNTS), 5)))


@contextlib.contextmanager
def adding_up(deployed: Deployed) -> Iterator[Counter[tuple[object, ...]]]:
    """Counts the rows that a client reads inside the block, one statement at a time."""
    rows: Counter[tuple[object, ...]] = Counter()
    ended = threading.Event()
    assert deployed.deployment.settings.analyst is not None
    connection = psycopg2.connect(deployed.deployment.settings.analyst, options="-c search_path=analytics")
    connection.autocommit = True

    def read() -> None:
        with connection.cursor() as cursor:
            while not ended.is_set():
                cursor.execute(ADDED_UP)
                [row] = cursor.fetchall()
                rows[tuple(map(int, row))] += 1

    thread = threading.Thread(target=read, name="the bank's auditor")
    thread.start()
    try:
        yield rows
    finally:
        ended.set()
        thread.join()
        connection.close()


def test_the_sum_over_all_accounts_never_changes(deployed: Deployed, lamina: CommandLine, spark: SparkSession) -> None:
    dice = random.Random(5)
    deployed.apply(bank=BANK)
    deployed.send("accounts", *(account(dice, id) for id in range(ACCOUNTS)))
    deployed.catch_up()
    batch = deployed.deployment.batch
    with adding_up(deployed) as rows:
        for _ in range(2):
            transfer(deployed, dice)
            before = deployed.progress("wires")
            with short_lived(lamina, spark, max_records=50) as process:
                deployed.until(lambda: deployed.progress("wires") != before or process.poll() is not None, "it commits")  # noqa: B023
                time.sleep(dice.uniform(0, 0.5))
            assert process.returncode == -9
        with deployed.speed(max_records=50):
            transfer(deployed, dice)
            batch.rebuild()
            transfer(deployed, dice)
            for view in ("wired", "accounts", "branches"):
                applying.roll_back(deployed.deployment, view)
            batch.rebuild()
        transfer(deployed, dice)
        batch.rebuild(leap=True)
        deployed.catch_up()
    assert rows.keys() == {(ACCOUNTS, ACCOUNTS * OPENING, 0)}
    assert rows.total() > 100
    assert deployed.owner("SELECT sum(differing) FROM lamina.proof") == [(0,)]
    assert deployed.rows("SELECT count(DISTINCT balance) > 9 FROM balances") == [(True,)], "money has moved"
    deployed.check()
