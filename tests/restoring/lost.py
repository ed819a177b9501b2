"""The disks of three nodes whose metadata logs are gone: copies of `samples/cluster`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from data.copy_samples import copy_sample
from kafkalog.log.metadata_names import METADATA_DIR
from kafkalog.restoring.attach import AttachRequest

NOW_MS = 1_795_900_000_000
DIRS = ("1/data", "1/data-2", "2/data", "3/data")


class LostDisks:
    """`path`: where the nodes' log dirs are. keeps: directories whose metadata log is left."""

    def __init__(self, path: Path, keeps: tuple[str, ...] = ()) -> None:
        self.path = copy_sample("cluster", path)
        for name in DIRS:
            if name not in keeps:
                shutil.rmtree(self.path / name / METADATA_DIR, ignore_errors=True)

    def log_dirs(self, *names: str) -> tuple[str, ...]:
        """All, or these."""
        return tuple(str(self.path / name) for name in names or DIRS)

    def request(self, *names: str, **changes: Any) -> AttachRequest:
        """Of all log dirs, or these."""
        changes.setdefault("run_dir", str(self.path.with_name("runs")))
        return AttachRequest(self.log_dirs(*names), NOW_MS, **changes)
