from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.copy_samples import SAMPLES
from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.quorum_state import QuorumState, parse_quorum_state

# the two forms as FileQuorumStateStore documents them
VERSION_0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[],"data_version":0}'
)
# Of samples with other controllers than node 1.
VOTERS = {"migration": (3000,), "replicas": (1, 2, 3)}
VERSION_1 = (
    b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,'
    b'"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}'
)


def test_both_versions_parse_and_pack() -> None:
    old = QuorumState(0, 1, 2, -1, None, "", 0, ())
    new = QuorumState(1, -1, 2, 1, "J8aAPcfLQt2bqs1JT_rMgQ")
    assert parse_quorum_state(VERSION_0) == old
    assert parse_quorum_state(VERSION_1) == new


@pytest.mark.parametrize(
    "path", sorted(SAMPLES.rglob("quorum-state")), ids=lambda p: p.parent.parent.name
)
def test_the_file_of_a_broker_is_read(path: Path) -> None:
    data = path.read_bytes()
    state = parse_quorum_state(data)
    voters = VOTERS.get(path.relative_to(SAMPLES).parts[0], (1,))
    assert state.current_voters == (voters if state.data_version == 0 else None)


def test_only_the_first_line_counts_and_voters_may_be_null() -> None:
    data = VERSION_0.replace(b"[]", b"null") + b"\nanything"
    assert parse_quorum_state(data).current_voters is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no JSON"),
        (b"[1]", "JSON of type list"),
        (b"\n" + VERSION_0, "no JSON"),
        (VERSION_0[:-1], "no JSON"),
        (b"\xff" + VERSION_0, "no UTF-8"),
        (b"[" * 100_000, "too deep"),
        (b"[" + b"9" * 10_000 + b"]", "too long"),
        (b" " * 2_000_000, "the limit is"),
        (VERSION_0.replace(b'_version":0', b'_version":2'), "data_version 2"),
        (VERSION_0.replace(b',"data_version":0', b""), "field data_version is missing"),
        (VERSION_0.replace(b'"leaderId":1,', b""), "field leaderId is missing"),
        (VERSION_0.replace(b'"leaderEpoch":2', b'"leaderEpoch":2147483648'), "leaderEpoch"),
        (VERSION_0.replace(b'"votedId":-1', b'"votedId":true'), "votedId is 'True'"),
        (VERSION_0.replace(b'"currentVoters":[],', b""), "currentVoters is missing"),
        (VERSION_0.replace(b"[]", b'[{"voterId":1},{}]'), "currentVoters is"),
        (VERSION_0.replace(b'"data_version":0', b'"data_version":1'), "votedDirectoryId"),
        (VERSION_1.replace(b"J8aA", b"J8a"), "votedDirectoryId is"),
    ],
)
def test_malformed_quorum_state_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        parse_quorum_state(data, "m-0/quorum-state")
    assert caught.value.path == "m-0/quorum-state"


@given(st.binary(max_size=80))
def test_garbage_is_parsed_or_corrupt(data: bytes) -> None:
    with contextlib.suppress(CorruptCheckpointError):
        parse_quorum_state(data)
