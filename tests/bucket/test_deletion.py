"""`bucket --apply`: only what the delete list has goes, as it was when it was judged; what the
store keeps comes back.
"""

from __future__ import annotations

import json
import queue
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalog.bucket import deletion_run
from kafkalog.bucket.deletion_run import DELETED, KIND, NO_VERSIONS, DeletionRun, delete_segments
from kafkalog.bucket.run import BucketRun
from kafkalog.bucket.undo_deletions import NOTHING, UNDONE, undo_deletions
from kafkalog.cli import bucket as bucket_verb
from kafkalog.cli.main import main
from kafkalog.planning.statuses import FAILED, LEFT, REFUSED
from kafkalog.remote import buckets
from kafkalog.remote.paths import RemoteStorage
from kafkalog.runs import journal
from kafkalog.runs.journal import read_events
from tests.bucket.killing import killed_after
from tests.bucket.tiered_cluster import (
    COPIED_MS,
    HOUR_MS,
    NOW_MS,
    OTHER,
    STARTED,
    THIRD,
    WHOLE,
    TieredCluster,
    deletable,
    kinds,
    look_in_turn,
)
from tests.remote.test_aiven import KEYS
from tests.remote.test_buckets import SECRET
from tests.remote.test_buckets import bucket as bucket  # a fixture
from tests.support.buckets import served
from tests.support.reference.json_schema import errors_of
from tests.support.s3_server import AZURE, BUCKET, GCS, S3, S3Server

SCHEMA: dict[str, Any] = json.loads(
    Path(journal.__file__).with_name(journal.SCHEMA_FILE).read_text()
)


@pytest.fixture(autouse=True)
def _without_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion_run, "OBJECTS_PER_SECOND", 1_000_000)


@pytest.fixture
def cluster(tmp_path: Path) -> TieredCluster:
    """With an orphan of three objects and half an upload of two, of other topics."""
    made = TieredCluster(tmp_path)
    made.again("a-lz4", OTHER, WHOLE, COPIED_MS)
    made.again("b-txn", THIRD, ("log", "indexes"), COPIED_MS)
    return made


@pytest.fixture
def versioned(cluster: TieredCluster, bucket: S3Server) -> S3Server:
    """The cluster's storage in a bucket that keeps what is deleted."""
    bucket.put_tree(cluster.store)
    bucket.is_versioned = True
    return bucket


def look(cluster: TieredCluster, *, in_bucket: bool, cloud: str = S3) -> BucketRun:
    request = replace(cluster.request(), run_dir=str(cluster.broker.parent / "runs"))
    if in_bucket:
        storage = RemoteStorage((f"{cloud}://{BUCKET}",), keys=tuple(KEYS.items()))
        request = replace(request, remote=storage)
    return look_in_turn(request)


def delete(cluster: TieredCluster, run: BucketRun, *, keeps_undo: bool = True) -> DeletionRun:
    run_dir = cluster.broker.parent / "runs"
    return delete_segments(run.deletions, run_dir, {}, keeps_undo=keeps_undo, tell=lambda _: None)


def undo(cluster: TieredCluster, run_id: str | None) -> list[str]:
    return [each.status for each in undo_deletions(cluster.broker.parent / "runs", str(run_id))]


def statuses(deleted: DeletionRun) -> list[str]:
    return [result.status for result in deleted.results]


def objects_in(store: Path) -> dict[str, bytes]:
    return {
        path.relative_to(store).as_posix(): path.read_bytes()
        for path in store.rglob("*")
        if path.is_file()
    }


def events_of(cluster: TieredCluster, run_id: str | None) -> list[dict[str, Any]]:
    found = list(read_events(cluster.broker.parent / "runs" / str(run_id)))
    for event in found:
        assert errors_of(event, SCHEMA, SCHEMA) == [], event
    return found


# -- what goes -------------------------------------------------------------------------------------


