"""A cluster's metadata written anew beside its brokers' disks: `attach --in-place`.

    bootstrap.checkpoint                     the same in every log dir: a controller whose metadata
                                             log is empty begins with it
    __cluster_metadata-0/0-0.checkpoint      of a dynamic quorum, on each voter: who the voters are
    __cluster_metadata-0/N-1.checkpoint      of Kafka 3: all of it once more, with the voters
    __cluster_metadata-0/…                   what was left of the old log gets out of the way

In Kafka 3 a broker may take a log that has nothing but its leader's first record for all there is,
and rename every partition to -stray (seen on 3.9.1: MetadataBatchLoader.resetToImage says that it
has seen a record when it has not). A snapshot it reads before anything else.

First every bootstrap.checkpoint, then what is left of metadata logs, node by node: until its own
part of that is done a node is as it was before, and where the quorum was lost it elects nobody.
What is replaced has a second name and a record beside it, as in any run (see `swap.replacement`),
so that `undo` puts it back, and a run that died is resolved by the next one.

Source: Kafka KafkaRaftServer, BootstrapDirectory; KIP-853.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from kafkalog.errors import (
    LogCleaningRefusedError,
)
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.metadata_names import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.log.metadata_records import has_metadata_records
from kafkalog.messages.metadata_snapshot import pack_metadata_snapshot
from kafkalog.operations.run_steps import Tell, lock_log_dirs
from kafkalog.requests.run_request import RunOptions
from kafkalog.restoring.attach_facts import (
    KAFKA_4_LEVEL,
    METADATA_VERSION,
    AttachFacts,
    AttachPlan,
)
from kafkalog.restoring.attach_plan import plan_attach
from kafkalog.restoring.attach_records import (
    check_values,
    metadata_values,
    quorum_records,
    record_counts,
)
from kafkalog.restoring.disks import Disks, read_disks
from kafkalog.restoring.left_metadata import (
    LeftMetadata,
    feature_levels_of,
    read_left_metadata,
)
from kafkalog.restoring.metadata_place import FIRST_SNAPSHOT, MetadataPlace, snapshot_name
from kafkalog.restoring.place_run import ATTACHED, AttachResult, resolve_left, write_places
from kafkalog.restoring.quorum import (
    Voter,
    given_voters,
    metadata_dir,
    metadata_dirs,
    recorded_voters,
)
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.local_files import LocalFiles


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """What to attach: the log dirs of all nodes that are there. feature_levels: what the cluster
    had, where no disk tells; controllers: the voters of a dynamic quorum, ID@HOST:PORT each.
    """

    log_dirs: tuple[str, ...]
    now_ms: int
    feature_levels: dict[str, int] = field(default_factory=dict)
    controllers: tuple[str, ...] = ()
    force: frozenset[str] = frozenset()
    run_dir: str | None = None
    keeps_undo: bool = True
    max_batch_bytes: int = MAX_BATCH_BYTES


@dataclass(frozen=True, slots=True)
class AttachRun:
    """What was planned, and with `applied` done. records: how many of each type are written;
    voters: empty where the quorum is static; moved_aside: metadata directories of which files are;
    run_dir: where the run is kept, None by default.
    """

    run_id: str
    applied: bool
    plan: AttachPlan
    records: dict[str, int]
    voters: tuple[Voter, ...]
    moved_aside: tuple[str, ...]
    results: tuple[AttachResult, ...] = ()
    resolved: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    keeps_undo: bool = True
    run_dir: str | None = None

    @property
    def faults(self) -> tuple[str, ...]:
        """Tracebacks of faults of ours."""
        return tuple(f"{each.path}: {each.fault}" for each in self.results if each.fault)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A plan, and what each directory gets for it."""

    run: AttachRun
    places: tuple[MetadataPlace, ...]


def plan_attach_run(request: AttachRequest) -> AttachRun:
    """A dry run. InvalidConfigError for what is given wrongly."""
    return _prepare(request, new_run_id()).run


