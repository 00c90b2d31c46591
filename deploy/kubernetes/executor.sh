#!/bin/bash
# Starts the Spark executor of a pod. Spark passes the driver's address and the JVM's options as environment variables.
set -eu
cd "$(mktemp -d)" # an executor fetches its jars into the folder that it runs in
mapfile -t options < <(env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p')
spark=$(python -c 'import pyspark; print(*pyspark.__path__)')
exec "$JAVA_HOME/bin/java" "${options[@]}" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$SPARK_CONF_DIR:$spark/jars/*" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" --podName "$SPARK_EXECUTOR_POD_NAME" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID"
