"""Spark reads and writes a JVM broker of 3.9.1 with TLS and a login, and shows no secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.jvm import POM_3_9, JvmMissing, classpath
from tests.interop.secured_broker import PASSWORD, SCRAM, USER, SecuredBroker, secured_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = [f"line {number}" for number in range(40)]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    try:
        classpath(POM_3_9)
        with secured_broker(tmp_path_factory.mktemp("jvm"), POM_3_9) as running:
            yield running
    except JvmMissing as missing:
        pytest.skip(str(missing))


def options_of(secured: SecuredBroker) -> dict[str, str]:
    login = f'{SCRAM} required username="{USER}" password="{PASSWORD}";'
    keys = secured.keys("SASL_SSL", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=login)
    return {f"kafka.{name}": value for name, value in keys.items()}


def executions(spark: SparkSession) -> str:
    """What the SQL tab of Spark's UI shows."""
    session: Any = spark
    store = session._jsparkSession.sharedState().statusStore()
    found = store.executionsList()
    texts = []
    for place in range(found.size()):
        execution = found.apply(place)
        texts += [execution.description(), execution.details(), execution.physicalPlanDescription()]
        graph = store.planGraph(execution.executionId())
        texts.append(graph.makeDotFile(store.executionMetrics(execution.executionId())))
    return "\n".join(texts)


def test_no_secret_is_shown(
    spark: SparkSession,
    secured: SecuredBroker,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In plans, in Spark's UI, in its logs, in checkpoints, and in errors: a batch that is written
    and read, a stream, and one of each whose password is wrong."""
    options = options_of(secured)
    written = spark.createDataFrame([(line,) for line in LINES], "value string")
    written.write.format("kafka08").options(**options, topic="secret").mode("append").save()
    frame: Any = spark.read.format("kafka08").options(**options, subscribe="secret").load()
    assert sorted(bytes(row.value).decode() for row in frame.collect()) == sorted(LINES)
    shown = [repr(frame), frame._jdf.queryExecution().toString()]

    checkpoint = tmp_path / "checkpoint"
    source = spark.readStream.format("kafka08").options(**options, subscribe="secret")
    copied = source.option("startingOffsets", "earliest").load().selectExpr("value")
    sink = copied.writeStream.format("kafka08").options(**options, topic="copied")
    query = sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(90)
    query.explain(extended=True)
    shown.append(str(query.lastProgress))
    files = [path for path in checkpoint.rglob("*") if path.is_file()]
    assert files
    shown += [path.read_bytes().decode("utf-8", "replace") for path in files]
    copies: Any = spark.read.format("kafka08").options(**options, subscribe="copied").load()
    assert copies.count() == len(LINES)

    login = "kafka.sasl.jaas.config"
    wrong = {**options, login: options[login].replace(PASSWORD, "guess-" + PASSWORD)}
    with pytest.raises(
        Exception, match="during authentication due to invalid credentials"
    ) as failed:
        spark.read.format("kafka08").options(**wrong, subscribe="secret").load().collect()
    shown.append(str(failed.value))

    logs = list(tmp_path_factory.getbasetemp().glob("spark*/spark.log"))
    assert logs
    shown += [executions(spark), *(log.read_text(errors="replace") for log in logs)]
    shown += capsys.readouterr()
    assert "kafka08" in shown[-1] + shown[-2]
    for text in shown:
        at = text.find(PASSWORD)
        assert at < 0, text[max(0, at - 300) : at + 100]
