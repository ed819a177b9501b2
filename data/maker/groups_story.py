"""The sample `groups`: groups of every kind, and what Kafka's own tools said of them meanwhile.

`data` is the broker's log dir, stopped while members were there. `events.json` has after each step
what ConsumerGroupCommand and ShareGroupCommand print, as rows by their column names: `groups` (from
--list and --state), `members`, `offsets`; `atMs` is the clock.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ShareConsumer, TopicPartition

from data.maker.client import Cluster
from data.maker.records import varied
from tests.support.broker import Broker, running_broker

TOPICS = {"__consumer_offsets": "a classic, a consumer, a share and a simple group; one deleted"}
TOPIC = "orders"
PARTITIONS = 4
DEADLINE_S = 180
_TOOLS = "org.apache.kafka.tools.consumer.group."
Row = dict[str, str]
Event = dict[str, Any]


class Groups:
    """The broker, its clients, and the events so far."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.cluster = Cluster(broker)
        self.consumers: list[Consumer | ShareConsumer] = []
        self.events: list[Event] = []

    def join(self, group: str, **config: object) -> Consumer:
        consumer = self.cluster.consumer(group, **config)
        consumer.subscribe([TOPIC])
        self.consumers.append(consumer)
        return consumer

    def read(self, *consumers: Consumer, count: int) -> None:
        """Until they have read so many together; each commits where it stands."""
        deadline, seen = time.monotonic() + DEADLINE_S, 0
        while seen < count and time.monotonic() < deadline:
            for consumer in consumers:
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    seen += 1
                    consumer.commit(message=message, asynchronous=False)
        if seen < count:
            raise SystemExit(f"{seen} of {count} records were read in time")

    def observe(self, step: str, until: Callable[[Event], bool]) -> None:
        """Write down what the tools say, once `until` holds and they say it twice."""
        deadline = time.monotonic() + DEADLINE_S
        before: Event = {}
        while time.monotonic() < deadline:
            for consumer in self.consumers:
                consumer.poll(0.1)  # members that do not ask take no part in a rebalance
            seen = self._look()
            if until(seen) and seen == before:
                self.events.append({"step": step, "atMs": time.time_ns() // 1_000_000, **seen})
                return
            before = seen
        raise SystemExit(f"{step}: the groups did not come to rest as expected: {before}")

    def _look(self) -> Event:
        kinds = self._tool("GroupsCommand", "--list")
        states = self._tool(f"{_TOOLS}ConsumerGroupCommand", "--describe", "--state")
        states += self._tool(f"{_TOOLS}ShareGroupCommand", "--describe", "--state")
        return {
            "groups": [{**kind, **_of(states, kind["GROUP"])} for kind in kinds],
            "members": [
                *self._tool(f"{_TOOLS}ConsumerGroupCommand", "--describe", "--members"),
                *self._tool(f"{_TOOLS}ShareGroupCommand", "--describe", "--members"),
            ],
            "offsets": self._tool(f"{_TOOLS}ConsumerGroupCommand", "--describe", "--offsets"),
        }

    def _tool(self, name: str, *arguments: str) -> list[Row]:
        """The rows of the tables that a tool prints, by their headings."""
        name = name if "." in name else f"org.apache.kafka.tools.{name}"
        more = ["--all-groups"] if "--describe" in arguments else []
        more += ["--verbose"] if "--describe" in arguments and "--offsets" not in arguments else []
        command = self.broker.tool(
            name, "--bootstrap-server", self.broker.bootstrap_servers, *arguments, *more
        )
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return sorted(_table(done.stdout), key=lambda row: tuple(row.values()))


def _table(text: str) -> list[Row]:
    """Rows under their headings; a value begins where its heading does."""
    rows: list[Row] = []
    heads: list[tuple[int, str]] = []
    for line in text.splitlines():
        if line.startswith("GROUP "):
            heads = [(m.start(), m[0]) for m in re.finditer(r"\S+(?: \(ID\))?", line)]
        elif line.strip() and heads:
            ends = [start for start, _ in heads[1:]] + [len(line)]
            parts = (line[start:end] for (start, _), end in zip(heads, ends, strict=True))
            names = (name for _, name in heads)
            rows.append({n: part.strip() for n, part in zip(names, parts, strict=True)})
    return rows


def _of(rows: list[Row], group: str) -> Row:
    return next((row for row in rows if row["GROUP"] == group), {})


def make(scratch: Path, target: Path) -> None:
    """Play it with a broker below `scratch`; the sample is what is kept in `target`."""
    with running_broker(scratch / "broker") as broker:
        groups = Groups(broker)
        _play(groups)
    shutil.copytree(broker.log_dir, target / "data", ignore=shutil.ignore_patterns(".lock"))
    (target / "events.json").write_text(json.dumps(groups.events, indent=1) + "\n")


def _play(groups: Groups) -> None:
    cluster = groups.cluster
    cluster.create(TOPIC, PARTITIONS)
    for partition in range(PARTITIONS):
        cluster.produce(TOPIC, varied(40, f"groups-{partition}"), partition=partition)

    classic = [
        groups.join("classic", client_id="one", group_instance_id="static-1"),
        groups.join("classic", client_id="two"),
    ]
    groups.read(*classic, count=60)
    groups.observe("a classic group", _has_members("classic", 2))

    modern = [
        groups.join("modern", client_id="three", group_protocol="consumer"),
        groups.join("modern", client_id="four", group_protocol="consumer"),
    ]
    groups.read(*modern, count=60)
    groups.observe("a group of the new protocol", _has_members("modern", 2))

    _commit_alone(cluster, "tool", 7)
    _commit_alone(cluster, "forgotten", 3)
    cluster.allow_share("sharing")
    sharing = ShareConsumer({**cluster.servers, "group.id": "sharing", "client.id": "five"})
    sharing.subscribe([TOPIC])
    groups.consumers.append(sharing)
    groups.observe("a share group and simple ones", _has_members("sharing", 1))

    groups.read(*modern, count=20)
    leaving = modern.pop()
    groups.consumers.remove(leaving)
    leaving.close()
    for done in cluster.admin.delete_consumer_groups(["forgotten"]).values():
        done.result(60)
    groups.observe(
        "a member left, a group was deleted",
        lambda seen: (
            _has_members("modern", 1)(seen)
            and not _of(seen["groups"], "forgotten")
            and all(row["STATE"] != "Reconciling" for row in seen["groups"] if "STATE" in row)
        ),
    )


def _has_members(group: str, count: int) -> Callable[[Event], bool]:
    def holds(seen: Event) -> bool:
        state = _of(seen["groups"], group)
        return (state.get("STATE"), state.get("#MEMBERS")) == ("Stable", str(count))

    return holds


def _commit_alone(cluster: Cluster, group: str, offset: int) -> None:
    """As a tool that keeps offsets in Kafka, and is in no group."""
    consumer = cluster.consumer(group)
    consumer.commit(offsets=[TopicPartition(TOPIC, 1, offset)], asynchronous=False)
    consumer.close()
