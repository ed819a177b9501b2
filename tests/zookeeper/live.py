"""What the maker of sample `zookeeper` saw of the live ensemble: `events.json`, read plainly."""

from __future__ import annotations

import functools
import json
from typing import Any

from data.copy_samples import SAMPLES

SAMPLE = SAMPLES / "zookeeper"
ENSEMBLE = SAMPLE / "ensemble"
SECOND = "/second"

Event = dict[str, Any]


@functools.cache
def live() -> dict[str, Any]:
    events: dict[str, Any] = json.loads((SAMPLE / "events.json").read_text())
    return events


def cluster_id(root: str) -> str:
    text: str = live()["clusters"][root]
    return text


def watched(prefix: str, *, depth: int, ends: str = "") -> list[Event]:
    """Events of nodes so many levels below `prefix`, in the order they were seen."""
    return [
        {**event, "below": event["path"][len(prefix) :].strip("/").split("/")}
        for event in live()["watched"]
        if event["path"].startswith(f"{prefix}/")
        and event["path"].endswith(ends)
        and len(event["path"][len(prefix) :].strip("/").split("/")) == depth
    ]


def created(events: list[Event]) -> list[Event]:
    return [event for event in events if event["type"] == "NodeCreated"]


def deleted(events: list[Event]) -> list[Event]:
    return [event for event in events if event["type"] == "NodeDeleted"]


def value(event: Event) -> Any:
    return json.loads(event["data"])
