"""What is found on the sample log dirs, copied without their modification times, equals a list that
was checked by hand against the brokers that wrote them: `sample_findings.txt`.

`python -m tests.test_sample_findings` prints the list as it is now; nothing enters it unread.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES
from kafkalog.checking.cluster_run import ClusterRequest, cluster_run
from kafkalog.checking.finding import Finding
from tests.auditing.documents import audit
from tests.checking.running import findings

LIST = Path(__file__).with_name("sample_findings.txt")
# The copy is made a day after the last sample, and looked at an hour later.
COPIED_MS = 1_796_000_000_000
NOW_MS = COPIED_MS + 3_600_000
GROUPS = {
    "broker": ["broker"],
    "share": ["share"],
    "groups": ["groups/data"],
    "tiered": ["tiered/data"],
    "cleaning/before": ["cleaning/before"],
    "cleaning/after": ["cleaning/after"],
    "cluster": ["cluster/1/data", "cluster/1/data-2", "cluster/2/data", "cluster/3/data"],
    "migration": ["migration/controller", "migration/broker-1", "migration/broker-2"],
    "zookeeper": ["zookeeper/broker-1", "zookeeper/broker-2"],
    "zookeeper/second": ["zookeeper/second"],
}
HAVE_NO_METADATA = ("zookeeper", "zookeeper/second")


def copied(name: str, folder: Path) -> list[Path]:
    """The log dirs of a group, with the time of the copy."""
    log_dirs = []
    for sample in GROUPS[name]:
        target = folder / sample
        shutil.copytree(SAMPLES / sample, target, copy_function=shutil.copyfile)
        for path in [target, *target.rglob("*")]:
            os.utime(path, ns=(COPIED_MS * 1_000_000,) * 2)
        log_dirs.append(target)
    return log_dirs


def found(name: str, folder: Path) -> Iterator[str]:
    """A line a finding: the group, who says it, severity, id, and what it is about."""
    log_dirs = copied(name, folder)
    said: dict[str, list[Finding]] = {
        "verify": list(findings(*log_dirs)),
        "audit": audit(*log_dirs, now_ms=NOW_MS).findings,
    }
    if name not in HAVE_NO_METADATA:
        said["cluster"] = cluster_run(ClusterRequest(tuple(map(str, log_dirs)))).findings
    for verb, listed in said.items():
        for each in listed:
            place = Path(each.path).relative_to(folder) if each.topic is None else each.topic
            number = "" if each.partition is None else f"-{each.partition}"
            yield f"{name} | {verb} | {each.severity} | {each.kind} | {place}{number}"


def checked() -> list[str]:
    """The list without what is said about it."""
    lines = LIST.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_found_on_a_sample_was_checked_by_hand(name: str, tmp_path: Path) -> None:
    expected = [line for line in checked() if line.split(" | ")[0] == name]
    assert sorted(found(name, tmp_path)) == sorted(expected)


def test_the_list_has_nothing_else() -> None:
    assert {line.split(" | ")[0] for line in checked()} <= set(GROUPS)


if __name__ == "__main__":
    for group in GROUPS:
        with tempfile.TemporaryDirectory() as temporary:
            sys.stdout.writelines(f"{line}\n" for line in found(group, Path(temporary)))
