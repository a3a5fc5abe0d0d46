# Spark with kafka08 for drivers, executors, masters and workers alike: kafka08's image with Java and
# PySpark. docker-compose.yml (profile spark) and a Kubernetes cluster run it: docs/spark-cluster.md.
ARG KAFKA08=kafka08:0.1.0

FROM ${KAFKA08}
USER root
RUN apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends default-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*
COPY image/spark-requirements.txt /tmp/
RUN pip --python /opt/kafka08/bin/python install -q --no-cache-dir --root-user-action=ignore --require-hashes -r /tmp/spark-requirements.txt \
    && ln -s "$(/opt/kafka08/bin/python -c 'import pyspark; print(*pyspark.__path__)')" /opt/spark \
    && install -d -o kafka08 /files /opt/work
COPY image/spark-entrypoint.sh /opt/entrypoint.sh
# The one Python of driver and executors.
ENV SPARK_HOME=/opt/spark PATH=/opt/spark/bin:$PATH PYSPARK_PYTHON=/opt/kafka08/bin/python \
    SPARK_WORKER_DIR=/opt/work
USER kafka08
WORKDIR /opt/work
ENTRYPOINT ["/opt/entrypoint.sh"]
CMD ["kafka08", "--help"]
