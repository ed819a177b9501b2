"""The voters of a dynamic quorum, and in which log dir each controller keeps its metadata log.

A static quorum (`controller.quorum.voters`) is in each node's server.properties and needs nothing
on the disk. A dynamic one (`controller.quorum.bootstrap.servers`) has its voters in the metadata
log alone: without a snapshot that names them no controller is ever a candidate.

Source: Kafka DynamicVoter, VoterSet, KafkaRaftServer.initializeLogDirs; KIP-853.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.format.uuid_text import is_reserved_directory_id
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.metadata_names import METADATA_DIR
from kafkalog.restoring.disks import NodeDir

DEFAULT_LISTENER = "CONTROLLER"
_VOTER = re.compile(
    r"(?P<node>[0-9]+)@((?P<listener>[A-Za-z0-9_]+)://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]/@]+)"
    r":(?P<port>[0-9]{1,5})(:(?P<directory>[A-Za-z0-9_-]{22}))?"
)
_KRAFT_VERSIONS = {"minSupportedVersion": 0, "maxSupportedVersion": 1}


@dataclass(frozen=True, slots=True)
class Voter(JsonFacts):
    """A controller with a vote: its log dir's id, and the listener that reaches it."""

    node_id: int
    directory_id: str
    listener: str
    host: str
    port: int

    @property
    def fields(self) -> dict[str, Any]:
        """As VotersRecord has it."""
        endpoint = {"name": self.listener, "host": self.host, "port": self.port}
        return {
            "voterId": self.node_id,
            "voterDirectoryId": self.directory_id,
            "endpoints": [endpoint],
            "kRaftVersionFeature": _KRAFT_VERSIONS,
        }


def given_voters(texts: Sequence[str], dirs: Sequence[NodeDir]) -> list[Voter]:
    """The voters of `--initial-controllers`, ID@HOST:PORT each; the directory id of a node whose
    log dirs are here is that of the one with its metadata log. InvalidConfigError otherwise.
    """
    voters = []
    for text in (part for each in texts for part in each.split(",")):
        match = _VOTER.fullmatch(text)
        if match is None or not 0 < int(match["port"]) < 1 << 16:
            raise InvalidConfigError(
                f"--initial-controllers {text!r}: ID@HOST:PORT or ID@HOST:PORT:DIRECTORY_ID"
            )
        node = int(match["node"])
        directory = match["directory"] or metadata_dir(node, dirs).directory_id
        if directory is None or is_reserved_directory_id(directory):
            raise InvalidConfigError(f"--initial-controllers {text!r}: it needs a directory id")
        listener = match["listener"] or DEFAULT_LISTENER
        host = match["host"].strip("[]")
        voters.append(Voter(node, directory, listener, host, int(match["port"])))
    if len({each.node_id for each in voters}) < len(voters):
        raise InvalidConfigError("--initial-controllers: a node is there twice")
    return voters


def recorded_voters(records: Sequence[Mapping[str, Any]]) -> list[Voter]:
    """The voters of a VotersRecord, each with its first endpoint."""
    return [
        Voter(
            each["voterId"],
            each["voterDirectoryId"],
            endpoint["name"],
            endpoint["host"],
            endpoint["port"],
        )
        for each in records
        for endpoint in each["endpoints"][:1]
    ]


def metadata_dir(node: int, dirs: Sequence[NodeDir], directory_id: str | None = None) -> NodeDir:
    """The log dir with a node's metadata log, which has this id if it is known. InvalidConfigError
    where that is not clear: in any other one a broker does not start on it.
    """
    own = [each for each in dirs if each.node_id == node]
    named = [each for each in own if directory_id is not None and each.directory_id == directory_id]
    if named:
        return named[0]
    with_metadata = [each for each in own if each.has_metadata]
    if len(own) == 1 or len(with_metadata) == 1:
        return (with_metadata or own)[0]
    if not own:
        raise InvalidConfigError(
            f"node {node} of the quorum: none of its log dirs is given; "
            "ID@HOST:PORT:DIRECTORY_ID names one that is elsewhere"
        )
    places = ", ".join(each.path for each in own)
    raise InvalidConfigError(
        f"node {node}: in which of {places} its metadata log is (metadata.log.dir, or the first of "
        "log.dirs) is not known: ID@HOST:PORT:DIRECTORY_ID names it by the "
        "directory.id in its meta.properties"
    )


def metadata_dirs(dirs: Sequence[NodeDir], voters: Sequence[Voter]) -> list[NodeDir]:
    """Each node's log dir with its metadata log. InvalidConfigError where that is not clear."""
    ids = {each.node_id: each.directory_id for each in voters}
    found = []
    for node in sorted({each.node_id for each in dirs}):
        try:
            found.append(metadata_dir(node, dirs, ids.get(node)))
        except InvalidConfigError:
            places = ", ".join(each.path for each in dirs if each.node_id == node)
            raise InvalidConfigError(
                f"node {node} of Kafka 3: its metadata log has to be in one of {places}; make "
                f"an empty directory {METADATA_DIR} in the one that is metadata.log.dir, or the "
                "first of log.dirs"
            ) from None
    return found
