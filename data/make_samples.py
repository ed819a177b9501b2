"""Make `data/samples` anew with a real broker: `python data/make_samples.py`.

Single-node brokers (KRaft, Kafka's own jars, see tests/oracle/setup.py) are started on the
loopback address one after the other:

* `broker`   topics of every kind the formats know, stopped cleanly;
* `cleaning` two compacted topics, kept twice: as they were *before* Kafka's cleaner came by and
             *after* its single pass. The clock of that pass is read back from the delete horizons
             it wrote, so anybody can ask for the same pass again and compare bytes;
* `share`    the state of two share groups;
* `cluster`  three nodes, what happened to them, and what their admin API said meanwhile;
* `zookeeper` two clusters of Kafka 3.9 in one ZooKeeper, which all die at the end;
* `migration` a cluster of Kafka 3.9 that moves from ZooKeeper to KRaft;
* `tiered`   a topic whose older segments are in remote storage, and what consumers read of it;
* `groups`   groups of every kind, and what Kafka's tools said of them meanwhile.

Names on the command line (`python data/make_samples.py share`) make only those samples anew.

Values, keys and their order come from fixed seeds; times, producer ids and directory ids do not, so
a second run gives other bytes with the same meaning. Everything is described in data/README.md,
whose table this script writes, and listed with sizes, times and digests in samples/MANIFEST.json.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from data.copy_samples import read_manifest
from data.maker.client import Cluster
from data.maker.description import describe, disk_bytes, write_manifest, write_table
from data.maker.groups_story import TOPICS as GROUP_TOPICS
from data.maker.groups_story import make as make_groups_sample
from data.maker.migration_story import TOPICS as MIGRATION_TOPICS
from data.maker.migration_story import make as make_migration_sample
from data.maker.records import updates, varied
from data.maker.three_nodes import play, three_nodes, write_events
from data.maker.tiered_story import TOPICS as TIERED_TOPICS
from data.maker.tiered_story import make as make_tiered_sample
from data.maker.topics import CODECS, NEVER_MS, STEPS, TOPICS
from data.maker.zookeeper_story import TOPICS as ZOOKEEPER_TOPICS
from data.maker.zookeeper_story import make as make_zookeeper_sample
from kafkalog.format.record_batch import HEADER
from tests.support.broker import running_broker

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "data" / "samples"
README = ROOT / "data" / "README.md"
NOTHING_YET: dict[str, Any] = {"date": "", "cleaning": {}, "files": {}}
MAX_DISK_BYTES = 8 * 1024 * 1024
DELETE_RETENTION_MS = 86_400_000

SAMPLE_NAMES = (
    *("broker", "cleaning", "share", "cluster", "zookeeper", "migration", "tiered", "groups"),
)
SHARE_TOPICS = {
    "shared": "2 partitions, shared by two groups",
    "__share_group_state": "their states, superseded again and again; its policy is delete",
}
CLUSTER_TOPICS = {
    "1/data/__cluster_metadata": "the metadata log of three KRaft nodes, as node 1 has it",
    "1/data-2/orders": "3 replicas; of node 1 these are in its second log dir",
    "1/data/fragile": "2 replicas, one of them elected uncleanly",
    "1/data/removed": "deleted, and created anew with another id",
}
CLEANING_TOPICS = {
    "accounts": "2 partitions, uncompressed, updates and tombstones, one idempotent producer",
    "sessions": "1 partition, codec by batch, updates, tombstones, headers",
}


def make_broker_sample(scratch: Path) -> None:
    with running_broker(scratch / "broker") as broker:
        cluster = Cluster(broker)
        for step in STEPS:
            say(step.__name__.replace("_", " "))
            step(cluster)
    keep(broker.log_dir, "broker")


def make_share_sample(scratch: Path) -> None:
    """Two groups that share a topic in several turns, so that each has many states, one after the
    other.
    """
    with running_broker(scratch / "share") as broker:
        cluster = Cluster(broker)
        cluster.create("shared", 2)
        for turn in range(8):
            for partition in range(2):
                cluster.produce("shared", varied(20, f"shared-{turn}"), partition=partition)
            for group in ("readers", "others"):
                cluster.share(group, ["shared"], 40)
            if turn == 0:  # created by the first share group; small segments from then on
                cluster.alter("__share_group_state", internal_segment_bytes=2048)
    keep(broker.log_dir, "share")


def make_cluster_sample(scratch: Path) -> None:
    """Three nodes; `events.json` has what their admin API said after each step."""
    with three_nodes(scratch / "cluster") as cluster:
        play(cluster, say)
        cluster.stop()
    for node, broker in cluster.nodes.items():
        for log_dir in sorted(broker.directory.glob("data*")):
            keep(log_dir, f"cluster/{node}/{log_dir.name}")
    write_events(cluster.events, SAMPLES / "cluster" / "events.json")


# -- the pair of `cleaning` ----------------------------------------------------------------------


def make_cleaning_sample(scratch: Path) -> dict[str, Any]:
    """Stop before the cleaner may come, keep the directory, let it come once, keep it again."""
    settings = {
        "cleanup_policy": "compact",
        "min_cleanable_dirty_ratio": 0.01,
        "delete_retention_ms": DELETE_RETENTION_MS,
        "internal_segment_bytes": 16_384,
        "index_interval_bytes": 1024,
    }
    with running_broker(scratch / "cleaning") as broker:
        cluster = Cluster(broker)
        for topic, partitions in (("accounts", 2), ("sessions", 1)):
            cluster.create(topic, partitions, min_compaction_lag_ms=NEVER_MS, **settings)
        for partition in range(2):
            for turn in range(3):
                records = updates("account", 500, 150, f"accounts-{partition}-{turn}")
                idempotent = turn == 1
                cluster.produce(
                    "accounts",
                    records,
                    partition=partition,
                    compression_type="none",
                    enable_idempotence=idempotent,
                )
        for turn in range(8):
            records = updates("session", 250, 120, f"sessions-{turn}")
            cluster.produce("sessions", records, compression_type=CODECS[turn % len(CODECS)])
    keep(broker.log_dir, "cleaning/before")

    say("letting Kafka's cleaner pass once")
    broker.start()
    # Wider segments than they were written with, so that the pass puts several into one.
    altered = {"internal_segment_bytes": 40_960, "min_compaction_lag_ms": 0}
    settings.update(altered)
    for topic in CLEANING_TOPICS:
        Cluster(broker).alter(topic, **altered)
    wait_for_cleaner(broker.log_dir / "cleaner-offset-checkpoint", partitions=3)
    broker.stop()
    keep(broker.log_dir, "cleaning/after")
    config = {name.replace("_", "."): str(value) for name, value in settings.items()}
    clocks = cleaning_clocks(SAMPLES / "cleaning" / "after")
    return {"nowMs": clocks, "config": config, "topics": list(CLEANING_TOPICS)}


def wait_for_cleaner(checkpoint: Path, partitions: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if checkpoint.exists() and len(checkpoint.read_text().splitlines()) == 2 + partitions:
            time.sleep(1.0)  # the swap is done before the checkpoint; a second pass would show here
            return
        time.sleep(0.1)
    raise SystemExit("Kafka's cleaner did not come by in time")


def cleaning_clocks(log_dir: Path) -> dict[str, int]:
    """When the pass was at each partition: what the delete horizons say, less the retention."""
    clocks: dict[str, int] = {}
    for partition in sorted(
        p for p in log_dir.iterdir() if p.name.startswith(tuple(CLEANING_TOPICS))
    ):
        horizons = {h for log in partition.glob("*.log") for h in delete_horizons(log.read_bytes())}
        if len(horizons) != 1:
            raise SystemExit(f"{partition.name}: {len(horizons)} delete horizons, so not one pass")
        clocks[partition.name] = horizons.pop() - DELETE_RETENTION_MS
    return clocks


def delete_horizons(data: bytes) -> Iterator[int]:
    """Base timestamps of the batches that carry the delete-horizon bit (attributes, bit 6)."""
    position = 0
    while position + HEADER.itemsize <= len(data):
        header = np.frombuffer(data, HEADER, count=1, offset=position)[0]
        if int(header["attributes"]) & 0x40:
            yield int(header["base_timestamp"])
        position += 12 + int(header["batch_length"])


# -- keeping --------------------------------------------------------------------------------------


def keep(log_dir: Path, name: str) -> None:
    """Copy a cleanly stopped log dir. Its lock file is made by whoever opens it."""
    target = SAMPLES / name
    shutil.copytree(log_dir, target, ignore=shutil.ignore_patterns(".lock"))
    say(f"kept {name}: {disk_bytes(target) / 1024:.0f} KiB on disk")


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def main(wanted: list[str]) -> int:
    wanted = wanted or list(SAMPLE_NAMES)
    if not set(wanted) <= set(SAMPLE_NAMES):
        raise SystemExit(f"samples are {', '.join(SAMPLE_NAMES)}")
    SAMPLES.mkdir(parents=True, exist_ok=True)
    known = read_manifest() if set(wanted) < set(SAMPLE_NAMES) else NOTHING_YET
    cleaning = known["cleaning"]
    (SAMPLES / "MANIFEST.json").unlink(missing_ok=True)
    for name in wanted:
        shutil.rmtree(SAMPLES / name, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="kafkalog-samples-") as scratch:
        if "broker" in wanted:
            make_broker_sample(Path(scratch))
        if "cleaning" in wanted:
            cleaning = make_cleaning_sample(Path(scratch))
        if "share" in wanted:
            make_share_sample(Path(scratch))
        if "cluster" in wanted:
            make_cluster_sample(Path(scratch))
        if "zookeeper" in wanted:
            make_zookeeper_sample(Path(scratch) / "zookeeper", SAMPLES / "zookeeper")
        if "migration" in wanted:
            make_migration_sample(Path(scratch) / "migration", SAMPLES / "migration")
        if "tiered" in wanted:
            make_tiered_sample(Path(scratch) / "tiered", SAMPLES / "tiered")
        if "groups" in wanted:
            make_groups_sample(Path(scratch) / "groups", SAMPLES / "groups")
    manifest = describe(SAMPLES, cleaning)
    for path, facts in known["files"].items():
        # Git does not keep modification times: those of samples that stay are in the manifest.
        if path in manifest["files"] and path.split("/")[0] not in wanted:
            manifest["files"][path] = facts
    manifest["date"] = ", ".join(sorted({*known["date"].split(", "), manifest["date"]} - {""}))
    write_manifest(SAMPLES, manifest)
    groups = [
        ("broker", TOPICS),
        ("cleaning/before", CLEANING_TOPICS),
        ("cleaning/after", CLEANING_TOPICS),
        ("share", SHARE_TOPICS),
        ("cluster", CLUSTER_TOPICS),
        ("zookeeper/broker-1", ZOOKEEPER_TOPICS),
        ("migration/broker-1", MIGRATION_TOPICS),
        ("tiered/data", TIERED_TOPICS),
        ("groups/data", GROUP_TOPICS),
    ]
    write_table(README, SAMPLES, manifest, groups)
    total = disk_bytes(SAMPLES)
    say(f"{len(manifest['files'])} files, {total / 1024 / 1024:.1f} MiB on disk")
    return 0 if total <= MAX_DISK_BYTES else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
