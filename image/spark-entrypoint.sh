#!/bin/bash
# What Kubernetes starts in Spark's pods: `driver ARGUMENTS` or `executor`, with the values in the
# environment that Spark sets there. Any other command runs as it is.
set -euo pipefail
case ${1:-} in
driver)
  shift
  set -- spark-submit --deploy-mode client --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
  ;;
executor)
  shift
  # SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …: one JVM option each, in the order of their numbers.
  mapfile -d '' -t options < <(for name in $(compgen -v SPARK_JAVA_OPT_ | sort -t_ -k4 -n); do printf '%s\0' "${!name}"; done)
  set -- java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" --podName "$SPARK_EXECUTOR_POD_NAME" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" "$@"
  ;;
esac
exec tini -s -- "$@"
