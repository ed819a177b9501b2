"""Copy a sample log dir to work on: `python data/copy_samples.py cleaning/before /tmp/logs`.

Git does not keep modification times, which Kafka's cleaner and retention look at; the copy gets
those the broker left, from samples/MANIFEST.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).resolve().parent / "samples"


def read_manifest() -> dict[str, Any]:
    """What make_samples.py wrote down: `files` (bytes, mtimeMs, sha256) and `cleaning`."""
    manifest: dict[str, Any] = json.loads((SAMPLES / "MANIFEST.json").read_text(encoding="utf-8"))
    return manifest


def copy_sample(name: str, target: Path) -> Path:
    """The log dir `samples/NAME` as `target`, which must not exist; returns `target`."""
    shutil.copytree(SAMPLES / name, target)
    set_times(target, prefix=f"{name}/")
    return target


def set_times(folder: Path, *, prefix: str) -> None:
    """Gives the files below `folder` the modification times of the manifest's `prefix`."""
    for path, facts in read_manifest()["files"].items():
        if path.startswith(prefix):
            time_ns = facts["mtimeMs"] * 1_000_000
            os.utime(folder / path.removeprefix(prefix), ns=(time_ns, time_ns))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sample", help="a log dir below data/samples: broker, cleaning/before …")
    parser.add_argument("target", type=Path, help="a directory that does not exist yet")
    options = parser.parse_args()
    if not (SAMPLES / options.sample).is_dir():
        parser.error(f"there is no sample {options.sample} below {SAMPLES}")
    if options.target.exists():
        parser.error(f"{options.target} exists: remove it, or name another directory")
    copy_sample(options.sample, options.target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
