"""`python -m tests.fuzz --views 200 --seed 1`: views and records at random, each view against Spark's answer.

A difference is shrunk, and printed with its catalog and records. The exit code is then 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2

import lamina.spark.spark_session
from lamina.configuration.settings import Settings
from lamina.services import postgres
from tests.fix_services import new_home, quick_java, remove_home
from tests.fuzz.fuzzing import Fuzzing, report
from tests.fuzz.rounds import session
from tests.laws.engines import Engines

REASONS = 20
"""The number of reasons for refusals to print, the most frequent first."""


def main() -> int:
    """Fuzzes, and returns 1 if a view was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--views", type=int, default=200, help="number of views")
    parser.add_argument("--seed", type=int, default=1, help="seed of views and records")
    parser.add_argument("--joins", action="store_true", help="generate joins only")
    parser.add_argument("--keep-going", action="store_true", help="report every difference, not only the first")
    arguments = parser.parse_args()
    began = time.monotonic()
    with _engines() as engines:
        fuzzing = Fuzzing(arguments.seed, joins=arguments.joins)
        for finding in fuzzing.run(engines, arguments.views):
            print(report(finding), flush=True)
            if not arguments.keep_going:
                break
    for reason, count in fuzzing.refused.most_common(REASONS):
        print(f"{count:5} refused: {reason}", file=sys.stderr)
    print(f"{fuzzing.summary()} in {time.monotonic() - began:.0f} seconds", file=sys.stderr)
    return 1 if fuzzing.differed else 0


@contextmanager
def _engines() -> Iterator[Engines]:
    """Spark and an empty Postgres of this run."""
    home = new_home("fuzz")
    try:
        server = postgres.start(home, port=None)
        url = postgres.url(home, server.port)
        settings = Settings(
            postgres=url,
            analyst=postgres.url(home, server.port, role=postgres.ANALYST),
            kafka="localhost:1",
            warehouse=str(home / "warehouse"),
            spark_master="local[2]",
            home=home,
            embedded=True,
        )
        spark = lamina.spark.spark_session.session(settings, "fuzz", java_options=quick_java(home, "spark"))
        engines = Engines(session(spark), psycopg2.connect(url), compiling=False)
        engines.prepare()
        yield engines
        engines.connection.close()
        spark.stop()
    finally:
        remove_home(home)


if __name__ == "__main__":
    sys.exit(main())