def test_a_directory_loses_what_is_on_the_list_and_nothing_else(cluster: TieredCluster) -> None:
    before = objects_in(cluster.store)
    run = look(cluster, in_bucket=False)
    listed = {str(Path(path).relative_to(cluster.store)) for path in deletable(run)}
    assert len(listed) == 5
    # A directory keeps nothing: without a word for it all stays.
    refused = delete(cluster, run)
    assert statuses(refused) == [REFUSED, REFUSED]
    assert all(NO_VERSIONS in result.reason for result in refused.results)
    assert objects_in(cluster.store) == before
    deleted = delete(cluster, run, keeps_undo=False)
    assert statuses(deleted) == [DELETED, DELETED]
    assert sum(result.objects_count for result in deleted.results) == 5
    after = objects_in(cluster.store)
    assert after == {name: data for name, data in before.items() if name not in listed}
    assert kinds(look(cluster, in_bucket=False)) == []
    # Nothing comes back, and undo says so.
    assert undo(cluster, deleted.run_id) == [REFUSED, REFUSED]
    assert objects_in(cluster.store) == after


def test_a_bucket_that_keeps_versions_gives_all_back(
    cluster: TieredCluster, versioned: S3Server
) -> None:
    before = dict(versioned.objects)
    run = look(cluster, in_bucket=True)
    deleted = delete(cluster, run)
    assert statuses(deleted) == [DELETED, DELETED]
    gone = {path.removeprefix(f"s3://{BUCKET}/") for path in deletable(run)}
    assert versioned.objects == {k: v for k, v in before.items() if k not in gone}
    deleting, _, _, last = events_of(cluster, deleted.run_id)
    assert [each["path"].rpartition(".")[2] for each in deleting["objects"]] == [
        "rsm-manifest", "indexes", "log",
    ]  # fmt: skip
    assert all(each["versionId"].startswith("v-") for each in deleting["objects"])
    assert last["status"] == DELETED
    assert undo(cluster, deleted.run_id) == [UNDONE, UNDONE]
    assert versioned.objects == before
    # Again it finds nothing to do.
    assert undo(cluster, deleted.run_id) == []
    assert kinds(look(cluster, in_bucket=True)) == kinds(run)


def test_a_bucket_without_versions_is_left_alone_unless_asked(
    cluster: TieredCluster, bucket: S3Server
) -> None:
    bucket.put_tree(cluster.store)
    before = dict(bucket.objects)
    run = look(cluster, in_bucket=True)
    assert statuses(delete(cluster, run)) == [REFUSED, REFUSED]
    assert bucket.objects == before
    deleted = delete(cluster, run, keeps_undo=False)
    assert statuses(deleted) == [DELETED, DELETED]
    assert len(bucket.objects) == len(before) - 5
    assert undo(cluster, deleted.run_id) == [REFUSED, REFUSED]


