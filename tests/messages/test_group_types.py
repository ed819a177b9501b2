"""Groups that change their type: the table that a real broker confirms in tests/oracle."""

from __future__ import annotations

import pytest

from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.messages.coordinator_loading import LoadingProblem, load_record
from kafkalog.messages.group_types import GroupTypes, commit_event, group_event
from tests.support.group_type_changes import CHANGES


@pytest.mark.parametrize("name", CHANGES)
def test_a_group_has_the_type_that_the_broker_says(name: str) -> None:
    change, types = CHANGES[name], GroupTypes()
    for number, pair in enumerate(change.pairs("g")):
        record = load_record(OFFSETS_TOPIC, *pair)
        assert not isinstance(record, LoadingProblem)
        event = group_event(record)
        if event is None and pair[1] is not None:
            event = commit_event("g")
        problem = None if event is None else types.replay(event)
        assert (problem is not None) == (number == change.fails_at)
        if problem is not None:
            return
    assert types.kinds.get("g") == change.kind
