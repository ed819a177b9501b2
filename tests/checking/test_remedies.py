"""What `verify` says to do about a finding does away with it, and loses no batch: where it is a
command it is run as it stands, on the damage that the finding is for.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from data.copy_samples import copy_sample
from kafkalog.checking.finding_kinds import KIND
from kafkalog.cli.main import main
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from tests.checking.damages import DAMAGES, ORDERS, Damage, one_wrong_bit, segments
from tests.checking.running import failures

RECOVER = "kafkalog recover --apply"


def recover(log_dir: Path) -> int:
    where = ["--log-dir", str(log_dir), "--topic", "*"]
    runs = ["--run-dir", str(log_dir.parent / "runs")]
    return main(["recover", *where, "--now", "1796000000000", "--apply", *runs])


def logs(log_dir: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in log_dir.glob("*/*.log")}


def bytes_by_partition(found: dict[Path, bytes]) -> dict[Path, bytes]:
    """Of its segments one behind the other, which a finished swap joins."""
    joined: dict[Path, bytes] = {}
    for path in sorted(found):
        joined[path.parent] = joined.get(path.parent, b"") + found[path]
    return joined


def is_said(kind: str) -> bool:
    return RECOVER in KIND[kind].remedy


@pytest.mark.parametrize(
    "damage", [d for d in DAMAGES if any(map(is_said, d.finds))], ids=lambda damage: damage.name
)
def test_recover_does_away_with_what_it_is_said_to(tmp_path: Path, damage: Damage) -> None:
    log_dir = copy_sample("broker", tmp_path / "logs")
    damage.do(log_dir)
    before = logs(log_dir)
    if "leader-epochs-disagree" in damage.finds:  # "delete it and run"
        (log_dir / damage.partition / LEADER_EPOCH_CHECKPOINT_FILE).unlink()
    recover(log_dir)
    assert {kind for kind in damage.finds if is_said(kind)}.isdisjoint(failures(log_dir))
    after = logs(log_dir)
    if "torn-tail" in damage.finds:
        assert all(before[path].startswith(data) for path, data in after.items())
    else:
        assert bytes_by_partition(after) == bytes_by_partition(before)


def test_where_a_batch_is_damaged_recover_cuts_nothing(tmp_path: Path) -> None:
    """A start that finds an index gone makes it anew, and cuts the segment at such a batch."""
    log_dir = copy_sample("broker", tmp_path / "logs")
    one_wrong_bit(log_dir)
    for index in (log_dir / ORDERS).glob("*.timeindex"):
        index.unlink()
    before = logs(log_dir)
    assert recover(log_dir) == 1
    assert logs(log_dir) == before
    assert all("delete all" not in kind.remedy for kind in KIND.values())
    assert len(segments(log_dir / ORDERS)) > 1
