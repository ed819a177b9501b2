"""What speaks against a plan of `attach`, and what somebody has to know before it is carried out.

Source: Kafka LogManager.loadLogs, LogManager.isStrayReplica.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkalog.format.topics import INTERNAL_POLICIES
from kafkalog.log.inventory import PartitionKind
from kafkalog.messages.cluster_metadata import BROKER_RESOURCE
from kafkalog.planning.force_rules import FORCE_METADATA_LEFT
from kafkalog.restoring.attach_facts import ELIGIBLE_LEADERS, AttachFacts, Notes
from kafkalog.restoring.disks import DiskCopy, Disks, duplicates
from kafkalog.restoring.left_metadata import LeftMetadata

_SHOWN = 3


def check_disks(facts: AttachFacts, notes: Notes) -> None:
    disks = facts.disks
    notes.refusals += disks.problems
    for first, second in duplicates(disks.copies):
        notes.refusals.append(
            f"{first.name} lies twice on node {first.node_id}: {first.path} and {second.path}; "
            "move the wrong one out of its log dir"
        )
    if facts.with_records and FORCE_METADATA_LEFT not in facts.force:
        notes.refusals.append(
            f"there are metadata records in {', '.join(facts.with_records)}: the quorum may not be "
            "lost. If a majority of the controllers has its log, start them. If not, "
            f"--force {FORCE_METADATA_LEFT} takes over what they say, and moves them aside"
        )
    if not disks.copies:
        notes.refusals.append("no partition is in these log dirs")
    if migrated := sorted({each.node_id for each in disks.dirs if each.was_migrated}):
        notes.warnings.append(
            f"nodes {', '.join(map(str, migrated))} came from ZooKeeper (version=0 in "
            "meta.properties). If the migration had not ended, ZooKeeper has the metadata still, "
            "and going back to it loses less; if it had, start them without zookeeper.connect"
        )
    _check_other_directories(disks, notes)


def _check_other_directories(disks: Disks, notes: Notes) -> None:
    by_kind: dict[PartitionKind, list[str]] = {}
    for path, kind in disks.others:
        by_kind.setdefault(kind, []).append(path)
    if stray := by_kind.get(PartitionKind.STRAY):
        log_dirs = " ".join(f"{each}/*-stray" for each in sorted({_parent(p) for p in stray}))
        notes.refusals.append(
            f"{_listed(stray)}: a start without metadata renamed them; while the brokers are "
            "stopped give them their names back, or move what is rightly stray out of the log dir: "
            f'for d in {log_dirs}; do mv "$d" "${{d%.*}}"; done'
        )
    if future := by_kind.get(PartitionKind.FUTURE):
        notes.warnings.append(f"{_listed(future)}: a move between log dirs that has not ended")
    if deleted := by_kind.get(PartitionKind.DELETE):
        notes.warnings.append(f"{_listed(deleted)}: brokers were deleting these, and go on")
        live = {str(each.name) for each in disks.copies}
        both = sorted({name for path in deleted if (name := _name_of(path)) in live})
        if both:
            notes.warnings.append(
                f"{', '.join(both)}: deleted on one node and live on another: if the topic was "
                "deleted, and no replica moved away, delete it again"
            )


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _name_of(path: str) -> str:
    """`…/orders-0.0123abc-delete` → `orders-0`."""
    return path.rpartition("/")[2].rpartition(".")[0]


def _listed(paths: Sequence[str]) -> str:
    """A few of them, and how many more there are."""
    more = len(paths) - _SHOWN
    return ", ".join(paths[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def topic_ids(
    copies: Iterable[DiskCopy], left: LeftMetadata | None, notes: Notes
) -> dict[str, str]:
    """The id of each topic on the disks."""
    known = {} if left is None else left.ids
    found: dict[str, dict[str, list[str]]] = {}
    for each in copies:
        if each.topic_id is None:
            notes.refusals.append(f"{each.path}: no partition.metadata tells its topic id")
            continue
        found.setdefault(each.name.topic, {}).setdefault(each.topic_id, []).append(each.path)
    ids = {}
    for topic, by_id in sorted(found.items()):
        ids[topic] = known[topic] if known.get(topic) in by_id else min(by_id)
        if len(by_id) == 1:
            continue
        places = "; ".join(f"{topic_id}: {', '.join(p)}" for topic_id, p in sorted(by_id.items()))
        if known.get(topic) in by_id:
            notes.warnings.append(
                f"{topic} has several topic ids ({places}): by the metadata log {ids[topic]} is "
                "the topic's, the others are left from one that was deleted, and become stray"
            )
        else:
            notes.refusals.append(
                f"{topic} has several topic ids ({places}): move the directories of the topic that "
                "was deleted out of their log dirs"
            )
    return ids


def say_what_is_lost(
    facts: AttachFacts,
    ids: Mapping[str, str],
    configs: Mapping[str, Mapping[str, str]],
    notes: Notes,
) -> None:
    left = facts.left
    if left is None or not left.end_offset:
        notes.lost.append(
            "settings of topics, brokers, groups and clients, ACLs, quotas, SCRAM credentials, "
            "delegation tokens, features above their first level: no metadata log is left. "
            "Partitions above the highest number that is on a disk, and topics of which nothing "
            "is, cannot be known"
        )
    else:
        notes.warnings += left.problems
        _say_default_of_controllers(left, notes)
        _say_absent_log_dirs(facts.disks, left, notes)
        notes.lost += [f"{count} × {name}: not known here" for name, count in left.unread.items()]
        newer = [topic for topic in ids if topic in configs]
        if newer:
            notes.lost.append(
                f"settings of {', '.join(newer)}: the metadata log that is left does not know them"
            )
    held = sorted(
        topic
        for topic, config in configs.items()
        if "retention.ms" in config and topic not in INTERNAL_POLICIES
    )
    if held:
        notes.warnings.append(
            f"nothing of {', '.join(held)} is deleted until somebody sets retention.ms and "
            "retention.bytes again, which are -1 now; their own settings are lost"
        )


def _say_default_of_controllers(left: LeftMetadata, notes: Notes) -> None:
    """A controller that begins with eligible leader replicas puts its own setting behind the
    records it finds (ActivationRecordsGenerator.recordsForEmptyLog).
    """
    key = BROKER_RESOURCE, "", "min.insync.replicas"
    setting = left.kept.get("ConfigRecord", {}).get(key, {"value": "1"})
    # 1 is Kafka's default, which such a controller has written before.
    if setting["value"] != "1" and left.feature_levels.get(ELIGIBLE_LEADERS):
        notes.warnings.append(
            f"min.insync.replicas={setting['value']} is the default of all brokers: the first "
            "controller sets it to that of its server.properties; set it again when brokers are up"
        )


def _say_absent_log_dirs(disks: Disks, left: LeftMetadata, notes: Notes) -> None:
    given = {each.directory_id for each in disks.dirs}
    for node, directories in sorted(left.log_dirs.items()):
        absent = sorted(set(directories) - given)
        if node not in disks.nodes:
            notes.warnings.append(f"node {node} of the cluster: none of its log dirs is given")
        elif absent:
            notes.warnings.append(
                f"node {node}: of its log dirs those with directory.id {', '.join(absent)} are not "
                "given; a partition that lies there has a copy less, and becomes stray if it starts"
            )
