"""Queries over a bucket in a session with the UI of Spark, as a process of its own:

    python -m tests.spark.ui_session LOG_DIR REMOTE KEYS OUTPUT SECRET

OUTPUT gets what the UI's pages and its REST API say, the plans, the rows, and the event log. Each
query is made once as it should be, and once with SECRET in the URI, which is refused.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

from pyspark.sql import SparkSession

from kafkalog import spark as kl

PAGES = ("jobs/", "stages/", "storage/", "environment/", "executors/", "SQL/")
PARTS = (
    "environment", "jobs", "stages", "allexecutors", "storage/rdd",
    "sql?details=true&planDescription=true&length=1000",
)  # fmt: skip
PATIENCE_S = 600.0


def main() -> None:
    """Query, then write down what there is to be seen."""
    log_dir, remote, keys, output, secret = sys.argv[1:]
    spark = _session(Path(output, "events"))
    options = {"remoteDir": remote, "remoteKey": keys}
    frame = spark.read.format("kafkalog").options(**options).load(log_dir)
    rows = frame.select("offset", "value").collect()
    kl.create_views(spark, log_dir, **options)
    counted = spark.sql("SELECT count(*) FROM records").collect()[0][0]
    findings = kl.bucket(spark, [log_dir], remote_dirs=[remote]).collect()
    with_secret = remote.replace("//", f"//canary:{secret}@", 1)
    refused = []
    for schema in (None, "offset BIGINT"):
        reader = spark.read.format("kafkalog").options(**options | {"remoteDir": with_secret})
        try:
            (reader.schema(schema) if schema else reader).load(log_dir).collect()
        except Exception as error:
            refused.append(str(error))
    said = {"rows": len(rows), "counted": counted, "findings": len(findings)}
    Path(output, "answers.json").write_text(json.dumps(said))
    Path(output, "refused.txt").write_text("\n".join(refused))
    plan = frame._jdf.queryExecution().toString()
    Path(output, "plan.txt").write_text(plan)
    for number, text in enumerate(_seen(spark)):
        Path(output, f"seen-{number}.txt").write_text(text)
    spark.stop()


def _session(events: Path) -> SparkSession:
    events.mkdir()
    builder = SparkSession.builder.master("local[2]").appName("kafkalog ui")
    for key, value in {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    session: SparkSession = kl.configure_spark(builder).getOrCreate()
    kl.register(session)
    return session


def _seen(spark: SparkSession) -> Iterator[str]:
    context = spark.sparkContext
    root = context.uiWebUrl
    assert root is not None
    api = f"{root}/api/v1/applications/{context.applicationId}"
    _await_all(f"{api}/sql?length=1000")
    for address in (*(f"{api}/{part}" for part in PARTS), *(f"{root}/{page}" for page in PAGES)):
        yield _fetched(address)
    for query in json.loads(_fetched(f"{api}/sql?length=1000")):
        yield _fetched(f"{root}/SQL/execution/?id={query['id']}")


def _await_all(address: str) -> None:
    """Until the UI has no query any more that runs: it hears of their ends later than we do."""
    deadline = time.monotonic() + PATIENCE_S
    while any(query["status"] == "RUNNING" for query in json.loads(_fetched(address))):
        if time.monotonic() > deadline:
            raise TimeoutError(address)
        time.sleep(0.1)


def _fetched(address: str) -> str:
    with urlopen(address, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


if __name__ == "__main__":
    main()
