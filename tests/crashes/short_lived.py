"""`lamina speed`, over a JVM that outlives it: starting Spark would take most of the time of a process that is killed.

Of what the speed layer is, the process holds all that matters to the promise: the connections to Postgres, the
transactions, where the run is. The JVM only computes, and is told to let go of what a dead process has left there.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping

from py4j.java_gateway import JavaObject
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from lamina.deployment import Deployment
from lamina.settings import Settings
from lamina.spark import sibling


def lent(spark: SparkSession) -> Mapping[str, str]:
    """What another process has to know to use this JVM."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    parameters = gateway.java_parameters
    return {"PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}


def taken_back(spark: SparkSession) -> None:
    """The JVM calls this process again, and lets go of what others have begun in it."""
    gateway = spark.sparkContext._gateway
    if gateway is not None and getattr(gateway, "_callback_server", None) is not None:
        server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
        server.resetCallbackClient(server.getCallbackClient().getAddress(), gateway._python_proxy_port)
    _let_go(spark)


def _let_go(spark: SparkSession) -> None:
    for query in list(spark._jsparkSession.sharedState().activeStreamingQueries().values()):
        if query is not None:  # one that ends meanwhile has left the map
            query.stop()


def borrowed() -> SparkSession:
    """A session of the JVM that this process was told of; what dead processes have begun in it ends."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    jvm = gateway.jvm
    running = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    configuration = SparkConf(_jvm=jvm, _jconf=running.getConf())
    spark = SparkSession(SparkContext(gateway=gateway, jsc=running, conf=configuration))
    _let_go(spark)
    return spark


def _stop_at(place: str) -> None:
    if os.environ.get("LAMINA_STOP_AT") == place:
        os.kill(os.getpid(), signal.SIGKILL)


def main(max_records: int) -> None:
    """Runs the speed layer until it is told to end."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    settings = Settings.read()
    deployment = Deployment(settings, lent=sibling(borrowed(), settings), at=_stop_at)
    deployment.speed(stopping, max_records=max_records).run()


if __name__ == "__main__":
    main(int(sys.argv[-1]))
