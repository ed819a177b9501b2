"""What a broker's own cleaner leaves when it is interrupted: we end where Kafka's loader ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkalog.operations.compact import apply_run, plan_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.replacement import Replacement, SwapGroup, write_record
from tests.conftest import NOW_MS
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import CONFIG, ISLAND, NAME, SETTINGS, compact, contents
from tests.oracle.kafka import Kafka
from tests.support.topics import topics_of

SUFFIXES = (".log", ".index", ".timeindex")
GROUPS = {
    "becomes empty": (0, 10),
    "single segment": (20,),
    "trailing sources lose all": (ISLAND, ISLAND + 10, ISLAND + 20),
}
# The six stages of a swap that a broker may be stopped at.
STAGES = range(1, 7)


def leave(
    log_dir: Path, after: dict[str, tuple[bytes, int]], group: tuple[int, ...], stage: int
) -> None:
    """Make a log dir look as if a broker died at this stage of the swap of one group."""
    base = f"{group[0]:020d}"
    final = {s for s in SUFFIXES if stage == 6 or (stage == 5 and s != ".timeindex")}
    if stage >= 4:
        for source in group:
            for suffix in SUFFIXES:
                path = log_dir / NAME / f"{source:020d}{suffix}"
                path.rename(path.with_name(path.name + ".deleted"))
    for suffix in SUFFIXES:
        is_cleaned = stage == 1 or (stage == 2 and suffix != ".log")
        state = "" if suffix in final else ".cleaned" if is_cleaned else ".swap"
        data, _ = after[f"{NAME}/{base}{suffix}"]
        (log_dir / NAME / f"{base}{suffix}{state}").write_bytes(data)


def segment_files(log_dir: Path) -> dict[str, bytes]:
    """Everything in the partition directory but producer snapshots, small text files, and what a
    broker marked `.deleted`, which only the loader removes.
    """
    return {
        path.name: path.read_bytes()
        for path in sorted((log_dir / NAME).iterdir())
        if not path.name.endswith((".snapshot", "checkpoint", ".metadata", ".deleted"))
    }


@pytest.mark.oracle
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS.keys())
def test_recovery_ends_where_kafkas_loader_ends(
    undisturbed: Undisturbed, log_dir: Path, kafka: Kafka, group: tuple[int, ...], stage: int
) -> None:
    ours = undisturbed.copy(log_dir / "ours")
    leave(ours, undisturbed.after, group, stage)
    kafkas = shutil.copytree(ours, log_dir / "kafkas")
    said = resolve_interrupted_swap(str(ours / NAME), LocalFiles())
    assert len(said) == (stage < 6)  # then only `.deleted` files are left, which stay
    kafka.open_once(kafkas, NAME, now_ms=NOW_MS, config=SETTINGS)
    assert segment_files(ours) == segment_files(kafkas)
    assert resolve_interrupted_swap(str(ours / NAME), LocalFiles()) == []
    compact(ours)
    logs = {n: c for n, (c, _) in contents(ours).items() if n.endswith(".log")}
    assert logs == {n: c for n, (c, _) in undisturbed.after.items() if n.endswith(".log")}


@pytest.mark.oracle
def test_several_swaps_replace_all_between_them_as_the_loader_does(
    undisturbed: Undisturbed, log_dir: Path, kafka: Kafka
) -> None:
    """What a split of a segment leaves; without a record of ours the range is the loader's."""
    ours = undisturbed.copy(log_dir / "ours")
    leave(ours, undisturbed.after, (20,), 3)
    leave(ours, undisturbed.after, (2 * ISLAND,), 3)
    kafkas = shutil.copytree(ours, log_dir / "kafkas")
    resolve_interrupted_swap(str(ours / NAME), LocalFiles())
    kafka.open_once(kafkas, NAME, now_ms=NOW_MS, config=SETTINGS)
    assert segment_files(ours) == segment_files(kafkas)


def test_a_record_of_ours_does_not_name_the_sources_of_another_swap(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    """A broker undid our swap, cleaned by itself and died: our old record would cost a segment."""
    copy = undisturbed.copy(log_dir / "copy")
    leave(copy, undisturbed.after, (20,), 3)
    group = SwapGroup(20, (20, ISLAND, ISLAND + 10), "another content")
    record = copy / NAME / "kafkalog-20250101T000000abcdef-swap.tmp"
    write_record(
        str(record),
        Replacement("20250101T000000abcdef", "compact", "a", True, 0, (group,)),
        LocalFiles(),
    )
    resolve_interrupted_swap(str(copy / NAME), LocalFiles())
    after = segment_files(copy)
    assert f"{ISLAND:020d}.log" in after
    assert f"{ISLAND + 10:020d}.log" in after
    assert not record.exists()


def test_a_damaged_swap_file_stays_and_its_partition_is_refused(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    leave(copy, undisturbed.after, (20,), 3)
    swap = copy / NAME / f"{20:020d}.log.swap"
    swap.write_bytes(swap.read_bytes()[:-5])
    before = contents(copy)
    run = compact(copy)
    assert run.results == ()
    assert [plan.status for plan in run.plans] == ["refused"]
    assert "not resolved" in run.recovered[0]
    assert contents(copy) == before


def test_a_swap_that_crosses_the_log_start_is_resolved(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    """Between two renames the first segment is not there, and the log seems to start later."""
    copy = undisturbed.copy(log_dir / "copy")
    (copy / "log-start-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    leave(copy, undisturbed.after, GROUPS["becomes empty"], 4)
    run = compact(copy)
    assert [result.status for result in run.results] == ["compacted"]
    logs = {n: c for n, (c, _) in contents(copy).items() if n.endswith(".log")}
    assert logs == {n: c for n, (c, _) in undisturbed.after.items() if n.endswith(".log")}


def test_a_dry_run_names_leftovers_and_touches_none(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    leave(copy, undisturbed.after, (20,), 3)
    before = contents(copy)
    run = plan_run(CompactionRequest((str(copy),), NOW_MS, CONFIG, topics=topics_of(copy)))
    assert run.plans[0].status == "refused"
    assert "resolved first by --apply" in run.plans[0].reason
    assert contents(copy) == before


def test_the_metadata_log_is_left_alone(undisturbed: Undisturbed, log_dir: Path) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    (copy / NAME).rename(copy / "__cluster_metadata-0")
    (copy / "__cluster_metadata-0" / f"{10:020d}.log.deleted").write_bytes(b"x")
    before = contents(copy)
    request = CompactionRequest((str(copy),), NOW_MS, CONFIG, topics=("*",))
    run = apply_run(request, clean_pack)
    assert run.results == ()
    assert contents(copy) == before