@pytest.mark.parametrize("cloud", [GCS, AZURE])
def test_generations_and_azures_versions_give_all_back(
    cluster: TieredCluster, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they are kept no version id tells: GCS numbers objects that it does not keep. An
    object of no bytes is deleted first, once."""
    for store in served(monkeypatch, cloud):
        store.put_tree(cluster.store)
        before = dict(store.objects)
        run = look(cluster, in_bucket=True, cloud=cloud)
        refused = delete(cluster, run)
        assert statuses(refused) == [REFUSED, REFUSED]
        assert all(NO_VERSIONS in result.reason for result in refused.results)
        assert store.objects == before
        buckets._bucket.cache_clear()  # as another process
        store.is_versioned = True
        deleted = delete(cluster, run)
        assert statuses(deleted) == [DELETED, DELETED]
        assert len(store.objects) == len(before) - 5
        assert len([key for key, _ in store.kept if key.endswith(".probe")]) == 1
        assert undo(cluster, deleted.run_id) == [UNDONE, UNDONE]
        assert store.objects == before


@pytest.mark.parametrize("cloud", [GCS, AZURE])
def test_a_bucket_that_may_not_be_written_is_not_deleted_from_with_undo(
    cluster: TieredCluster, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for store in served(monkeypatch, cloud):
        store.put_tree(cluster.store)
        store.is_versioned, store.is_read_only = True, True
        before = dict(store.objects)
        deleted = delete(cluster, look(cluster, in_bucket=True, cloud=cloud))
        assert statuses(deleted) == [FAILED, FAILED]
        assert "nothing can be written here" in deleted.results[0].reason
        assert store.objects == before


def test_another_clusters_segments_and_an_upload_in_progress_lose_nothing(
    cluster: TieredCluster,
) -> None:
    """In one prefix, with half an upload among the other cluster's segments; the upload was
    announced an hour ago, and another was not."""
    (own,) = cluster.store.glob("a-lz4-*")
    other = own.with_name(f"a-lz4-{OTHER}")
    assert len(list(own.rglob("*.*"))) == 3 + 3
    shutil.copytree(own, other)
    next(other.rglob("*.rsm-manifest")).unlink()
    uploads = [
        *cluster.again("b-lz4", OTHER, ("log",), NOW_MS - HOUR_MS),
        *cluster.again("c-lz4", OTHER, WHOLE, NOW_MS - HOUR_MS),
    ]
    cluster.copy("b-lz4", OTHER, STARTED, at_ms=NOW_MS - HOUR_MS)
    before = objects_in(cluster.store)
    deleted = delete(cluster, look(cluster, in_bucket=False), keeps_undo=False)
    assert statuses(deleted) == [DELETED, DELETED]
    after = objects_in(cluster.store)
    assert {Path(name).stem[21:] for name in before.keys() - after.keys()} == {OTHER, THIRD}
    assert all(path.exists() for path in uploads)
    assert len(list(other.rglob("*.*"))) == 3 + 3 - 1


# -- what has changed meanwhile --------------------------------------------------------------------


def replaced(cluster: TieredCluster) -> str:
    (log,) = cluster.store.rglob(f"*-{OTHER}.log")
    log.write_bytes(log.read_bytes()[::-1])
    return "changed since its segment was judged"


def finished(cluster: TieredCluster) -> str:
    """The upload that had not ended."""
    (log,) = cluster.store.rglob(f"*-{THIRD}.log")
    log.with_suffix(".rsm-manifest").write_text("{}")
    return "it was not there when its segment was judged"


def test_what_changed_since_it_was_judged_stays(cluster: TieredCluster) -> None:
    run = look(cluster, in_bucket=False)
    texts = [replaced(cluster), finished(cluster)]
    before = objects_in(cluster.store)
    deleted = delete(cluster, run, keeps_undo=False)
    assert statuses(deleted) == [REFUSED, REFUSED]
    for text, result in zip(texts, deleted.results, strict=True):
        assert text in result.reason
    assert objects_in(cluster.store) == before
    assert [event["event"] for event in events_of(cluster, deleted.run_id)] == ["ended", "ended"]


def test_an_object_that_is_replaced_under_the_run_stays(
    cluster: TieredCluster, versioned: S3Server
) -> None:
    """Between the deletion of two objects of a segment somebody writes the second anew."""
    run = look(cluster, in_bucket=True)
    key = next(key for key in versioned.objects if key.endswith(f"{OTHER}.log"))

    def write(deleted: str) -> None:
        if deleted.endswith(f"{OTHER}.indexes"):
            versioned.objects[key] = b"another"

    versioned.before_deletion = write
    deleted = delete(cluster, run)
    assert statuses(deleted) == [REFUSED, DELETED]
    assert "changed while its segment was deleted" in deleted.results[0].reason
    assert deleted.results[0].objects_count == 2
    assert versioned.objects[key] == b"another"
    # What was deleted of it comes back, and the other object stays.
    assert undo(cluster, deleted.run_id) == [REFUSED, UNDONE]
    assert versioned.objects[key] == b"another"


@pytest.mark.thorough
def test_what_is_gone_already_is_no_failure(cluster: TieredCluster) -> None:
    run = look(cluster, in_bucket=False)
    next(cluster.store.rglob(f"*-{OTHER}.rsm-manifest")).unlink()
    deleted = delete(cluster, run, keeps_undo=False)
    assert statuses(deleted) == [DELETED, DELETED]
    assert [result.objects_count for result in deleted.results] == [2, 2]


# -- a store that fails, a run that dies -----------------------------------------------------------


@pytest.mark.thorough
def test_a_store_that_forgets_what_it_should_keep_is_left_alone(
    cluster: TieredCluster, versioned: S3Server
) -> None:
    run = look(cluster, in_bucket=True)
    versioned.delete = lambda key: versioned.objects.pop(key) and None  # type: ignore[method-assign]
    deleted = delete(cluster, run)
    assert statuses(deleted) == [FAILED, FAILED]
    assert "the store did not keep version v-" in deleted.results[0].reason
    assert [result.objects_count for result in deleted.results] == [0, 0]


def test_a_store_that_says_slow_down_is_asked_again(
    cluster: TieredCluster, versioned: S3Server
) -> None:
    run = look(cluster, in_bucket=True)
    versioned.refusals = 2
    assert statuses(delete(cluster, run)) == [DELETED, DELETED]
    assert sum(n for (method, _), n in versioned.requests.items() if method == "DELETE") == 7


@pytest.mark.thorough
def test_a_store_that_refuses_again_and_again_is_asked_no_more(
    cluster: TieredCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        cluster.again("b-lz4", f"{number}" * 21 + "A", ("log",), COPIED_MS)
    run = look(cluster, in_bucket=False)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("kafkalog.remote.stores.DirectoryStore.remove", refuse)
    deleted = delete(cluster, run, keeps_undo=False)
    assert statuses(deleted) == [FAILED, FAILED, FAILED, LEFT, LEFT, LEFT]
    assert "not begun: the 3 before it failed" in deleted.results[-1].reason


@pytest.mark.parametrize(
    "deletions", [*(pytest.param(n, marks=pytest.mark.thorough) for n in (0, 1, 3)), 4]
)
def test_a_run_that_dies_is_undone_or_taken_up(
    cluster: TieredCluster, versioned: S3Server, deletions: int
) -> None:
    """After so many objects; the journal has all that is gone."""
    before = dict(versioned.objects)
    run = look(cluster, in_bucket=True)
    with killed_after(deletions):
        delete(cluster, run)
    (first,) = [path.name for path in (cluster.broker.parent / "runs").iterdir()]
    gone = before.keys() - versioned.objects.keys()
    noted = {
        each["path"].removeprefix(f"s3://{BUCKET}/")
        for event in events_of(cluster, first)
        if event["event"] == "deleting"
        for each in event["objects"]
    }
    assert len(gone) == deletions
    assert gone <= noted
    assert set(undo(cluster, first)) <= {UNDONE, NOTHING}
    assert versioned.objects == before
    # The next run deletes what is left, whatever the first one had done.
    for key in gone:
        versioned.delete(key)
    assert set(statuses(delete(cluster, look(cluster, in_bucket=True)))) <= {DELETED}
    assert len(versioned.objects) == len(before) - 5
    assert kinds(look(cluster, in_bucket=True)) == []


# -- the verb --------------------------------------------------------------------------------------


def words(cluster: TieredCluster, place: str, *more: str) -> list[str]:
    return [
        "bucket", str(cluster.broker), "--remote-dir", place,
        *(f"--remote-key={key_id}={file}" for key_id, file in KEYS.items()),
        "--topic=a-lz4", "--topic=b-txn", "--workers=1",
        f"--run-dir={cluster.broker.parent / 'runs'}", *more,
    ]  # fmt: skip


@pytest.fixture
def at_that_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_verb, "now_ms", lambda: NOW_MS)


def test_the_verb_deletes_with_apply_alone(
    cluster: TieredCluster, at_that_time: None, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(cluster.store)
    before = objects_in(cluster.store)
    assert main(words(cluster, place, "--json")) == 1
    assert json.loads(capsys.readouterr().out)["deleted"] is None
    assert objects_in(cluster.store) == before
    # Refused as a whole: nothing was done, for safety.
    assert main(words(cluster, place, "--apply")) == 3
    assert "keeps no versions" in capsys.readouterr().out
    assert main(words(cluster, place, "--apply", "--no-undo", "--json")) == 0
    out = capsys.readouterr()
    document = json.loads(out.out)
    assert [each["status"] for each in document["deleted"]["segments"]] == [DELETED, DELETED]
    assert len(objects_in(cluster.store)) == len(before) - 5
    assert main(words(cluster, place, "--apply", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["deleted"]["runId"] is None
    assert main(["undo", document["deleted"]["runId"], f"--run-dir={tmp_runs(cluster)}"]) == 3


def test_no_more_is_deleted_a_second_than_was_said(
    cluster: TieredCluster, at_that_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a deletion itself took no time."""
    before, waits = objects_in(cluster.store), list[float]()
    monkeypatch.setattr(deletion_run, "time", SimpleNamespace(monotonic=lambda: 5.0,
                                                              sleep=waits.append))  # fmt: skip
    more = ["--apply", "--no-undo", "--max-bytes-per-second=1KiB"]
    assert main(words(cluster, str(cluster.store), *more)) == 0
    gone = before.keys() - objects_in(cluster.store).keys()
    assert sorted(waits) == sorted(len(before[name]) / 1024 for name in gone)
    assert len(waits) == 5


def tmp_runs(cluster: TieredCluster) -> Path:
    return cluster.broker.parent / "runs"


def test_the_verb_undoes_and_shows_no_secret(
    cluster: TieredCluster,
    versioned: S3Server,
    at_that_time: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = dict(versioned.objects)
    assert main(words(cluster, f"s3://{BUCKET}", "--apply")) == 0
    out = capsys.readouterr()
    assert len(versioned.objects) == len(before) - 5
    (run,) = tmp_runs(cluster).iterdir()
    assert f"kafkalog undo {run.name} --run-dir {run.parent} puts them back" in out.err
    assert main(["runs", f"--run-dir={tmp_runs(cluster)}", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert (listed["kind"], listed["state"]) == (KIND, "finished")
    assert main(["undo", run.name, f"--run-dir={tmp_runs(cluster)}"]) == 0
    undone = capsys.readouterr()
    assert "b-txn-0: 2 objects are back" in undone.err
    assert versioned.objects == before
    kept = "".join(path.read_text() for path in run.iterdir())
    assert SECRET not in out.out + out.err + undone.out + undone.err + kept


def test_options_that_contradict_are_refused(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(cluster.store)
    assert main(words(cluster, place, "--apply", f"--now={NOW_MS}")) == 2
    assert "--apply goes by the clock" in capsys.readouterr().err
    assert main(words(cluster, place, "--apply", "--rebuild-metadata", "--output=x")) == 2
    assert "not both" in capsys.readouterr().err
    assert main(["bucket", str(cluster.broker), "--remote-dir", place, "--apply"]) == 2
    assert "--apply needs --topic" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_process_that_is_killed_leaves_a_journal_to_undo(
    cluster: TieredCluster, versioned: S3Server
) -> None:
    """By SIGKILL, while the third object is being deleted."""
    before = dict(versioned.objects)
    seen: list[str] = []
    program = (
        "import sys; from kafkalog.cli import bucket; from kafkalog.cli.main import main;"
        f"bucket.now_ms = lambda: {NOW_MS}; sys.exit(main(sys.argv[1:]))"
    )
    processes: queue.Queue[subprocess.Popen[bytes]] = queue.Queue()

    def kill(key: str) -> None:
        seen.append(key)
        if len(seen) == 3:
            victim = processes.get()
            victim.send_signal(signal.SIGKILL)
            victim.wait()

    versioned.before_deletion = kill
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words(cluster, f"s3://{BUCKET}", "--apply")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    processes.put(process)
    process.wait()
    assert len(seen) == 3
    (run,) = tmp_runs(cluster).iterdir()
    assert set(undo(cluster, run.name)) <= {UNDONE, NOTHING}
    assert versioned.objects == before
