"""Topics that programs beside the broker keep their state in: how each is recognised and decoded.

Source: Kafka DefaultReplicationPolicy, MirrorSourceConfig, MirrorMakerConfig; Connect's
connect-distributed.properties.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalog.messages import connect_records, mirror_records, registry_records

Decoder = Callable[[bytes | None, bytes | None], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ClientTopic:
    """Topics of one kind. names: what a whole name matches where none was asked for. decode: key
    and value of a record to a dict of columns; CorruptRecordError and its kin for bytes that are no
    such record. has_deletions: a record may delete earlier ones (`registry_records`).
    """

    names: re.Pattern[str]
    decode: Decoder
    has_deletions: bool = False


def _of_connect(kind: str) -> re.Pattern[str]:
    """Connect leaves its topics' names to who runs it; those of MirrorMaker's own Connect are set:
    mm2-offsets.SOURCE.internal …
    """
    return re.compile(
        rf"([^.]*[._-])?(connect|mirrormaker2)([._-].*)?[._-]{kind}|mm2-{kind}\..+\.internal",
        re.IGNORECASE,
    )


# View → its topics.
CLIENT_TOPICS: dict[str, ClientTopic] = {
    "connect_offsets": ClientTopic(_of_connect("offsets?"), connect_records.decode_connect_offset),
    "connect_configs": ClientTopic(_of_connect("configs?"), connect_records.decode_connect_config),
    "connect_status": ClientTopic(
        _of_connect("status(es)?"), connect_records.decode_connect_status
    ),
    "mirror_checkpoints": ClientTopic(
        re.compile(r".+\.checkpoints\.internal"), mirror_records.decode_checkpoint
    ),
    # One that is itself mirrored has the alias of its cluster in front.
    "mirror_heartbeats": ClientTopic(
        re.compile(r"(.+\.)?heartbeats"), mirror_records.decode_heartbeat
    ),
    "mirror_offset_syncs": ClientTopic(
        re.compile(r"mm2-offset-syncs\..+\.internal"), mirror_records.decode_offset_sync
    ),
    "schema_registry": ClientTopic(
        re.compile("_schemas"), registry_records.decode_registry_record, has_deletions=True
    ),
}
