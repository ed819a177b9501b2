"""`compact --output`: what it writes is what `--apply` would have put in place, and its script puts
it there by hand, takes it back, and does neither where anything is not as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.operations import compact_swap
from kafkalog.operations.compact_output import MANIFEST_FILE
from tests.conftest import NOW_MS
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import ISLAND, NAME, SETTINGS, contents, write_fault_log
from tests.operations.faults.test_locks import another_process, record_lock
from tests.operations.faults.test_split_kills import write_log as write_split_log
from tests.operations.undo.trees import differences, dress, files, tree
from tests.oracle.kafka import Kafka
from tests.support.log_builder import LogBuilder
from tests.support.topics import topic_words

SCRIPT = "swap.sh"
ORIGINAL = ".original"


def compact(*words: str) -> int:
    log_dir = words[words.index("--log-dir") + 1]
    settings = [f"--config={key}={value}" for key, value in SETTINGS.items()]
    named = ["--now", str(NOW_MS), "--workers", "1", *topic_words(log_dir)]
    return main(["compact", *named, *words, *settings])


def write_output(log_dir: Path, output: Path, *words: str) -> int:
    return compact("--log-dir", str(log_dir), "--output", str(output), *words)


def swap(output: Path, *words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) if path is None else {**os.environ, "PATH": path}
    return subprocess.run(
        ["sh", str(output / SCRIPT), *words],
        capture_output=True, text=True, errors="replace", check=False, env=environment, timeout=600,
    )  # fmt: skip


def live(log_dir: Path) -> dict[str, tuple[bytes, int]]:
    """Contents without what the script keeps aside."""
    return {name: data for name, data in contents(log_dir).items() if not name.endswith(ORIGINAL)}


@pytest.fixture
def written(undisturbed: Undisturbed, log_dir: Path) -> tuple[Path, Path]:
    """A copy of the fault log, with odd modes, and the output written for it."""
    copy, output = undisturbed.copy(log_dir / "copy"), log_dir / "output"
    dress(copy)
    assert write_output(copy, output) == 0
    return copy, output


def test_the_output_is_what_apply_puts_in_place_and_the_log_dir_is_untouched(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    copy, output = undisturbed.copy(log_dir / "copy"), log_dir / "output"
    before = tree(copy)
    assert write_output(copy, output) == 0
    assert differences(tree(copy), before) == []
    assert not (copy / ".lock").exists()
    made = {f"{NAME}/{path.name}": path.read_bytes() for path in (output / NAME).iterdir()}
    applied = {name: data for name, (data, _) in undisturbed.after.items() if name in made}
    assert made == applied
    manifest = json.loads((output / MANIFEST_FILE).read_text())
    (partition,) = manifest["partitions"]
    assert [group["replaces"] for group in partition["groups"]][:2] == [[0, 10], [20]]
    listed = {f["name"]: f for group in partition["groups"] for f in group["files"]}
    assert {f"{NAME}/{name}" for name in listed} == made.keys()
    for name, file in listed.items():
        data = made[f"{NAME}/{name}"]
        assert file["sizeInBytes"] == len(data)
        assert file["sha256"] == hashlib.sha256(data).hexdigest()
    for group in partition["groups"]:
        for file in group["sources"] + group["producerSnapshots"]:
            data = (copy / NAME / file["name"]).read_bytes()
            assert (file["sizeInBytes"], file["sha256"]) == (
                len(data),
                hashlib.sha256(data).hexdigest(),
            )


@pytest.mark.oracle
def test_the_script_ends_where_apply_does_and_undo_gives_the_tree_back(
    undisturbed: Undisturbed, log_dir: Path, kafka: Kafka
) -> None:
    copy, output = undisturbed.copy(log_dir / "copy"), log_dir / "output"
    dress(copy)
    assert write_output(copy, output) == 0
    before, modes = tree(copy), {p.name: p.stat().st_mode for p in (copy / NAME).glob("*.log")}
    done = swap(output)
    assert done.returncode == 0, done.stderr
    assert live(copy) == undisturbed.after
    for path in (copy / NAME).glob("*.log"):
        assert path.stat().st_mode == modes[path.name], path
    opened = Path(shutil.copytree(copy, log_dir / "opened"))
    loaded = kafka.open_once(opened, NAME, now_ms=NOW_MS, config=SETTINGS)
    assert loaded["logEndOffset"] == undisturbed.before.log_end_offset
    segments = {name: data for name, data in live(opened).items() if name.endswith(".log")}
    assert segments == {n: d for n, d in undisturbed.after.items() if n.endswith(".log")}
    assert swap(output).returncode == 0  # again: nothing is left to do
    assert live(copy) == undisturbed.after
    undone = swap(output, "--undo")
    assert undone.returncode == 0, undone.stderr
    assert differences(tree(copy), before) == []


def test_purge_leaves_what_apply_leaves(
    undisturbed: Undisturbed, written: tuple[Path, Path]
) -> None:
    copy, output = written
    assert swap(output).returncode == 0
    assert swap(output, "--purge").returncode == 0
    assert contents(copy) == undisturbed.after
    refused = swap(output, "--undo")
    assert refused.returncode == 1
    assert "nothing was changed" in refused.stderr
    assert contents(copy) == undisturbed.after


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("change", [grow, flip, Path.unlink])
@pytest.mark.parametrize("name", [f"{ISLAND + 10:020d}.log", f"{0:020d}.timeindex"])
def test_a_source_that_changed_stops_the_script(
    written: tuple[Path, Path], change: Callable[[Path], None], name: str
) -> None:
    copy, output = written
    change(copy / NAME / name)
    before = tree(copy)
    done = swap(output)
    assert done.returncode == 1
    assert f"{name}: not the" in done.stderr
    assert differences(tree(copy), before) == []


def test_a_damaged_output_stops_the_script(written: tuple[Path, Path]) -> None:
    copy, output = written
    flip(output / NAME / f"{20:020d}.log")
    before = tree(copy)
    done = swap(output)
    assert done.returncode == 1
    assert f"{NAME}/{20:020d}.log: not the" in done.stderr
    assert differences(tree(copy), before) == []


def test_an_empty_checkpoint_is_taken_as_a_broker_takes_it_and_a_corrupt_one_stops_the_script(
    log_dir: Path,
) -> None:
    copy, output = log_dir / "copy", log_dir / "output"
    small_log(copy)
    checkpoint = copy / "cleaner-offset-checkpoint"
    checkpoint.write_bytes(b"")
    assert write_output(copy, output) == 0
    before = tree(copy)
    for damage in (b"1\n0\n", b"0\n2\norders 0 1\n", b"0\n1\norders 0\n", b"0\n"):
        checkpoint.write_bytes(damage)
        done = swap(output)
        assert done.returncode == 1, damage
        assert "not a checkpoint file" in done.stderr
    checkpoint.write_bytes(b"")
    assert swap(output).returncode == 0
    assert checkpoint.read_text() == f"0\n1\norders 0 {ISLAND + 2}\n"
    assert swap(output, "--undo").returncode == 0
    found = {name: node.data for name, node in tree(copy).items()}
    assert found == {name: node.data for name, node in before.items()}


def test_taken_again_the_steps_of_the_script_change_nothing(written: tuple[Path, Path]) -> None:
    copy, output = written
    assert swap(output).returncode == 0
    after = live(copy)
    assert swap(output).returncode == 0
    assert live(copy) == after


def test_undo_stops_where_a_new_segment_changed(written: tuple[Path, Path]) -> None:
    copy, output = written
    assert swap(output).returncode == 0
    grow(copy / NAME / f"{20:020d}.log")
    before = tree(copy)
    done = swap(output, "--undo")
    assert done.returncode == 1
    assert "neither an original nor a new file" in done.stderr
    assert differences(tree(copy), before) == []


def test_a_running_broker_stops_the_script(written: tuple[Path, Path]) -> None:
    copy, output = written
    with another_process(copy / ".lock", record_lock):
        before = files(tree(copy))
        done = swap(output)
        assert done.returncode == 1
        assert "running broker" in done.stderr
        assert differences(files(tree(copy)), before) == []
    assert swap(output).returncode == 0


def test_bad_usage_of_the_script_changes_nothing(written: tuple[Path, Path]) -> None:
    copy, output = written
    before = tree(copy)
    assert [swap(output, *words).returncode for words in (["--help"], ["--undo", "x"])] == [1, 1]
    assert differences(tree(copy), before) == []


WRAPPER = """#!/bin/sh
n=$(($(cat {count}) + 1))
echo $n >{count}
[ $n -ne {last} ] || {{ kill -9 $PPID $(cat {count}.script); exit 137; }}
exec {tool} "$@"
"""


def killing_tools(place: Path, last: int) -> str:
    """A PATH on which the `last` operation that changes something kills the script instead."""
    place.mkdir()
    count = place / "count"
    count.write_text("0\n")
    for tool in ("mv", "rm", "ln", "cp", "touch", "chmod"):
        path = place / tool
        path.write_text(WRAPPER.format(count=count, last=last, tool=shutil.which(tool)))
        path.chmod(0o755)
    return f"{place}:{os.environ['PATH']}"


def killed_at(output: Path, words: list[str], place: Path, last: int) -> tuple[bool, int]:
    """Run the script until its `last` change; whether it was killed, and how many it made."""
    path = killing_tools(place, last)
    with subprocess.Popen(
        ["sh", "-c", f'echo $$ >{place}/count.script; exec sh "$0" "$@"',
         str(output / SCRIPT), *words],
        env={**os.environ, "PATH": path},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as script:  # fmt: skip
        code = script.wait(120)
    made = int((place / "count").read_text())
    shutil.rmtree(place)
    return code != 0, made


def small_log(log_dir: Path) -> None:
    """Two groups, of which one loses a segment with its snapshot."""
    log = LogBuilder(log_dir, NAME, index_interval_bytes=100)
    log.segment(0).batch(("a", "1"), ("b", "1")).batch(("a", "2"), producer_id=7)
    log.segment(10).batch(("c", "1"), ("a", "3"), producer_id=7)
    log.segment(20).batch(("c", "2"))
    log.segment(ISLAND).batch(("d", "1"), ("b", "2"))
    log.segment().batch(("a", "4")).write()
    (log_dir / "cleaner-offset-checkpoint").write_text("0\n2\ngone 0 7\norders 0 1\n")


@pytest.mark.oracle
@pytest.mark.parametrize("every", [43, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "undo",
    [pytest.param(False, id="swap"), pytest.param(True, id="undo", marks=pytest.mark.thorough)],
)
def test_killed_anywhere_the_script_can_be_run_again_and_a_broker_loads_what_is_there(
    log_dir: Path, kafka: Kafka, every: int, undo: bool
) -> None:
    """Each time a broker may load what is left; and the script ends what it began, either way."""
    before = log_dir / "before"
    small_log(before)
    last, made = 3, 10**6
    while last <= made:
        copy, output = Path(shutil.copytree(before, log_dir / "copy")), log_dir / "output"
        untouched = tree(copy)
        assert write_output(copy, output) == 0
        if undo:
            assert swap(output).returncode == 0
        was_killed, count = killed_at(output, ["--undo"] if undo else [], log_dir / "tools", last)
        made = made if was_killed else count
        what = f"killed at change {last}"
        for load in (kafka.open_once, kafka.recover):
            opened = Path(shutil.copytree(copy, log_dir / "opened"))
            loaded = load(opened, NAME, now_ms=NOW_MS, config=SETTINGS)
            assert (loaded["logStartOffset"], loaded["logEndOffset"]) == (0, ISLAND + 3), what
            values = [
                (record["key"], record["value"])
                for segment in kafka.dump(opened / NAME)["segments"]
                for batch in segment["batches"]
                for record in batch["records"]
            ]
            assert dict(values)["Yg=="] == "Mg==", what  # the last b is 2
            assert dict(values)["ZA=="] == "MQ==", what
            shutil.rmtree(opened)
        if last % 2:  # end what was begun, or go the other way at once
            again = swap(output, *(["--undo"] if undo else []))
            assert again.returncode == 0, (what, again.stderr)
        elif undo:
            assert swap(output).returncode == 0, what
            assert swap(output, "--purge").returncode == 0, what
            assert len(list((copy / NAME).glob("*.log"))) == 4, what
            shutil.rmtree(copy)
            shutil.rmtree(output)
            last += every
            continue
        back = swap(output, "--undo")
        assert back.returncode == 0, (what, back.stderr)
        assert differences(tree(copy), untouched) == [], what
        shutil.rmtree(copy)
        shutil.rmtree(output)
        last += every
    assert made > 20


@pytest.mark.parametrize(
    "name",
    [
        b"it's $(touch x)\n\xff@RUN@ @GROUPS@",
        *(pytest.param(name, marks=pytest.mark.thorough) for name in (b"a\nb\n", b"-n")),
    ],
)
def test_odd_places_are_quoted(log_dir: Path, name: bytes) -> None:
    odd = log_dir / os.fsdecode(name)
    (odd / "logs").mkdir(parents=True)
    small_log(odd / "logs")
    before = tree(odd / "logs")
    assert write_output(odd / "logs", odd / "out") == 0
    done = swap(odd / "out")
    assert done.returncode == 0, done.stderr
    assert len(list((odd / "logs" / NAME).glob("*.log"))) == 4
    assert swap(odd / "out", "--undo").returncode == 0
    assert differences(tree(odd / "logs"), before) == []
    assert [path.name for path in log_dir.iterdir()] == [odd.name]


@pytest.mark.parametrize("topic", ["-r", "__a.b_c-d" + "x" * 200])
def test_odd_topics_are_swapped_as_apply_swaps_them(log_dir: Path, topic: str) -> None:
    for name in ("applied", "by-hand"):
        log = LogBuilder(log_dir / name, f"{topic}-7").segment().batch(("a", "1"), ("b", "1"))
        log.segment().batch(("a", "2")).segment().batch(("c", "1")).write()
        (log_dir / name / "cleaner-offset-checkpoint").write_text("0\n1\nelse 0 1\n")
    assert compact("--log-dir", str(log_dir / "applied"), "--apply", "--no-undo") == 0
    assert write_output(log_dir / "by-hand", log_dir / "out") == 0
    done = swap(log_dir / "out")
    assert done.returncode == 0, done.stderr
    found, wanted = live(log_dir / "by-hand"), contents(log_dir / "applied")
    assert {n: d for n, (d, _) in found.items()} == {n: d for n, (d, _) in wanted.items()}


def test_checkpoint_lines_are_taken_back_where_somebody_wrote_the_file_since(
    written: tuple[Path, Path],
) -> None:
    copy, output = written
    checkpoint = copy / "cleaner-offset-checkpoint"
    (copy / "else-0").mkdir()
    assert swap(output).returncode == 0
    assert f"orders 0 {2 * ISLAND + 40}" in checkpoint.read_text()
    checkpoint.write_text(f"0\n2\nelse 0 3\norders 0 {2 * ISLAND + 40}\n")
    assert swap(output, "--undo").returncode == 0
    assert checkpoint.read_text() == "0\n1\nelse 0 3\n"


def test_a_partition_that_changes_meanwhile_fails_by_name_and_leaves_nothing(
    undisturbed: Undisturbed, log_dir: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    copy, output = undisturbed.copy(log_dir / "copy"), log_dir / "output"
    digested = compact_swap.written_group

    def and_somebody_writes(*arguments):  # type: ignore[no-untyped-def]
        grow(copy / NAME / f"{2 * ISLAND + 40:020d}.log")
        return digested(*arguments)

    monkeypatch.setattr(compact_swap, "written_group", and_somebody_writes)
    assert write_output(copy, output, "--json") == 1
    (entry,) = json.loads(capsys.readouterr().out)["partitions"]
    assert entry["status"] == "failed"
    assert "not those the plan was made from" in entry["reason"]
    assert sorted(path.name for path in output.iterdir()) == [MANIFEST_FILE, SCRIPT]
    assert json.loads((output / MANIFEST_FILE).read_text())["partitions"] == []


def test_a_segment_that_must_be_split_is_refused(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_split_log(log_dir / "logs")
    before = tree(log_dir / "logs")
    assert write_output(log_dir / "logs", log_dir / "output", "--json") == 3
    (entry,) = json.loads(capsys.readouterr().out)["partitions"]
    assert entry["status"] == "refused"
    assert "must be split first" in entry["reason"]
    assert differences(tree(log_dir / "logs"), before) == []


@pytest.mark.parametrize("place", ["copy", "copy/orders-0/new", "copy/..", "other/new", "used"])
def test_no_place_in_a_log_dir_is_written_to(
    undisturbed: Undisturbed, log_dir: Path, place: str
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    (log_dir / "other").mkdir()
    (log_dir / "other" / "meta.properties").write_text("version=1\n")
    (log_dir / "used").mkdir()
    (log_dir / "used" / "a").write_text("")
    before = tree(log_dir)
    assert write_output(copy, log_dir / place) == 2
    assert differences(tree(log_dir), before) == []


@pytest.mark.parametrize("words", [["--apply"], ["--swap-per-group"], ["--no-undo"]])
def test_what_output_excludes_is_bad_usage(log_dir: Path, words: list[str]) -> None:
    write_fault_log(log_dir / "logs")
    before = tree(log_dir)
    assert write_output(log_dir / "logs", log_dir / "output", *words) == 2
    assert differences(tree(log_dir), before) == []


def test_across_tasks_writes_the_same_files(undisturbed: Undisturbed, log_dir: Path) -> None:
    copy, output = undisturbed.copy(log_dir / "copy"), log_dir / "output"
    assert write_output(copy, output, "--strategy", "across-tasks") == 0
    made = {f"{NAME}/{path.name}": path.read_bytes() for path in (output / NAME).iterdir()}
    assert made == {n: data for n, (data, _) in undisturbed.after.items() if n in made}
    assert len(made) == 15


def test_no_space_there_is_refused_before_anything_is_written(
    undisturbed: Undisturbed, log_dir: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    copy, output = undisturbed.copy(log_dir / "copy"), log_dir / "a" / "output"
    monkeypatch.setattr("kafkalog.operations.space.free_bytes", lambda _: 100)
    assert write_output(copy, output, "--json") == 3
    (entry,) = json.loads(capsys.readouterr().out)["partitions"]
    assert entry["reason"].startswith("no space: ")
    assert str(output) in entry["reason"]
    assert not (output / NAME).exists()