def attach_run(request: AttachRequest, tell: Tell, files: LocalFiles | None = None) -> AttachRun:
    """Plan and carry out, holding the lock of every log dir.

    LogDirLockedError if a log dir is locked, LogCleaningRefusedError for a plan with refusals, or
    where no journal can be kept: then nothing was changed.
    """
    files, run_id = files or LocalFiles(), new_run_id()
    dirs = read_disks(request.log_dirs, request.max_batch_bytes)
    log_dirs = [each.path for each in dirs.dirs]
    with lock_log_dirs(log_dirs, [copy.path for copy in dirs.copies]):
        resolved = tuple(resolve_left(log_dirs, files))
        prepared = _prepare(request, run_id)
        plan = prepared.run.plan
        if plan.refusals:
            raise LogCleaningRefusedError("; ".join(plan.refusals))
        results, problems = write_places(
            prepared.places, run_id, log_dirs, _options(request), files, tell, resolved
        )
    return replace(
        prepared.run, applied=True, results=tuple(results), resolved=resolved,
        problems=tuple(problems), keeps_undo=request.keeps_undo, run_dir=request.run_dir,
    )  # fmt: skip


def _options(request: AttachRequest) -> RunOptions:
    return {
        "now_ms": request.now_ms, "force": sorted(request.force), "run_dir": request.run_dir,
        "no_undo": not request.keeps_undo,
    }  # fmt: skip


def _prepare(request: AttachRequest, run_id: str) -> _Prepared:
    disks = read_disks(request.log_dirs, request.max_batch_bytes)
    left = read_left_metadata(disks.inventory)
    places = [Path(each.path, METADATA_DIR) for each in disks.dirs if each.has_metadata]
    with_records = [str(path) for path in places if has_metadata_records(path)]
    levels, source = _feature_levels(request, disks)
    plan = plan_attach(AttachFacts(disks, left, levels, source, with_records, request.force))
    voters = _voters(request, disks, left)
    values: list[bytes] = []
    if plan.feature_levels.get(METADATA_VERSION):
        values = metadata_values(plan, left, disks.dirs)
        check_values(values, plan)
    is_kafka_3 = 0 < plan.feature_levels.get(METADATA_VERSION, 0) < KAFKA_4_LEVEL
    made = tuple(_places(request, disks, values, voters, is_kafka_3=is_kafka_3))
    aside = tuple(each.path for each in made if each.removes)
    run = AttachRun(
        run_id, applied=False, plan=plan, records=record_counts(values), voters=tuple(voters),
        moved_aside=aside,
    )  # fmt: skip
    return _Prepared(run, made)


def _feature_levels(request: AttachRequest, disks: Disks) -> tuple[dict[str, int], str]:
    """The levels that are given, over those of a bootstrap.checkpoint; and who says so."""
    found: dict[str, int] = {}
    source = ""
    for each in disks.dirs:
        path = Path(each.path, BOOTSTRAP_FILE)
        with suppress(FileNotFoundError):
            levels = feature_levels_of(path)
            if levels.get(METADATA_VERSION, 0) > found.get(METADATA_VERSION, 0):
                found, source = levels, str(path)
    if request.feature_levels:
        return {**found, **request.feature_levels}, "--feature"
    return found, source


def _voters(request: AttachRequest, disks: Disks, left: LeftMetadata | None) -> list[Voter]:
    if request.controllers:
        return given_voters(request.controllers, disks.dirs)
    return recorded_voters(left.voters) if left is not None and left.voters else []


def _places(
    request: AttachRequest,
    disks: Disks,
    values: Sequence[bytes],
    voters: Sequence[Voter],
    *,
    is_kafka_3: bool,
) -> Iterator[MetadataPlace]:
    """Every bootstrap.checkpoint first, then the metadata directories."""
    bootstrap = pack_metadata_snapshot(values, request.now_ms)
    for each in disks.dirs:
        yield MetadataPlace(each.path, each.path, {BOOTSTRAP_FILE: bootstrap})
    controls = quorum_records(voters) if voters else ()
    if is_kafka_3:
        data = pack_metadata_snapshot(values, request.now_ms, controls, contained_ms=request.now_ms)
        writes = {snapshot_name(len(values), 1): data}
        written = {each.path: writes for each in metadata_dirs(disks.dirs, voters)}
    else:
        first = pack_metadata_snapshot((), request.now_ms, controls, contained_ms=request.now_ms)
        nodes = set(disks.nodes)
        written = {
            metadata_dir(each.node_id, disks.dirs, each.directory_id).path: {FIRST_SNAPSHOT: first}
            for each in voters
            if each.node_id in nodes
        }
    for each in disks.dirs:
        if each.has_metadata or each.path in written:
            directory = str(Path(each.path, METADATA_DIR))
            yield MetadataPlace(directory, each.path, written.get(each.path, {}))


def is_whole(run: AttachRun) -> bool:
    """Whether all directories of an applied run are attached."""
    return bool(run.results) and all(each.status == ATTACHED for each in run.results)
