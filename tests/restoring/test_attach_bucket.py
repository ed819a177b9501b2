"""`attach BUCKET --into LOGDIR`: what is written, read back as what the bucket has; undo to the
last byte; kills; what is refused; the verb itself. Live clusters are in `test_live_attach_bucket`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import copy_sample
from kafkalog import open_log_dir, read_records
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError, LogCleaningRefusedError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.producer_snapshot import (
    ProducerEntry,
    pack_producer_snapshot,
    parse_producer_snapshot,
)
from kafkalog.format.transaction_index import parse_transaction_index
from kafkalog.log.metadata_records import read_snapshot_records
from kafkalog.log.metadata_state import MetadataState
from kafkalog.operations.earlier_run import NOTHING, UNDONE
from kafkalog.operations.undo import undo_run
from kafkalog.planning.statuses import REFUSED
from kafkalog.reading.remote_copies import read_metadata_partitions
from kafkalog.remote.paths import RemoteStorage
from kafkalog.restoring.attach import is_whole
from kafkalog.restoring.bucket_attach import (
    BucketAttachRun,
    bucket_attach_run,
    plan_bucket_attach,
)
from kafkalog.restoring.bucket_request import BucketAttachRequest
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.log_dir_lock import LogDirLock
from tests.operations.faults.breaking_files import CountingFiles, DyingFiles, run_in_child
from tests.operations.undo.trees import differences, tree
from tests.remote.test_aiven import BROKER, KEYS, STORE
from tests.restoring.fresh import CLUSTER, fresh_node

NOW_MS = 1_795_950_000_000
TOPIC, TOPIC_ID, END = "tiered", "QG0Fv0LrTgSs9_-zTnqKKQ", 382


class Tiered:
    """A bucket of Kafka's own layout, the old log dir, and fresh nodes."""

    def __init__(self, path: Path, nodes: int = 1) -> None:
        self.path = path
        sample = copy_sample("tiered", path / "old")
        self.old, self.bucket = sample / "data", sample / "remote"
        self.dirs = [fresh_node(path / f"node-{n + 1}", n + 1) for n in range(nodes)]
        self.objects = self.bucket / "kafka-tiered-storage" / f"{TOPIC}-0-{TOPIC_ID}"

    def request(self, **changes: Any) -> BucketAttachRequest:
        into = tuple(map(str, self.dirs))
        runs = str(self.path / "runs")
        remote = RemoteStorage((str(self.bucket),))
        request = BucketAttachRequest(remote, into, NOW_MS, metadata_partitions=2, run_dir=runs)
        return replace(request, **changes)

    def attach(self, files: LocalFiles | None = None, **changes: Any) -> BucketAttachRun:
        return bucket_attach_run(self.request(**changes), lambda _: None, files)

    def by_records(self) -> dict[str, Any]:
        return {"metadata_from": (str(self.old),), "metadata_partitions": None}

    def read(self, log_dir: Path, *, committed: bool) -> list[dict[str, Any]]:
        columns = ["offset", "key", "value", "timestampMs", "producerId", "producerEpoch"]
        return (
            read_records(
                log_dir, topics=[TOPIC], columns=columns, remote_dirs=str(self.bucket),
                read_committed=committed,
            )
            .read_all()
            .to_pylist()
        )  # fmt: skip

    def snapshot(self) -> Path:
        """Of the last segment."""
        return max(self.objects.glob("*.snapshot"))

    def open_transaction(self, first_offset: int, producer_id: int = 7) -> None:
        """The last segment's snapshot has a producer whose transaction is open."""
        path = self.snapshot()
        entries = parse_producer_snapshot(path.read_bytes())
        entries.append(ProducerEntry(producer_id, 3, 9, END - 1, 0, NOW_MS, 5, first_offset))
        path.write_bytes(pack_producer_snapshot(entries))


def state_of(log_dir: Path) -> MetadataState[None]:
    state: MetadataState[None] = MetadataState()
    for record in read_snapshot_records(log_dir / "bootstrap.checkpoint"):
        state.append(record, None)
    return state


