"""The part of a run of `attach` that changes log dirs: directory after directory, each verified and
noted in the journal; what a run that died has left is resolved first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.errors import KafkaLogError, LogChangedError, describe_error, fault_text
from kafkalog.format.file_names import LogFileKind
from kafkalog.log.metadata_names import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.log.metadata_records import read_snapshot_records
from kafkalog.operations.run_steps import Tell
from kafkalog.planning.statuses import FAILED
from kafkalog.requests.run_request import RunOptions, run_request
from kafkalog.restoring.metadata_place import MetadataPlace, replace_files
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.journal import ATTACH, RunJournal, begin_journal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.replacement import Replacement

ATTACHED = "attached"


@dataclass(frozen=True, slots=True)
class AttachResult:
    """What became of one directory: `attached` or `failed`, and why."""

    path: str
    log_dir: str
    status: str
    reason: str = ""
    fault: str = ""
    replaced: Replacement | None = None


def write_places(
    places: Sequence[MetadataPlace],
    run_id: str,
    log_dirs: Sequence[str],
    options: RunOptions,
    files: LocalFiles,
    tell: Tell,
    resolved: Sequence[str] = (),
) -> tuple[list[AttachResult], list[str]]:
    """Results in order, and problems of the journal. One place after the other; after one that
    failed nothing more is begun. The caller holds the locks of these log dirs.

    LogCleaningRefusedError where no journal can be kept: then nothing was changed.
    """
    journal = begin_journal(run_request(log_dirs, options), run_id, ATTACH, log_dirs)
    journal.resolved(resolved)
    journal.planned((each.name, each.path, each.log_dir, 0) for each in places)
    results: list[AttachResult] = []
    for place in places:
        result = _write(place, journal, files)
        results.append(result)
        journal.ended(place.name, place.path, result.status, result.reason, result.replaced)
        tell(f"{place.path}: {result.status}{': ' * bool(result.reason)}{result.reason}")
        if result.status == FAILED:
            break
    journal.settled()
    journal.finish(results)
    return results, journal.problems


def _write(place: MetadataPlace, journal: RunJournal, files: LocalFiles) -> AttachResult:
    result = AttachResult(place.path, place.log_dir, ATTACHED)
    try:
        replaced = replace_files(place, journal.run_id, files, keeps_undo=journal.keeps_undo)
        _verify(place)
        return replace(result, replaced=replaced)
    except Exception as error:
        reason = describe_error(error, place.path)
        return replace(result, status=FAILED, reason=reason, fault=fault_text(error))


def _verify(place: MetadataPlace) -> None:
    """LogChangedError unless what lies there is what was to be written, and a reader takes what is
    metadata."""
    for name, data in place.writes.items():
        path = Path(place.path, name)
        try:
            if path.read_bytes() != data:
                raise LogChangedError("is not what was written", path=str(path))
            if name == BOOTSTRAP_FILE or name.endswith(LogFileKind.METADATA_SNAPSHOT):
                read_snapshot_records(path)
        except KafkaLogError as error:
            raise LogChangedError(f"cannot be read back: {error}", path=str(path)) from None


def resolve_left(log_dirs: Sequence[str], files: LocalFiles) -> Iterator[str]:
    """What a run that died has left of metadata is resolved; what was done."""
    for log_dir in log_dirs:
        for directory in (log_dir, str(Path(log_dir, METADATA_DIR))):
            if Path(directory).is_dir():
                for line in resolve_interrupted_swap(directory, files):
                    yield f"{directory}: {line}"
