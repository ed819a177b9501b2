"""Checkpoints and the other small text files of a log dir, which Kafka's tool ignores: parsed, then
printed as they say, one entry a line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kafkalog.cli.dump_options import DumpOptions
from kafkalog.cli.output import write_bytes
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    parse_leader_epoch_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    PARTITION_METADATA_FILE,
    QUORUM_STATE_FILE,
)
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, parse_meta_properties
from kafkalog.format.partition_metadata import parse_partition_metadata
from kafkalog.format.quorum_state import parse_quorum_state
from kafkalog.log.small_files import read_small_file

Parsed = Iterable[dict[str, Any]]


def dump_small_file(path: Path, options: DumpOptions) -> bool:
    """Print a small file. CorruptCheckpointError if it is not what its name says."""
    kind, parse = SMALL_FILES[path.name]
    for entry in parse(read_small_file(path), str(path)):
        if options.as_json:
            line = json.dumps({"type": kind, **entry, "path": str(path)}, ensure_ascii=False)
        else:
            line = " ".join(f"{name}: {value}" for name, value in entry.items())
        write_bytes(f"{line}\n".encode())
    return False


def _offsets(data: bytes, path: str) -> Parsed:
    for (topic, partition), offset in parse_offset_checkpoint(data, path).items():
        yield {"topic": topic, "partition": partition, "offset": offset}


def _leader_epochs(data: bytes, path: str) -> Parsed:
    for epoch, start_offset in parse_leader_epoch_checkpoint(data, path):
        yield {"epoch": epoch, "startOffset": start_offset}


def _partition_metadata(data: bytes, path: str) -> Parsed:
    yield {"topicId": parse_partition_metadata(data, path)}


def _meta_properties(data: bytes, path: str) -> Parsed:
    yield _camel(asdict(parse_meta_properties(data, path)))


def _quorum_state(data: bytes, path: str) -> Parsed:
    yield _camel(asdict(parse_quorum_state(data, path)))


def _camel(values: dict[str, Any]) -> dict[str, Any]:
    def name(attribute: str) -> str:
        first, *rest = attribute.split("_")
        return first + "".join(word.capitalize() for word in rest)

    return {name(attribute): value for attribute, value in values.items()}


SMALL_FILES: dict[str, tuple[str, Callable[[bytes, str], Parsed]]] = {
    RECOVERY_POINT_FILE: ("checkpoint", _offsets),
    HIGH_WATERMARK_FILE: ("checkpoint", _offsets),
    LOG_START_OFFSET_FILE: ("checkpoint", _offsets),
    CLEANER_OFFSET_FILE: ("checkpoint", _offsets),
    LEADER_EPOCH_CHECKPOINT_FILE: ("leader_epoch", _leader_epochs),
    PARTITION_METADATA_FILE: ("partition_metadata", _partition_metadata),
    META_PROPERTIES_FILE: ("meta_properties", _meta_properties),
    QUORUM_STATE_FILE: ("quorum_state", _quorum_state),
}
