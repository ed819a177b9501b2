"""A log dir that is to be checked as a whole: whose it is, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    is_kraft,
)
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.listing import entries_in, is_directory_entry, path_text
from kafkalog.log.log_dir_files import LogDirFiles
from kafkalog.log.metadata_records import METADATA_DIR, metadata_files
from kafkalog.log.topic_partition import PartitionKind, parse_partition_dir_name


@dataclass(frozen=True, slots=True)
class GivenLogDir:
    """A log dir that is to be checked as a whole. cluster: what its node's metadata log says, None
    without one among the log dirs that are given.
    """

    files: LogDirFiles
    cluster: ClusterSettings | None

    @property
    def path(self) -> Path:
        return self.files.path

    @property
    def meta(self) -> MetaProperties | None:
        """Whose it is; None if there is no file or it cannot be read."""
        return self.files.meta

    @property
    def meta_path(self) -> str:
        return path_text(self.path / META_PROPERTIES_FILE)

    @property
    def is_kraft(self) -> bool:
        return is_kraft(self.meta)

    @property
    def has_metadata_log(self) -> bool:
        """Whether anything of a metadata log is in it."""
        try:
            return any(metadata_files(self.path / METADATA_DIR))
        except OSError:
            return False

    @property
    def has_partitions(self) -> bool:
        return any(
            name.kind is PartitionKind.LIVE and entry.name != METADATA_DIR
            for entry in entries_in(self.path)
            if (name := parse_partition_dir_name(entry.name)) is not None
            and is_directory_entry(entry)
        )

    @property
    def node(self) -> tuple[str | None, int | None] | None:
        """(cluster id, node id) as its meta.properties has them; None where nothing tells."""
        return None if self.meta is None else (self.meta.cluster_id, self.meta.node_id)
