"""Disks with one thing wrong, as a broker leaves them: a log dir, its cluster's metadata, and the
time of the audit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.auditing.documents import audited_document, findings_of
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.metadata_builder import MetadataBuilder, config, partition, topic

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = START_MS + 100 * DAY_MS
ORDERS_ID = "4L6g3nShT-eMCtK--X86sw"


class Disk:
    """One log dir with the topic `orders` (partition 0), whose settings are the cluster's."""

    def __init__(self, log_dir: Path, **settings: object) -> None:
        self.log_dir = log_dir
        self.log = LogBuilder(log_dir, "orders-0", topic_id=ORDERS_ID)
        self.settings = {key.replace("_", "."): str(value) for key, value in settings.items()}

    def segment(self, *ages_ms: int, modified_age_ms: int = 0, **batch: Any) -> Disk:
        """A segment of a record for each age, counted back from the time of the audit."""
        self.log.segment(modified_ms=NOW_MS - modified_age_ms)
        for age_ms in ages_ms:
            self.log.batch(("k", "v" * 50), timestamp=NOW_MS - age_ms, **batch)
        return self

    def write(self, *, alive_age_ms: int | None = None, clean_shutdown: bool = True) -> Disk:
        """Everything on disk. `alive_age_ms`: how long ago the broker last wrote a checkpoint."""
        cluster = MetadataBuilder(self.log_dir)
        records = [config("orders", key, value) for key, value in self.settings.items()]
        cluster.batch(topic("orders", ORDERS_ID), partition([1], ORDERS_ID), *records).write()
        self.log.write(clean_shutdown=clean_shutdown)
        if alive_age_ms is not None:
            time_ns = (NOW_MS - alive_age_ms) * 1_000_000
            for path in [*self.log_dir.glob("*checkpoint"), *self.log.path.glob("*")]:
                if path.parent == self.log_dir or path.stat().st_mtime_ns > time_ns:
                    os.utime(path, ns=(time_ns, time_ns))
        return self

    def audit(self, **options: Any) -> dict[str, Any]:
        return audited_document(self.log_dir, **{"now_ms": NOW_MS, **options})

    def finding(self, kind: str, **options: Any) -> dict[str, Any]:
        """The one finding of this kind, about the one partition."""
        document = self.audit(**options)
        found = findings_of(document, kind)
        assert len(found) == 1, [(f["id"], f["text"]) for f in document["findings"]]
        assert (found[0]["topic"], found[0]["partition"]) == ("orders", 0)
        assert found[0]["text"].startswith("orders")
        assert found[0]["fix"]
        return found[0]


def segments_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of `orders`, in offset order."""
    return [segment for segment in document["segments"] if segment["topic"] == "orders"]
