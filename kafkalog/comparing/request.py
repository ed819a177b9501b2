"""Which copies of which partitions are compared, from log dirs and digests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkalog.comparing.alignment import MOST_REPLICAS
from kafkalog.comparing.tiered_copies import with_remote_copies
from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.selection import asked_for, select_partitions
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.remote.paths import NO_REMOTE_STORAGE, RemoteStorage
from kafkalog.replicas.copies import Copy, copies_by_partition
from kafkalog.replicas.digested import DigestedReplica, is_digest, read_digest
from kafkalog.replicas.hash_key import key_check, read_hash_key
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """What to compare: the options of `compare`. log_dirs: digests as well; memory_bytes: of a
    worker; max_batch_bytes: no larger batch is read, stored or decompressed; hash_key: the file of
    the key that digests were made with; remote: where the older segments of tiered partitions are.
    """

    log_dirs: tuple[str, ...]
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    max_batch_bytes: int = MAX_BATCH_BYTES
    hash_key: str | None = None
    remote: RemoteStorage = NO_REMOTE_STORAGE


@dataclass(frozen=True, slots=True)
class CompareTask:
    """A partition and its copies. secret: what to hash records under, None for one of the run.
    problem: why it cannot be compared; then no copy is here.
    """

    topic_partition: TopicPartition
    replicas: tuple[Copy, ...]
    memory_bytes: int
    max_batch_bytes: int
    secret: bytes | None = field(default=None, repr=False)
    problem: str = ""

    @property
    def size_in_bytes(self) -> int:
        """Bytes to read."""
        return sum(each.size_in_bytes for each in self.replicas)


def compare_tasks(request: CompareRequest) -> list[CompareTask]:
    """A task for each partition asked for, by topic and partition.

    InvalidConfigError for paths and partitions that do not exist, log dirs of two clusters, digests
    of two keys, and where no partition is there twice; CorruptRecordError for a digest that is not
    whole; of remote storage as `with_remote_segments`.
    """
    digests = [path for path in request.log_dirs if is_digest(path)]
    log_dirs = [path for path in request.log_dirs if path not in digests]
    digested = [each for path in digests for each in read_digest(path)]
    secret = _secret(request.hash_key, digested, has_log_dirs=bool(log_dirs))
    inventory = open_log_dir(*log_dirs) if log_dirs else LogInventory(())
    _check_cluster(copies_by_partition(inventory, digested))
    every: list[PartitionInventory | DigestedReplica] = [*inventory, *digested]
    chosen = select_partitions(every, request.topics, request.topic_partitions)
    copies = with_remote_copies(
        copies_by_partition(
            [each for each in chosen if isinstance(each, PartitionInventory)],
            [each for each in chosen if isinstance(each, DigestedReplica)],
        ),
        inventory,
        request.remote,
    )
    is_asked_for = asked_for(request.topics, request.topic_partitions)
    problems = {
        each.topic_partition: f"the copy in {each.path} cannot be read: {each.reason}"
        for each in inventory.unread
        if is_asked_for(each.topic_partition)
    }
    copies |= dict.fromkeys(problems, ())
    if not problems and not any(len(own) > 1 for own in copies.values()):
        asked = f" of {', '.join(request.topics)}" if request.topics else ""
        raise InvalidConfigError(
            f"no partition{asked} is in two of the log dirs: {', '.join(request.log_dirs)}"
        )
    for name, own in copies.items():
        if len(own) > MOST_REPLICAS:
            raise InvalidConfigError(
                f"{name}: {len(own)} copies, up to {MOST_REPLICAS} can be compared"
            )
    return [
        CompareTask(
            name, own, request.memory_bytes, request.max_batch_bytes, secret, problems.get(name, "")
        )
        for name, own in sorted(copies.items())
    ]


def _secret(
    hash_key: str | None, digested: Sequence[DigestedReplica], *, has_log_dirs: bool
) -> bytes | None:
    """What log dirs have to be hashed under. InvalidConfigError for digests of several keys, of
    another than the one that is given, and for log dirs beside them without it.
    """
    secret = None if hash_key is None else read_hash_key(hash_key)
    checks = {each.check: each.path for each in digested}
    if len(checks) > 1:
        raise InvalidConfigError(f"digests of several keys: {', '.join(checks.values())}")
    if secret is not None and checks and key_check(secret) not in checks:
        raise InvalidConfigError(f"--hash-key: not the key of {', '.join(checks.values())}")
    if checks and has_log_dirs and secret is None:
        raise InvalidConfigError(
            "log dirs are compared with digests by the key of these: --hash-key FILE"
        )
    return secret


def _check_cluster(copies: Mapping[TopicPartition, Sequence[Copy]]) -> None:
    clusters: dict[str, str] = {}
    for own in copies.values():
        for each in own:
            if each.cluster_id is not None:
                clusters.setdefault(each.cluster_id, each.where)
    if len(clusters) > 1:
        named = ", ".join(f"{log_dir} of cluster {name}" for name, log_dir in clusters.items())
        raise InvalidConfigError(f"log dirs of more than one cluster: {named}")
