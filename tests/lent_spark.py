"""`lamina`, over a JVM that outlives the command: starting Spark would take most of the time of each.

`python -m tests.lent_spark rebuild` is `lamina rebuild`. All that matters to the promise is in the process:
the connections to Postgres, the transactions, where the run is. The JVM only computes. The streaming
queries that a dead speed layer has left there are stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from py4j.java_gateway import JavaClass, JavaObject, JavaPackage, JVMView
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import lamina.spark.spark_session
from lamina.cli import main
from lamina.configuration.settings import Settings
from lamina.spark.spark_configuration import iceberg_catalog
from serving_layer.postgres import log_catalog


def lent(spark: SparkSession) -> Mapping[str, str]:
    """The environment by which another process uses this JVM."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    parameters = gateway.java_parameters
    return {"PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}


def remember_java_names() -> None:
    """Lets Py4J ask the JVM once for each class and package that is named, as a field of the view that it is read from.

    Otherwise each call of PySpark asks again, and Java looks into 290 jars for each package that it could be in.
    """
    for kind in (JVMView, JavaPackage):
        kind.__getattr__ = _remembering(kind.__getattr__)


def _remembering(ask: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def get(of: Any, name: str) -> Any:
        answer = ask(of, name)
        if isinstance(answer, JavaClass | JavaPackage):
            vars(of)[name] = answer
        return answer

    return get


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


def sibling(spark: SparkSession, settings: Settings) -> SparkSession:
    """Another session of the same Spark for other settings' master log. It shares the JVM but no names."""
    log_catalog.ensure_schema(settings.postgres)
    other = spark.newSession()
    for key, value in iceberg_catalog(settings).items():
        other.conf.set(key, value)
    jvm = other.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(other._jsparkSession)
    return other


def borrowed(settings: Settings) -> SparkSession:
    """A session of the JVM that the environment names."""
    remember_java_names()
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    jvm = gateway.jvm
    running = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    configuration = SparkConf(_jvm=jvm, _jconf=running.getConf())
    spark = SparkSession(SparkContext(gateway=gateway, jsc=running, conf=configuration))
    if sys.argv[1:2] == ["speed"]:
        _let_go(spark)
    mine = sibling(spark, settings)
    mine.stop = lambda: None  # type: ignore[method-assign] # the JVM's owner goes on
    return mine


if __name__ == "__main__":
    lamina.spark.spark_session.session = lambda settings, *_, **__: borrowed(settings)
    main()
