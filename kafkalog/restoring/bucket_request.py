"""What `attach BUCKET --into LOGDIR` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.remote.paths import RemoteStorage
from kafkalog.requests.run_request import RunOptions


@dataclass(frozen=True, slots=True)
class BucketAttachRequest:
    """remote: the bucket; into: fresh log dirs of the nodes that get its topics; topics: names,
    globs or topic ids, all without any; metadata_from: log dirs of the old cluster that have
    `__remote_log_metadata`; metadata_partitions: of that topic, where no log dir tells;
    end_transactions: `request.ABORT`, `request.CUT`, or None to refuse; groups: names or globs of
    those whose offsets, by `__consumer_offsets` in metadata_from, are in the new one, which has
    offsets_partitions, None for as many as the old one.
    """

    remote: RemoteStorage
    into: tuple[str, ...]
    now_ms: int
    topics: tuple[str, ...] = ()
    metadata_from: tuple[str, ...] = ()
    metadata_partitions: int | None = None
    end_transactions: str | None = None
    groups: tuple[str, ...] = ()
    offsets_partitions: int | None = None
    run_dir: str | None = None
    keeps_undo: bool = True
    max_batch_bytes: int = MAX_BATCH_BYTES

    def wants(self, topic: str, topic_id: str) -> bool:
        """Whether a topic is asked for."""
        return not self.topics or any(
            fnmatchcase(topic, each) or topic_id == each for each in self.topics
        )

    @property
    def options(self) -> RunOptions:
        """Those of the journal."""
        return {
            "now_ms": self.now_ms, "run_dir": self.run_dir, "no_undo": not self.keeps_undo
        }  # fmt: skip
