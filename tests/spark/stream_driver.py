"""A streaming job as a program of its own: a topic into Parquet files, all that is available now.

    python -m tests.spark.stream_driver BOOTSTRAP TOPIC DIRECTORY [points]

With `points` it never ends, and can be held at the points of points.py by files in DIRECTORY.
The checkpoint, the files and everything of Spark are in DIRECTORY. Spark's log goes to the named
pipe DIRECTORY/log, in lines that are longer than the pipe takes: see lockstep.py.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.spark.session import local_session
from tests.spark.points import register_points

LOG: Final = "log"
LINE_BYTES: Final = 6000
LOGGING: Final = f"""
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %-{LINE_BYTES}m%n
logger.streaming.name = org.apache.spark.sql.execution.streaming
logger.streaming.level = info
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = info
"""


def main() -> None:
    faulthandler.register(signal.SIGQUIT)
    bootstrap, topic, name, *points = sys.argv[1:]
    directory = Path(name)
    own = Path(tempfile.mkdtemp(dir=directory))
    logging = own / "log4j2.properties"
    logging.write_text(LOGGING)
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
        f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "spark.local.dir": str(own),
    }
    log = directory / LOG
    java_home = make_java_home(own / "java", find_java(), log)
    with local_session("stream", java_home, log, cores=1, conf=conf) as spark:
        source = spark.readStream.format("kafka08")
        if points:
            register_points(spark)
            source = source.format("kafka08-points").option("points", name)
        writer = (
            source.option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(directory / "checkpoint"))
        )
        if not points:
            writer = writer.trigger(availableNow=True)
        query = writer.start(str(directory / "output"))
        query.awaitTermination()


if __name__ == "__main__":
    main()
