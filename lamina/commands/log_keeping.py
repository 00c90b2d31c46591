"""Commands that keep the master log: archive, maintain, the schemas of its records, and records to skip."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from lamina.commands.command import command, look_up, open_deployment
from lamina.terminal.failures import as_lamina_error
from lamina.terminal.render import Output


@command()
@click.argument("source")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
@click.option(
    "--reason", required=True, metavar="TEXT", help="The reason, stored permanently with the record's position."
)
def skip(output: Output, source: str, partition: int, offset: int, reason: str) -> None:
    """Skip one record that stops a source, and quarantine it.

    From now on, views, the master log, rebuilds and checks leave it out.
    """
    from lamina.operations import topic_records

    with open_deployment(output) as deployment:
        declared = look_up(deployment.deployed().sources, source, "source")
        new = topic_records.skip(deployment, declared, partition, offset, reason)
    named = f"{source}: partition {partition}, offset {offset} of {declared.topic}"
    output.text(
        f"{named} is skipped" if new else f"{named} was skipped before",
        source=source,
        topic=declared.topic,
        partition=partition,
        offset=offset,
        reason=reason,
        new=new,
    )


@command()
@click.argument("sources", nargs=-1)
def schemas(output: Output, sources: Sequence[str]) -> None:
    """List the schemas of a registry that records name.

    Without SOURCES, those of all sources are listed. A schema is `lacked` if the registry did not have it when the
    first record with it came. Such records are bad. Once the registry has the schema, raise ask_again in OPTIONS of the
    source. Then `lamina apply` counts them.
    """
    from serving_layer.promise.kept_schemas import listed

    with open_deployment(output) as deployment:
        deployed = deployment.deployed().sources
        for name in sources:
            look_up(deployed, name, "source")
        with deployment.database.begin() as connection:
            kept = listed(connection, sources)
    columns = ("source", "ask_again", "id", "schema", "since", "bad_records")
    rows = [
        (schema.source, schema.ask_again, schema.id, schema.kind or "lacked", schema.kept_at, schema.bad_records)
        for schema in kept
    ]
    output.table(columns, rows)


@command()
@click.argument("sources", nargs=-1)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Continue even if Kafka removed or lost records that should be in the log, and record which.",
)
def archive(output: Output, sources: Sequence[str], accept_loss: bool) -> None:
    """Archive the records that Kafka holds.

    Without SOURCES, those of all sources are archived.
    """
    if accept_loss and not sources:
        raise click.UsageError("--accept-loss needs SOURCES: it accepts the loss of these only")
    with open_deployment(output) as deployment:
        catalog = deployment.deployed()
        rows, failed = [], []
        for name in sources or catalog.sources:
            source = look_up(catalog.sources, name, "source")
            try:
                end = deployment.brokers.latest(source.topic)
                count = deployment.batch.logs.archive(source, end, accept_loss=accept_loss)
                rows.append((name, count, str(deployment.log().held(source))))
            except Exception as error:  # noqa: BLE001 (the other sources do not wait for this one)
                output.error(as_lamina_error(error))
                failed.append(name)
        output.table(("source", "records", "held"), rows)
        if failed:
            sys.exit(1)


@command()
@click.argument("sources", nargs=-1)
def maintain(output: Output, sources: Sequence[str]) -> None:
    """Compact the master log, and vacuum tables.

    It also removes files that nothing needs any more from the logs of SOURCES, by default of all. Afterwards, every
    backup of the last LAMINA_BACKUP_DAYS can still be restored.
    """
    from lamina.operations.maintenance import maintain as run

    with open_deployment(output) as deployment:
        declared = deployment.deployed().sources
        done = run(deployment, [look_up(declared, name, "source") for name in sources or declared])
    output.tell(f"generations dropped: {', '.join(map(str, done.dropped)) or 'none'}")
    output.tell(f"tables vacuumed: {', '.join(done.vacuumed) or 'none'}")
    names = ("source", "files compacted", "snapshots expired", "files removed")
    output.table(names, [(name, log.compacted, log.expired, log.removed) for name, log in done.logs.items()])
    for error in done.failed:
        output.error(error)
    if done.failed:
        sys.exit(1)
