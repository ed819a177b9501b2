"""Clusters of Kafka 3.9 in KRaft mode, from the jars with which the ZooKeeper era's samples are
made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from data.maker.zookeeper_jars import JARS, KAFKA, ensure_zookeeper_era
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.metadata_names import METADATA_DIR
from kafkalog.restoring.left_metadata import read_left_metadata
from kafkalog.restoring.quorum import recorded_voters
from tests.oracle.setup import OracleRuntime
from tests.restoring.live_cluster import TOPICS, LostQuorum, lost_quorum

_LOG4J = """log4j.rootLogger=INFO, o
log4j.appender.o=org.apache.log4j.ConsoleAppender
log4j.appender.o.layout=org.apache.log4j.PatternLayout
log4j.appender.o.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


@contextmanager
def era_quorum(
    directory: Path, count: int, topics: Mapping[str, int] = TOPICS, *, is_dynamic: bool = False
) -> Iterator[LostQuorum]:
    """As `lost_quorum`; a dynamic one of one node is formatted as --standalone."""
    era = ensure_zookeeper_era()
    assert KAFKA.startswith("3.9.")
    classes = directory / "classes"
    classes.mkdir(parents=True)
    (classes / "log4j.properties").write_text(_LOG4J)
    jars = tuple(JARS / Path(name).name for name in era.kafka.split(":"))
    with lost_quorum(directory, count, is_dynamic=is_dynamic, topics=topics) as cluster:
        for broker in cluster.nodes.values():
            broker._runtime = OracleRuntime(era.java, classes, jars)
            if is_dynamic and count == 1:
                broker._format_options = ("--standalone",)
                cluster.voters = f"1@127.0.0.1:{broker.controller_port}"
        yield cluster


def voters_of(cluster: LostQuorum) -> list[int]:
    """By the metadata logs; none of a static quorum."""
    left = read_left_metadata(open_log_dir(*cluster.log_dirs, reads_buckets=False))
    voters = left.voters if left is not None else None
    return sorted(each.node_id for each in recorded_voters(voters or ()))


def as_migrated(log_dir: str) -> None:
    """Its meta.properties as a broker has it that came from ZooKeeper: `samples/migration`."""
    path = Path(log_dir, "meta.properties")
    text = path.read_text().replace("version=1", "version=0").replace("node.id=", "broker.id=")
    path.write_text(text)


def with_places_for_metadata(cluster: LostQuorum) -> None:
    """Each node of several log dirs says in which its metadata log is to be."""
    for node in cluster.nodes:
        Path(cluster.log_dirs_of(node)[0], METADATA_DIR).mkdir()
