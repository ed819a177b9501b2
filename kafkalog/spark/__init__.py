"""DataFrames over Kafka's log directories: the only room that imports pyspark.

    from kafkalog.spark import configure_spark, create_views
    spark = configure_spark(SparkSession.builder, master="local[*]").getOrCreate()
    create_views(spark, "/var/lib/kafka/data")
    spark.sql("SELECT topic, count(*) FROM record_offsets GROUP BY topic")

Read `options` (what a load takes), `source` (schema and columns), `batch_reader` (driver and
tasks), `types` (why a batch's nullability matters), `views`. Functions take a SparkSession first
and return DataFrames.

The names are imported when they are first used: Spark starts a Python process to look up a schema,
which must not wait for what compaction needs. A module of a verb has the verb's name or, where
a function here has it already, that of its job: importing a module puts it in the place of a
function of the same name.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if find_spec("pyspark") is None:
    raise ModuleNotFoundError(
        "kafkalog.spark needs Spark: pip install 'pyspark>=3.5.3,<4.4' 'pandas<3'", name="pyspark"
    )

if TYPE_CHECKING:
    from kafkalog.spark.analysis import gaps as gaps
    from kafkalog.spark.analysis import hot_keys as hot_keys
    from kafkalog.spark.analysis import key_stats as key_stats
    from kafkalog.spark.analysis import latest_by_key as latest_by_key
    from kafkalog.spark.apply_retention import retain as retain
    from kafkalog.spark.audit_bucket import bucket as bucket
    from kafkalog.spark.audit_retention import audit as audit
    from kafkalog.spark.check_segments import verify as verify
    from kafkalog.spark.cluster import acls as acls
    from kafkalog.spark.cluster import brokers as brokers
    from kafkalog.spark.cluster import client_quotas as client_quotas
    from kafkalog.spark.cluster import cluster_tables as cluster_tables
    from kafkalog.spark.cluster import configs as configs
    from kafkalog.spark.cluster import controllers as controllers
    from kafkalog.spark.cluster import features as features
    from kafkalog.spark.cluster import partition_changes as partition_changes
    from kafkalog.spark.cluster import scram as scram
    from kafkalog.spark.cluster import tokens as tokens
    from kafkalog.spark.cluster import topics as topics
    from kafkalog.spark.compact_topics import compact as compact
    from kafkalog.spark.compare_replicas import compare as compare
    from kafkalog.spark.coordinated import open_transactions as open_transactions
    from kafkalog.spark.coordinated import remote_segments as remote_segments
    from kafkalog.spark.coordinated import share_states as share_states
    from kafkalog.spark.coordinated import transactional_ids as transactional_ids
    from kafkalog.spark.delta_export import ExportResult as ExportResult
    from kafkalog.spark.delta_export import export_to_delta as export_to_delta
    from kafkalog.spark.figures import bytes_by_topic as bytes_by_topic
    from kafkalog.spark.figures import key_skew as key_skew
    from kafkalog.spark.figures import records_over_time as records_over_time
    from kafkalog.spark.group_views import coordinator_load as coordinator_load
    from kafkalog.spark.group_views import group_members as group_members
    from kafkalog.spark.group_views import group_offsets as group_offsets
    from kafkalog.spark.group_views import groups as groups
    from kafkalog.spark.group_views import lag as lag
    from kafkalog.spark.group_views import rebalances as rebalances
    from kafkalog.spark.group_views import top_committers as top_committers
    from kafkalog.spark.payloads import decode as decode
    from kafkalog.spark.scanning import scan as scan
    from kafkalog.spark.session import configure_spark as configure_spark
    from kafkalog.spark.session import register as register
    from kafkalog.spark.views import batches as batches
    from kafkalog.spark.views import create_topic_views as create_topic_views
    from kafkalog.spark.views import create_views as create_views
    from kafkalog.spark.views import list_segments as list_segments
    from kafkalog.spark.views import messages as messages
    from kafkalog.spark.views import partitions as partitions
    from kafkalog.spark.views import records as records
    from kafkalog.spark.views import segments as segments
    from kafkalog.spark.zookeeper import zookeeper_views as zookeeper_views

_PUBLIC = {
    "acls": "kafkalog.spark.cluster",
    "audit": "kafkalog.spark.audit_retention",
    "bucket": "kafkalog.spark.audit_bucket",
    "latest_by_key": "kafkalog.spark.analysis",
    "key_stats": "kafkalog.spark.analysis",
    "hot_keys": "kafkalog.spark.analysis",
    "gaps": "kafkalog.spark.analysis",
    "coordinator_load": "kafkalog.spark.group_views",
    "group_members": "kafkalog.spark.group_views",
    "group_offsets": "kafkalog.spark.group_views",
    "groups": "kafkalog.spark.group_views",
    "lag": "kafkalog.spark.group_views",
    "rebalances": "kafkalog.spark.group_views",
    "top_committers": "kafkalog.spark.group_views",
    "open_transactions": "kafkalog.spark.coordinated",
    "remote_segments": "kafkalog.spark.coordinated",
    "share_states": "kafkalog.spark.coordinated",
    "transactional_ids": "kafkalog.spark.coordinated",
    "create_topic_views": "kafkalog.spark.views",
    "batches": "kafkalog.spark.views",
    "brokers": "kafkalog.spark.cluster",
    "client_quotas": "kafkalog.spark.cluster",
    "cluster_tables": "kafkalog.spark.cluster",
    "compact": "kafkalog.spark.compact_topics",
    "compare": "kafkalog.spark.compare_replicas",
    "configs": "kafkalog.spark.cluster",
    "configure_spark": "kafkalog.spark.session",
    "controllers": "kafkalog.spark.cluster",
    "create_views": "kafkalog.spark.views",
    "ExportResult": "kafkalog.spark.delta_export",
    "export_to_delta": "kafkalog.spark.delta_export",
    "bytes_by_topic": "kafkalog.spark.figures",
    "key_skew": "kafkalog.spark.figures",
    "records_over_time": "kafkalog.spark.figures",
    "decode": "kafkalog.spark.payloads",
    "features": "kafkalog.spark.cluster",
    "list_segments": "kafkalog.spark.views",
    "messages": "kafkalog.spark.views",
    "partition_changes": "kafkalog.spark.cluster",
    "partitions": "kafkalog.spark.views",
    "records": "kafkalog.spark.views",
    "register": "kafkalog.spark.session",
    "retain": "kafkalog.spark.apply_retention",
    "scan": "kafkalog.spark.scanning",
    "scram": "kafkalog.spark.cluster",
    "segments": "kafkalog.spark.views",
    "tokens": "kafkalog.spark.cluster",
    "topics": "kafkalog.spark.cluster",
    "verify": "kafkalog.spark.check_segments",
    "zookeeper_views": "kafkalog.spark.zookeeper",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'kafkalog.spark' has no attribute '{name}'")
    return getattr(import_module(module), name)
