"""`quorum-state`: what a member of the KRaft quorum has promised. One line of JSON.

 {"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,
  "currentVoters":[{"voterId":1}],"data_version":0}                 version 0, kraft.version 0

 {"leaderId":-1,"leaderEpoch":2,"votedId":1,
  "votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}     version 1, kraft.version 1 (3.9)

`data_version` selects the fields, all of which must be there; only the first line is read, unknown
keys are not looked at. leaderId and votedId are -1 where there is none. Nobody but the quorum may
write the file: a forgotten vote can elect two leaders.

Source: Kafka FileQuorumStateStore, QuorumStateData.json.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.json_text import parse_json_object, whole_number
from kafkalog.format.uuid_text import parse_uuid

NO_NODE = -1

_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The election state; what a file of its version does not hold is None. `current_voters` are
    node ids.
    """

    data_version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: str | None = None
    cluster_id: str | None = None
    applied_offset: int | None = None
    current_voters: tuple[int, ...] | None = None


def parse_quorum_state(data: bytes, path: str | None = None) -> QuorumState:
    """The state the first line holds. Raises CorruptCheckpointError naming the field."""
    fields = _Fields(parse_json_object(_LINE_END.split(data, maxsplit=1)[0], path), path)
    version = fields.number("data_version", 16)
    if version not in (0, 1):
        raise CorruptCheckpointError(f"data_version {version}, known are 0 and 1", path=path)
    leader_id = fields.number("leaderId", 32)
    leader_epoch = fields.number("leaderEpoch", 32)
    voted_id = fields.number("votedId", 32)
    if version == 1:
        directory_id = fields.text("votedDirectoryId")
        if parse_uuid(directory_id) is None:
            raise fields.wrong("votedDirectoryId", directory_id)
        return QuorumState(version, leader_id, leader_epoch, voted_id, directory_id)
    return QuorumState(
        version,
        leader_id,
        leader_epoch,
        voted_id,
        cluster_id=fields.text("clusterId"),
        applied_offset=fields.number("appliedOffset", 64),
        current_voters=fields.voters(),
    )


class _Fields:
    """A JSON object whose fields are asked for by type."""

    def __init__(self, values: dict[str, Any], path: str | None) -> None:
        self._values = values
        self._path = path

    def number(self, name: str, bits: int) -> int:
        number = whole_number(self._values.get(name), bits)
        if number is None:
            raise self.wrong(name, self._values.get(name))
        return number

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, value)
        return value

    def voters(self) -> tuple[int, ...] | None:
        # Null is allowed there, missing is not: the default is a text, which is neither a list nor
        # null.
        value = self._values.get("currentVoters", "")
        if value is None:
            return None
        entries = value if isinstance(value, list) else [None]
        ids = [whole_number(e.get("voterId"), 32) if isinstance(e, dict) else None for e in entries]
        found = tuple(voter for voter in ids if voter is not None)
        if len(found) != len(ids):
            raise self.wrong("currentVoters", value)
        return found

    def wrong(self, name: str, value: object) -> CorruptCheckpointError:
        text = "is missing" if name not in self._values else f"is {str(value)[:60]!r}"
        return CorruptCheckpointError(f"field {name} {text}", path=self._path)
