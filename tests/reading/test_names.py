"""A string where several names may be is a name, not its letters."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import kafkalog
from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.requests.run_request import RunOptions, run_request
from tests.support.log_builder import LogBuilder


@pytest.fixture
def path(log_dir: Path) -> str:
    for name in ("orders-0", "orders-1", "others-0"):
        LogBuilder(log_dir, name).batch(("a", "1"), ("b", "2")).write()
    return str(log_dir)


def test_a_string_names_topics_columns_keys_and_paths(path: str) -> None:
    def records(**asked: object) -> pa.Table:
        return kafkalog.read_records(path, **asked).read_all()  # type: ignore[arg-type]

    assert records(topics="orders", columns="offset").equals(
        records(topics=["orders"], columns=["offset"])
    )
    both = records(topics="orders, others", columns="topic,offset")
    assert both.column_names == ["topic", "offset"]
    assert both.num_rows == 6
    assert records(keys=b"a", columns="key")["key"].to_pylist() == [b"a"] * 3
    assert kafkalog.read_batches(path, topics="others", columns="baseOffset").num_rows == 1
    assert kafkalog.read_view("segments", path, topics="orders", columns="topic").num_rows == 2
    with pytest.raises(InvalidConfigError, match=r"^not there: order; there are: orders, others$"):
        records(topics="order")
    with pytest.raises(InvalidConfigError, match="column 'keys' is unknown"):
        records(columns="keys")


def test_a_string_names_what_a_run_is_asked_for(path: str) -> None:
    """As `kafkalog.spark.compact(spark, path, topics="orders")` and its kin hand it over."""
    options: RunOptions = {
        "topics": "orders",
        "config": "cleanup.policy=compact,delete",
        "force": "null-keys",
        "now_ms": 0,
    }
    request = run_request(path, options)  # type: ignore[arg-type]
    assert (request.log_dirs, request.topics) == ((path,), ("orders",))
    assert request.config.cleanup_policy == ("compact", "delete")
    assert request.force == {"null-keys"}
    name = TopicPartition("orders", 1)
    one: RunOptions = {"topic_partitions": name, "now_ms": 0}  # type: ignore[typeddict-item]
    assert run_request([path], one).topic_partitions == (name,)