@pytest.mark.parametrize("by_records", [False, True])
def test_readers_find_the_log_of_the_bucket(tmp_path: Path, by_records: bool) -> None:
    tiered = Tiered(tmp_path)
    done = tiered.attach(**tiered.by_records() if by_records else {})
    assert is_whole(done.run)
    for committed in (False, True):
        wanted = [row for row in tiered.read(tiered.old, committed=committed)
                  if row["offset"] < END]  # fmt: skip
        assert len(wanted) > 300
        assert tiered.read(tiered.dirs[0], committed=committed) == wanted
    inventory = open_log_dir(str(tiered.dirs[0]))
    found = read_metadata_partitions(inventory, MAX_BATCH_BYTES)
    old = read_metadata_partitions(open_log_dir(str(tiered.old)), MAX_BATCH_BYTES)
    assert len(found) == (1 if by_records else 2)
    copies = {i: copy for own in found.values() for i, copy in own.copies.items()}
    wanted_copies = old[0].copies
    assert copies.keys() == wanted_copies.keys()
    for segment_id, copy in copies.items():
        known = wanted_copies[segment_id]
        assert (copy.start_offset, copy.end_offset, copy.leader_epochs, copy.size_in_bytes) == (
            known.start_offset, known.end_offset, known.leader_epochs, known.size_in_bytes
        )  # fmt: skip
    assert not any(each.incomplete for each in found.values())


def test_the_metadata_has_the_old_ids_and_is_above_all_that_was_used(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path, 3)
    done = tiered.attach()
    (content,) = {(d / "bootstrap.checkpoint").read_bytes() for d in tiered.dirs}
    state = state_of(tiered.dirs[0])
    states = {(s["topic"], s["partition"]): s for s in state.topics.states()}
    own = states[TOPIC, 0]
    assert (own["topicId"], own["replicas"], own["isr"]) == (TOPIC_ID, [1, 2, 3], [1, 2, 3])
    assert states["__remote_log_metadata", 0]["leader"] == 2
    assert own["leaderEpoch"] == done.run.plan.leader_epoch > 99
    assert done.run.plan.next_producer_id > 1_000_000
    assert state.feature_levels["metadata.version"] == 30
    assert not state.unread()
    assert content
    stubs = [tree(d / f"{TOPIC}-0") for d in tiered.dirs]
    names = [f"{END:020d}{kind}" for kind in (".log", ".index", ".timeindex", ".snapshot")]
    for stub in stubs:
        assert {name: stub[name].data for name in names} == {
            name: tiered.snapshot().read_bytes() if name.endswith("snapshot") else b""
            for name in names
        }


