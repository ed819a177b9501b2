"""All states a node is started in, in the order of the table."""

from __future__ import annotations

from tests.starts import (
    checkpoint_states,
    directory_states,
    identity_states,
    log_states,
    metadata_states,
)
from tests.starts.disk import State

STATES: tuple[State, ...] = (
    *identity_states.STATES,
    *checkpoint_states.STATES,
    *metadata_states.STATES,
    *directory_states.STATES,
    *log_states.STATES,
    *checkpoint_states.CONTRADICTIONS,
    *log_states.CONTRADICTIONS,
    *metadata_states.CONTRADICTIONS,
)
