"""Checks run over the rows that readers would read after a hand-over or after a catalog is deployed."""

from __future__ import annotations

from dataclasses import replace

from serving_layer.catalog import lookup
from serving_layer.catalog.deployed import deployed
from serving_layer.change import deploying, view_checks
from tests.serving_layer.world import FILES, World
from view_algebra import compile_catalog

JOINED = """
    CREATE VIEW joined AS SELECT sums.k, sums.s, counts.c FROM sums CROSS JOIN counts;
    ALTER VIEW joined ADD CONSTRAINT some CHECK (s > 0);
"""
MANY = "CREATE VIEW many AS SELECT k, count(*) AS c, sum(n) AS s FROM b GROUP BY k HAVING count(*) > 1;"
OF_MANY = """
    CREATE VIEW amounts AS SELECT k, count(*) AS c, sum(n) AS s FROM a WHERE k IN (SELECT k FROM many) GROUP BY k;
    ALTER VIEW amounts ADD CONSTRAINT some CHECK (s > 0);
"""


def deploy_over_records(world: World, **files: str) -> None:
    """Counts records, then deploys views over them."""
    for name in "ab":
        world.append(name, 0, ("x", 1), ("x", 2), ("y", -3))
        world.advance(name)
    world.change(allow_break=False, **files)


def failing_rows(world: World, **files: str) -> dict[str, int]:
    """The number of rows that fail each check that runs before these files are deployed."""
    catalog = compile_catalog({**world.files, **{f"{name}.sql": sql for name, sql in files.items()}})
    with world.database.begin() as connection:
        trial = view_checks.trial_of_catalog(connection, deploying.catalog_after_apply(connection, catalog), [])
        verdicts = [
            verdict for name in trial.catalog.views for verdict in view_checks.run_on_trial(connection, trial, name)
        ]
    return {f"{verdict.view} {verdict.check}": verdict.failing for verdict in verdicts}


def test_a_view_that_reads_a_rebuilt_view_next_to_its_own_cells_is_checked(world: World) -> None:
    deploy_over_records(world, many=MANY, amounts=OF_MANY)
    id = world.open("many")
    world.load(id)
    world.go_live(id)
    with world.database.begin() as connection:
        catalog = deployed(connection)
        assert catalog.views["amounts"].cell_tables
        assert catalog.views["amounts"].reads == ("many",)
        trial = view_checks.trial_of_handover(connection, catalog, [lookup.get(connection, id)])
        assert [verdict.failing for verdict in view_checks.run_on_trial(connection, trial, "amounts")] == [0]


def test_a_check_keeps_its_literals(world: World) -> None:
    """A literal may look like the name of a relation."""
    texts = "'analytics.joined', 'order.published.v1', 'published.sums'"
    checked = (
        f"CREATE VIEW texts AS SELECT k, explode(array({texts})) AS t FROM sums;"
        f"ALTER VIEW texts ADD CONSTRAINT known CHECK (t IN ({texts}));"
        "ALTER VIEW texts ADD CONSTRAINT grows CHECK (NOT EXISTS (SELECT 1 FROM published.texts AS published"
        " WHERE published.k IS DISTINCT FROM 'x' AND published.k IS DISTINCT FROM 'y'));"
    )
    deploy_over_records(world, texts=checked)
    assert failing_rows(world, texts=checked.replace("SELECT k,", "SELECT upper(k) AS k,")) == {
        "texts known": 0,
        "texts grows": 0,
    }


def test_a_check_that_postgres_cannot_run_fails_alone(world: World) -> None:
    deploy_over_records(world, joined=JOINED)
    ratio = "ALTER VIEW joined ADD CONSTRAINT ratio CHECK (s >= 0);"
    catalog = compile_catalog({**world.files, "joined.sql": JOINED + ratio})
    view = catalog.views["joined"]
    [broken] = [replace(check, failing="SELECT 1 / 0 AS s") for check in view.checks if check.name == "ratio"]
    checked = replace(view, checks=tuple(broken if check.name == "ratio" else check for check in view.checks))
    with world.database.snapshot() as connection:
        live = view_checks.run_on_live(connection, replace(catalog, views={"joined": checked}), ["joined"])
    assert [verdict.sentence for verdict in live] == [
        'joined: its check ratio fails: {"error": "division by zero"}',
        'joined: its check some fails for 1 row, the first {"c": 3, "k": "y", "s": -3}',
    ]


def test_a_view_is_checked_over_a_table_that_has_no_records_yet(world: World) -> None:
    deploy_over_records(world, joined=JOINED)
    names = "CREATE TABLE names (k STRING PRIMARY KEY, name STRING) USING kafka OPTIONS (topic 'n', format 'json');"
    changed = JOINED.replace("SELECT", "SELECT name,").replace("counts;", "counts LEFT JOIN names ON names.k = sums.k;")
    assert failing_rows(world, names=names, joined=changed) == {"joined some": 1}


def test_a_view_is_checked_over_a_view_that_is_renamed(world: World) -> None:
    deploy_over_records(world, joined=JOINED.replace("sums.", "t.").replace("FROM sums", "FROM sums AS t"))
    renamed = FILES["sums.sql"].replace("VIEW sums", "VIEW totals TBLPROPERTIES ('renamed_from' = 'sums')")
    of_it = JOINED.replace("sums.", "t.").replace("FROM sums", "FROM totals AS t")
    assert failing_rows(world, sums=renamed, joined=of_it) == {}
    assert failing_rows(world, sums=renamed, joined=of_it.replace(".s,", ".s + 3 AS s,")) == {"joined some": 1}
    assert failing_rows(world, sums=renamed, joined=of_it.replace(".s,", ".s + 4 AS s,")) == {"joined some": 0}


def test_a_view_is_checked_over_columns_that_return(world: World) -> None:
    deploy_over_records(world, joined=JOINED)
    without = JOINED.replace("sums.s,", "1 AS s,")
    fewer = FILES["sums.sql"].replace("AS s", "AS total").replace("FROM a", "FROM a WHERE n > -20")
    world.change(allow_break=True, sums=fewer, joined=without)
    assert failing_rows(world, sums=FILES["sums.sql"], joined=JOINED) == {"joined some": 1}


def test_a_kept_version_is_checked_when_it_returns(world: World) -> None:
    deploy_over_records(world, sums=FILES["sums.sql"].replace("FROM a", "FROM a WHERE n > -10"))
    world.change(sums=FILES["sums.sql"].replace("FROM a", "FROM a WHERE n > -20"))
    back = FILES["sums.sql"].replace("FROM a", "FROM a WHERE n > -10")
    assert failing_rows(world, sums=f"{back} ALTER VIEW sums ADD CONSTRAINT some CHECK (s > 0);") == {"sums some": 1}


def test_a_new_empty_view_is_not_checked_before_it_is_deployed(world: World) -> None:
    deploy_over_records(world)
    new = """
        CREATE TABLE c (k STRING) USING kafka OPTIONS (topic 'c', format 'json');
        CREATE VIEW keys AS SELECT k, count(*) AS n FROM c GROUP BY k;
        CREATE VIEW most AS SELECT max(n) AS n FROM keys;
        ALTER VIEW keys ADD CONSTRAINT some CHECK (count(*) > 0);
        ALTER VIEW most ADD CONSTRAINT some CHECK (n > 0);
    """
    assert failing_rows(world, new=new) == {}