def test_log_dirs_of_one_node_take_turns(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    tiered.dirs.append(fresh_node(tmp_path / "node-1-other", 1))
    done = tiered.attach()
    assert is_whole(done.run)
    paths = [replica.path for each in done.run.plan.partitions for replica in each.replicas]
    assert [Path(path or "").parent for path in paths] == [*tiered.dirs, tiered.dirs[0]]
    ids = {d: (d / "meta.properties").read_text().split("directory.id=")[1].strip()
           for d in tiered.dirs}  # fmt: skip
    states = {(s["topic"], s["partition"]): s for s in state_of(tiered.dirs[1]).topics.states()}
    assert [
        states[each.topic, each.partition]["directories"] for each in done.run.plan.partitions
    ] == [[ids[Path(path or "").parent]] for path in paths]


def test_objects_of_the_plugin_are_attached_with_their_keys(tmp_path: Path) -> None:
    log_dir = fresh_node(tmp_path / "node")
    remote = RemoteStorage((str(STORE),), keys=tuple(KEYS.items()))
    request = BucketAttachRequest(
        remote, (str(log_dir),), NOW_MS, end_transactions="abort", run_dir=str(tmp_path / "runs")
    )
    done = bucket_attach_run(request, lambda _: None)
    assert is_whole(done.run)
    topics = {log.topic: log.end_offset for log in done.logs}
    assert topics.keys() == {"a-lz4", "b-lz4", "b-txn", "c-lz4"}
    columns = ["topic", "offset", "key", "value"]
    for topic, end in topics.items():
        found, wanted = (
            read_records(place, topics=[topic], columns=columns, remote_dirs=str(STORE),
                         remote_keys=KEYS, read_committed=False).read_all().to_pylist()
            for place in (log_dir, BROKER)
        )  # fmt: skip
        assert found == [row for row in wanted if row["offset"] < end]
        assert found


def test_open_transactions_are_named_aborted_or_cut(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    tiered.open_transaction(END - 20)
    run = plan_bucket_attach(tiered.request()).run
    (refusal,) = run.plan.refusals
    assert f"producer 7 from offset {END - 20} on; --end-transactions abort" in refusal
    with pytest.raises(LogCleaningRefusedError, match="producer 7"):
        tiered.attach()
    (refusal,) = plan_bucket_attach(tiered.request(end_transactions="cut")).run.plan.refusals
    assert f"no segment ends at offset {END - 20}" in refusal
    done = tiered.attach(end_transactions="abort")
    assert is_whole(done.run)
    (log,) = done.logs
    assert log.next_offset == END + 1
    directory = tiered.dirs[0] / f"{TOPIC}-0"
    index = directory / f"{END:020d}.txnindex"
    (entry,) = parse_transaction_index(index.read_bytes(), END)
    assert (entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset) == (
        7, END - 20, END, END + 1
    )  # fmt: skip
    *_, marker = read_records(
        tiered.dirs[0], topics=[TOPIC], remote_dirs=str(tiered.bucket), include_control=True,
        columns=["offset", "controlType", "producerEpoch"],
    ).read_all().to_pylist()  # fmt: skip
    assert marker == {"offset": END, "controlType": "ABORT", "producerEpoch": 4}


def test_a_cut_ends_where_a_segment_does(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    last = int(tiered.snapshot().name[:20])
    tiered.open_transaction(last)
    done = tiered.attach(end_transactions="cut")
    (log,) = done.logs
    assert (log.end_offset, len(log.left_out), log.open) == (last, 1, ())
    wanted = [row for row in tiered.read(tiered.old, committed=True) if row["offset"] < last]
    assert tiered.read(tiered.dirs[0], committed=True) == wanted
    inventory = open_log_dir(str(tiered.dirs[0]))
    found = read_metadata_partitions(inventory, MAX_BATCH_BYTES)
    copies = [copy for own in found.values() for copy in own.copies.values()]
    assert {copy.end_offset for copy in copies} == {e for e in {c.end_offset for c in copies}
                                                     if e is not None and e < last}  # fmt: skip
    assert len(copies) == log.segments


def drop(tiered: Tiered, *names: str) -> None:
    for name in names:
        for path in tiered.objects.glob(name):
            path.unlink()


def test_what_cannot_be_read_over_is_refused_by_name(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    second = sorted(tiered.objects.glob("*.log"))[1]
    drop(tiered, f"{second.stem}.*")
    (refusal,) = plan_bucket_attach(tiered.request()).run.plan.refusals
    assert f"offsets {int(second.name[:20])} to" in refusal
    by_records = plan_bucket_attach(tiered.request(**tiered.by_records()))
    assert any("not in the bucket" in text for text in by_records.run.plan.refusals)


def test_an_old_cluster_that_runs_is_refused(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        with LogDirLock(str(tiered.old)):
            os.write(ready[1], b"x")
            os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    try:
        refusals = plan_bucket_attach(tiered.request(**tiered.by_records())).run.plan.refusals
    finally:
        os.write(done[1], b"x")
        os.waitpid(pid, 0)
    assert any(f"process {pid}" in text and "the old cluster runs" in text for text in refusals)


def test_log_dirs_that_are_not_fresh_are_refused(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    tiered.dirs = [tiered.old]
    run = plan_bucket_attach(tiered.request()).run
    assert "is not fresh" in run.plan.refusals[0]
    other = fresh_node(tmp_path / "b", 2)
    meta = other / "meta.properties"
    meta.write_text(meta.read_text().replace(CLUSTER, "B" * 22))
    tiered.dirs = [fresh_node(tmp_path / "a"), other]
    with pytest.raises(InvalidConfigError, match="more than one cluster"):
        plan_bucket_attach(tiered.request())


def test_two_topics_of_one_name_are_told_apart_by_id(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    other = f"{'B' * 21}A"
    shutil.copytree(tiered.objects, tiered.objects.with_name(f"{TOPIC}-0-{other}"))
    (refusal,) = plan_bucket_attach(tiered.request()).run.plan.refusals
    assert f"segments of 2 topics of that name, {other}, {TOPIC_ID}" in refusal
    run = plan_bucket_attach(tiered.request(topics=(other,))).run
    assert not run.plan.refusals
    assert {each.topic_id for each in run.plan.partitions if each.topic == TOPIC} == {other}


def test_a_partition_of_which_nothing_was_copied_begins_anew(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    tiered.objects.rename(tiered.objects.with_name(f"{TOPIC}-1-{TOPIC_ID}"))
    done = tiered.attach()
    assert is_whole(done.run)
    assert any(f"{TOPIC}-0: no segment" in text for text in done.run.plan.warnings)
    states = state_of(tiered.dirs[0]).topics.states()
    assert sorted(s["partition"] for s in states if s["topic"] == TOPIC) == [0, 1]
    assert sorted(path.name for path in tiered.dirs[0].glob(f"{TOPIC}-*")) == [f"{TOPIC}-1"]


def test_plain_copies_are_refused_by_name(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    plain = tmp_path / "plain" / "orders-0"
    plain.mkdir(parents=True)
    shutil.copy(min(tiered.objects.glob("*.log")), plain / f"{0:020d}.log")
    remote = RemoteStorage((str(plain.parent),))
    with pytest.raises(InvalidConfigError, match="layout plain"):
        plan_bucket_attach(tiered.request(remote=remote))


def test_undo_gives_every_byte_back(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path, 2)
    before = [tree(path) for path in tiered.dirs]
    done = tiered.attach()
    undone = undo_run(tmp_path / "runs", done.run.run_id)
    assert {result.status for result in undone.results} == {UNDONE}
    for path, was in zip(tiered.dirs, before, strict=True):
        assert differences(tree(path), was) in ([], [".lock"])
    assert is_whole(tiered.attach().run)


def test_undo_leaves_what_a_broker_was_started_on(tmp_path: Path) -> None:
    tiered = Tiered(tmp_path)
    done = tiered.attach()
    metadata = tiered.dirs[0] / "__cluster_metadata-0"
    metadata.mkdir()
    shutil.copy(tiered.dirs[0] / "bootstrap.checkpoint", metadata / f"{0:020d}.log")
    before = tree(tiered.dirs[0])
    undone = undo_run(tmp_path / "runs", done.run.run_id)
    assert {result.status for result in undone.results} == {REFUSED}
    assert "a broker has been started since" in undone.results[0].reason
    assert tree(tiered.dirs[0]) == before


@pytest.mark.parametrize("stride", [29, pytest.param(5, marks=pytest.mark.thorough)])
def test_a_run_that_is_killed_is_undone_and_done_again(tmp_path: Path, stride: int) -> None:
    tiered = Tiered(tmp_path)
    counting = CountingFiles()
    before = tree(tiered.dirs[0])
    undo_run(tmp_path / "runs", tiered.attach(counting).run.run_id)
    for last in range(1, len(counting.steps), stride):
        shutil.rmtree(tmp_path / "runs")
        code = run_in_child(lambda last=last: tiered.attach(DyingFiles(last)))  # type: ignore[misc]
        assert code == -signal.SIGKILL, counting.steps[last]
        levels = state_of(tiered.dirs[0]).feature_levels
        assert levels["metadata.version"] == 30, counting.steps[last]
        (run,) = (tmp_path / "runs").iterdir()
        undone = undo_run(tmp_path / "runs", run.name)
        done = {r.status for r in undone.results if "no such directory" not in r.reason}
        assert done <= {UNDONE, NOTHING}, counting.steps[last]
        left = differences(tree(tiered.dirs[0]), before)
        assert left in ([], [".lock"]), counting.steps[last]
    assert is_whole(tiered.attach().run)


def test_the_verb_plans_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tiered = Tiered(tmp_path)
    words = ["attach", str(tiered.bucket), "--into", str(tiered.dirs[0]), "--now", str(NOW_MS)]
    before = tree(tiered.dirs[0])
    assert main(words) == 0
    printed = capsys.readouterr()
    assert "nothing was changed (--apply does)" in printed.err
    assert "settings of tiered are not known" in printed.err
    assert tree(tiered.dirs[0]) == before
    assert main([*words, "--apply"]) == 2
    assert "needs --topic" in capsys.readouterr().err
    assert main([*words, "--apply", "--topic", TOPIC_ID, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["clusterId"] == CLUSTER
    assert document["logs"][0]["endOffset"] == END
    assert document["remoteLogMetadata"] == {"from": "manifests", "partitions": 50, "records": 10}
    assert main(["undo", document["runId"]]) == 0
    capsys.readouterr()
    assert main([*words, "--in-place"]) == 2
    assert main(["attach", str(tiered.old), "--in-place", "--topic", "a"]) == 2
    assert "--topic goes with --into" in capsys.readouterr().err
