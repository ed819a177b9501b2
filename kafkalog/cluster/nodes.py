"""Tables `brokers` and `controllers`: who came, went, was fenced, was elected.

Source: Kafka ClusterControlManager, ClusterDelta, ControllerRegistration; KIP-631, KIP-841.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkalog.cluster.moments import Moment, Row
from kafkalog.format.quorum_state import NO_NODE, QuorumState

Fields = Mapping[str, Any]

_FENCED, _UNFENCED = 1, -1


class Brokers:
    """Registrations and what became of them. Of each that is registered `supported` are the lowest
    and the highest level of each feature it can go by, `cordoned` its log dirs that take no new
    partitions, None where its release does not tell.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._now: dict[int, Row] = {}
        self._known: set[int] = set()
        self.supported: dict[int, dict[str, tuple[int, int]]] = {}
        self.cordoned: dict[int, list[str] | None] = {}

    def register(self, fields: Fields, moment: Moment) -> None:
        """RegisterBrokerRecord; of the same process again where something of it changed."""
        node = fields["brokerId"]
        before = self._now.get(node)
        is_same = before is not None and before["incarnationId"] == fields["incarnationId"]
        self._note(
            moment,
            node,
            "changed" if is_same else "registered",
            brokerEpoch=fields["brokerEpoch"],
            incarnationId=fields["incarnationId"],
            isReturn=node in self._known,
            endpoints=endpoints(fields["endPoints"]),
            rack=fields["rack"],
            isFenced=fields["fenced"],
            inControlledShutdown=fields["inControlledShutdown"],
            logDirs=list(fields["logDirs"]),
        )
        self._known.add(node)
        self.supported[node] = {
            each["name"]: (each["minSupportedVersion"], each["maxSupportedVersion"])
            for each in fields["features"]
        }
        self.cordoned[node] = fields["cordonedLogDirs"]

    def change(self, fields: Fields, moment: Moment) -> None:
        """BrokerRegistrationChangeRecord: a row for each thing that changed."""
        node = fields["brokerId"]
        if fields["inControlledShutdown"]:
            self._note(moment, node, "controlled-shutdown", inControlledShutdown=True)
        if fields["fenced"] in (_FENCED, _UNFENCED):
            self.fence(node, moment, is_fenced=fields["fenced"] == _FENCED)
        if fields["logDirs"] or fields["cordonedLogDirs"] is not None:
            dirs = {"logDirs": list(fields["logDirs"])} if fields["logDirs"] else {}
            self._note(moment, node, "changed", **dirs)
        if fields["cordonedLogDirs"] is not None:
            self.cordoned[node] = fields["cordonedLogDirs"]

    def fence(self, node: int, moment: Moment, *, is_fenced: bool) -> None:
        """It is fenced, or not any more."""
        self._note(moment, node, "fenced" if is_fenced else "unfenced", isFenced=is_fenced)

    def unregister(self, fields: Fields, moment: Moment) -> None:
        """UnregisterBrokerRecord: the cluster forgets it, tables do not."""
        self._note(moment, fields["brokerId"], "unregistered")
        self._now.pop(fields["brokerId"], None)
        self.supported.pop(fields["brokerId"], None)
        self.cordoned.pop(fields["brokerId"], None)

    def alive(self) -> dict[int, Row]:
        """The registrations that hold now, by node."""
        return dict(self._now)

    def _note(self, moment: Moment, node: int, event: str, **columns: Any) -> None:
        before = {} if event == "registered" else self._now[node]
        row = {"isReturn": False, **before, **moment.row(brokerId=node, event=event), **columns}
        self.rows.append(row)
        self._now[node] = row


class Controllers:
    """Elections of the quorum, its voters, and the processes that registered for it;
    `registrations`: the nodes of those that are registered now.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.registrations: set[int] = set()
        self._voters: list[int] | None = None

    def elected(self, fields: Fields, moment: Moment) -> None:
        """LeaderChangeMessage: the first record of each epoch."""
        self._voters = [voter["voterId"] for voter in fields["voters"]]
        self._note(moment, "elected", controllerId=fields["leaderId"], controllerEpoch=moment.epoch)

    def voters(self, fields: Fields, moment: Moment) -> None:
        """VotersRecord: the quorum is another one."""
        self._voters = [voter["voterId"] for voter in fields["voters"]]
        self._note(moment, "voters")

    def registered(self, fields: Fields, moment: Moment) -> None:
        """RegisterControllerRecord."""
        self.registrations.add(fields["controllerId"])
        self._note(
            moment,
            "registered",
            controllerId=fields["controllerId"],
            incarnationId=fields["incarnationId"],
            endpoints=endpoints(fields["endPoints"]),
        )

    def unregistered(self, fields: Fields, moment: Moment) -> None:
        """UnregisterControllerRecord."""
        self.registrations.discard(fields["controllerId"])
        self._note(moment, "unregistered", controllerId=fields["controllerId"])

    def promised(self, state: QuorumState, moment: Moment) -> None:
        """What a member's `quorum-state` says: the leader it follows, the vote it gave away."""
        self._note(
            moment,
            "quorum-state",
            controllerId=None if state.leader_id == NO_NODE else state.leader_id,
            controllerEpoch=state.leader_epoch,
            votedId=None if state.voted_id == NO_NODE else state.voted_id,
        )

    def _note(self, moment: Moment, event: str, **columns: Any) -> None:
        self.rows.append(moment.row(event=event, voters=self._voters, **columns))


def endpoints(listed: Iterable[Fields]) -> str:
    """`LISTENER://host:port`, comma separated."""
    return ",".join(f"{each['name']}://{each['host']}:{each['port']}" for each in listed)
