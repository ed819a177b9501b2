"""kafkalog: read, query, audit and compact Kafka's log segments without a broker.

    import kafkalog
    kafkalog.read_records("/var/lib/kafka/data", columns=["key", "offset"])   # stream of Arrow
    batches kafkalog.read_batches("/var/lib/kafka/data/orders-0")                     # Arrow table
    kafkalog.open_log_dir("/var/lib/kafka/data")                              # what is there

Where to begin reading: `format` (what is on the disk), `kernels` (how it is walked), `batches`,
`columns`, `reading` (the one reading path), then `log`, `planning`, `cleaning`, `swap` for
compaction;
`spark` and `cli` are the faces. Each room's docstring is its guide. A name below is imported when
it is first used, so `import kafkalog` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkalog.duckdb.api import connect as connect
    from kafkalog.duckdb.api import sql as sql
    from kafkalog.log.log_dir import open_log_dir as open_log_dir
    from kafkalog.log.topic_partition import TopicPartition as TopicPartition
    from kafkalog.planning.compaction import plan_compaction as plan_compaction
    from kafkalog.planning.retention import plan_retention as plan_retention
    from kafkalog.reading.fetch import fetch as fetch
    from kafkalog.reading.lookups import list_offsets as list_offsets
    from kafkalog.reading.lookups import offset_for_leader_epoch as offset_for_leader_epoch
    from kafkalog.reading.tables import read_batches as read_batches
    from kafkalog.reading.tables import read_records as read_records
    from kafkalog.reading.tables import read_view as read_view
    from kafkalog.reading.zookeeper_tables import read_zookeeper as read_zookeeper

__version__ = "1.0.0rc1"

_PUBLIC = {
    "TopicPartition": "kafkalog.log.topic_partition",
    "connect": "kafkalog.duckdb.api",
    "fetch": "kafkalog.reading.fetch",
    "list_offsets": "kafkalog.reading.lookups",
    "offset_for_leader_epoch": "kafkalog.reading.lookups",
    "open_log_dir": "kafkalog.log.log_dir",
    "plan_compaction": "kafkalog.planning.compaction",
    "plan_retention": "kafkalog.planning.retention",
    "read_batches": "kafkalog.reading.tables",
    "read_records": "kafkalog.reading.tables",
    "read_view": "kafkalog.reading.tables",
    "read_zookeeper": "kafkalog.reading.zookeeper_tables",
    "sql": "kafkalog.duckdb.api",
}

__all__ = [
    "TopicPartition",
    "__version__",
    "connect",
    "fetch",
    "list_offsets",
    "offset_for_leader_epoch",
    "open_log_dir",
    "plan_compaction",
    "plan_retention",
    "read_batches",
    "read_records",
    "read_view",
    "read_zookeeper",
    "sql",
]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'kafkalog' has no attribute '{name}'")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """The interface, not the modules that happen to be imported."""
    return __all__
