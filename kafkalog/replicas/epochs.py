"""Where the histories of two copies part: what a follower truncates when the other leads.

A follower tells the leader its latest epoch and gets the end of the largest epoch at or below it in
the leader's history. What it has behind that offset, or behind the end of that epoch of its own,
goes; where it does not know the epoch it asks again with an older one.

Source: Kafka AbstractFetcherThread.getOffsetTruncationState, LeaderEpochFileCache.endOffsetFor;
KIP-101, KIP-279.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.format.checkpoints import EpochEntry

Epochs = Sequence[EpochEntry]


def end_offset_for(epochs: Epochs, log_end_offset: int, epoch: int) -> EpochEntry | None:
    """(largest epoch at or below this one, where it ends) in a history; None for an epoch above all
    that it knows, and of an empty one.
    """
    if not epochs or epoch > epochs[-1][0]:
        return None
    if epoch == epochs[-1][0]:
        return epoch, log_end_offset
    above = next(start for found, start in epochs if found > epoch)
    below = [found for found, _ in epochs if found <= epoch]
    return (below[-1] if below else epoch), above


def truncation_offset(leader: Epochs, leader_end: int, follower: Epochs, follower_end: int) -> int:
    """The offset to which the follower cuts its log, its end where nothing goes. A follower or
    leader without epochs cuts nothing by them; nor does one that knows a later epoch.
    """
    end = follower_end
    own = list(follower)
    while own:
        answer = end_offset_for(leader, leader_end, own[-1][0])
        if answer is None:
            return end
        epoch, leaders_offset = answer
        mine = end_offset_for(own, end, epoch)
        if mine is None or mine[0] == epoch or epoch < own[0][0]:
            return min(end, leaders_offset, end if mine is None else mine[1])
        # The epoch the leader named is not in this log: go back to the one below it and ask again.
        end = min(end, mine[1])
        own = [entry for entry in own if entry[0] <= mine[0]]
    return end


def leading(ends: Sequence[tuple[Epochs, int]]) -> int:
    """Which of some copies (epochs, log end) Kafka's history goes by: the latest epoch, and of that
    the longest log.
    """
    latest = [(epochs[-1][0] if epochs else -1, end) for epochs, end in ends]
    return max(range(len(latest)), key=lambda number: latest[number])
