"""The Python API: records as a stream of Arrow batches, other views as an Arrow table. No Spark, no
JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath

import pyarrow as pa

from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.log.named_partitions import NamedOffsets, offsets_in
from kafkalog.log.names import names_in, paths_in, values_in
from kafkalog.reading.conditions import EVERYTHING, RowFilter
from kafkalog.reading.request import ReadMode, ReadRequest, read_mode
from kafkalog.reading.scan import first_range, open_paths, plan_scan, read_task
from kafkalog.reading.selection import EARLIEST, LATEST, PartitionSelection, is_all_replicas
from kafkalog.reading.view_reader import ScanNeeds
from kafkalog.reading.views import default_columns, select_columns, view_named
from kafkalog.remote.cache import check_cache_bytes, tell_cache_bytes
from kafkalog.remote.paths import NO_REMOTE_STORAGE, KeyFiles
from kafkalog.remote.scans_in_turn import in_turn

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


def read_records(
    path: Paths,
    *,
    columns: str | Sequence[str] | None = None,
    topics: str | Iterable[str] | None = None,
    starting_offsets: str | NamedOffsets = EARLIEST,
    ending_offsets: str | NamedOffsets = LATEST,
    starting_timestamp: int | None = None,
    ending_timestamp: int | None = None,
    keys: bytes | Iterable[bytes] | None = None,
    read_committed: bool = False,
    mode: str = ReadMode.FAILFAST,
    verify_checksums: bool = True,
    include_control: bool = False,
    remote_dirs: str | Sequence[str] = (),
    remote_layout: str | None = None,
    remote_keys: Mapping[str, str] | None = None,
    remote_cache_bytes: int | None = None,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    replicas: str | None = None,
    fail_on_data_loss: bool = True,
    key_filter_dir: str | PathLike[str] | None = None,
) -> pa.RecordBatchReader:
    """Records below `path` (a log dir, partition directory, `.log` file, glob, or several of them),
    as a stream.

    `columns` are those of view `records` (see `columns.schemas`); only they are decoded. Offsets
    are from the start (included) to the end (excluded); timestamps (ms) stand for the first record
    at or above them, as a broker looks it up. With `keys` only records of those keys come, with
    `read_committed` none of aborted or open transactions, with `include_control` control records.
    Of tiered partitions the segments below `remote_dirs` (`log.remote_segments`) come first;
    `remote_layout` says how they are laid out (`remote.layouts`; default: found out by looking),
    and without `remote_dirs` that `path` itself is remote storage, read without a log dir;
    `remote_keys` has the files of RSA keys by their ids, for encrypted ones. This process keeps
    `remote_cache_bytes` of it at most, and fetches no more than that ahead (default what
    KAFKALOG_REMOTE_CACHE_BYTES says, or 64 MiB).
    A batch of more than `max_batch_bytes`, stored or decompressed, is not read, as `mode` has it.
    A partition that is there more than once, as replicas of several brokers are, is refused unless
    `replicas` is "all".
    Offsets that are proven to be missing (`log.missing_ranges`) end a read that wants them, unless
    `mode` or `fail_on_data_loss` say that what is there is wanted.
    With `key_filter_dir` a read of `keys` keeps there which keys closed segments can hold, and
    leaves out what an earlier one found to hold none of them (`reading.key_search`).
    A log may be larger than memory: iterate, or take `.read_all()` for a table.

    Raises InvalidConfigError for names that are not there, OffsetOutOfRangeError for a starting
    offset that the log does not have, and while iterating CorruptRecordError and its kin (mode
    FAILFAST) or LogChangedError when somebody rewrites the log meanwhile.
    """
    selection = replace(
        _selection(topics, replicas, fail_on_data_loss=fail_on_data_loss),
        starting_offsets=offsets_in(starting_offsets),
        ending_offsets=offsets_in(ending_offsets),
        starting_timestamp=starting_timestamp,
        ending_timestamp=ending_timestamp,
        read_committed=read_committed,
        remote_dirs=paths_in(remote_dirs),
        remote_layout=remote_layout,
        remote_keys=_key_files(remote_keys),
    )
    wanted_keys = None if keys is None else frozenset(values_in(keys, bytes))
    return _stream(
        "records",
        path,
        selection,
        columns=columns,
        mode=read_mode(mode),
        verify_checksums=verify_checksums,
        include_control=include_control,
        row_filter=RowFilter(keys=wanted_keys),
        max_batch_bytes=max_batch_bytes,
        remote_cache_bytes=remote_cache_bytes,
        key_filter_dir=None if key_filter_dir is None else fspath(key_filter_dir),
    )


def read_batches(
    path: Paths,
    *,
    columns: str | Sequence[str] | None = None,
    topics: str | Iterable[str] | None = None,
    mode: str = ReadMode.FAILFAST,
    verify_checksums: bool = False,
    remote_dirs: str | Sequence[str] = (),
    remote_layout: str | None = None,
    remote_keys: Mapping[str, str] | None = None,
    remote_cache_bytes: int | None = None,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    replicas: str | None = None,
    fail_on_data_loss: bool = True,
) -> pa.Table:
    """Batch headers below `path` as a table, one row a batch, control batches included; nothing is
    decompressed.

    `isValid` is null unless `verify_checksums`. Of remote storage as for `read_records`, and raises
    as that does.
    """
    selection = replace(
        _selection(topics, replicas, fail_on_data_loss=fail_on_data_loss),
        remote_dirs=paths_in(remote_dirs),
        remote_layout=remote_layout,
        remote_keys=_key_files(remote_keys),
    )
    return _stream(
        "batches",
        path,
        selection,
        columns=columns,
        mode=read_mode(mode),
        verify_checksums=verify_checksums,
        max_batch_bytes=max_batch_bytes,
        remote_cache_bytes=remote_cache_bytes,
    ).read_all()


def read_view(
    view: str,
    path: Paths,
    *,
    columns: str | Sequence[str] | None = None,
    topics: str | Iterable[str] | None = None,
    mode: str = ReadMode.FAILFAST,
    remote_dirs: str | Sequence[str] = (),
    remote_layout: str | None = None,
    remote_keys: Mapping[str, str] | None = None,
    remote_cache_bytes: int | None = None,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    replicas: str | None = None,
    fail_on_data_loss: bool = True,
) -> pa.Table:
    """A view of `reading.views` as a table: segments, partitions, offset_index, time_index,
    transaction_index, producer_snapshot, leader_epochs, checkpoints … Of remote storage as for
    `read_records`; InvalidConfigError for a view that has none.

    Raises as `read_records`; a file that cannot be read is CorruptIndexError, CorruptSnapshotError
    or CorruptCheckpointError.
    """
    selection = replace(
        _selection(topics, replicas, fail_on_data_loss=fail_on_data_loss),
        remote_dirs=paths_in(remote_dirs),
        remote_layout=remote_layout,
        remote_keys=_key_files(remote_keys),
    )
    if selection.remote != NO_REMOTE_STORAGE and "remoteDir" not in view_named(view).options:
        raise InvalidConfigError(
            f"view '{view}' reads what is on the disk: it has no remote_dirs, and no remote_layout"
        )
    return _stream(
        view,
        path,
        selection,
        columns=columns,
        mode=read_mode(mode),
        verify_checksums=view_named(view).checks_checksums,
        max_batch_bytes=max_batch_bytes,
        remote_cache_bytes=remote_cache_bytes,
    ).read_all()


def _selection(
    topics: str | Iterable[str] | None, replicas: str | None, *, fail_on_data_loss: bool
) -> PartitionSelection:
    """What all three functions can be asked for."""
    return PartitionSelection(
        topics=None if topics is None else frozenset(names_in(topics)),
        all_replicas=is_all_replicas(replicas),
        fail_on_data_loss=fail_on_data_loss,
    )


def _key_files(keys: Mapping[str, str] | None) -> KeyFiles:
    return tuple((key_id, fspath(file)) for key_id, file in (keys or {}).items())


def _stream(
    view: str,
    path: Paths,
    selection: PartitionSelection,
    *,
    columns: str | Sequence[str] | None,
    mode: ReadMode,
    verify_checksums: bool,
    max_batch_bytes: int,
    remote_cache_bytes: int | None,
    include_control: bool = False,
    row_filter: RowFilter = EVERYTHING,
    key_filter_dir: str | None = None,
) -> pa.RecordBatchReader:
    permissive = mode == ReadMode.PERMISSIVE
    names = names_in(columns) if columns is not None else default_columns(view)
    if permissive and "error" not in names:
        names = (*names, "error")
    request = ReadRequest.of(
        select_columns(view, names, with_error=permissive),
        mode=mode,
        verify_checksums=verify_checksums,
        include_control=include_control,
        row_filter=row_filter,
        max_batch_bytes=check_max_batch_bytes(max_batch_bytes),
        remote_cache_bytes=check_cache_bytes(remote_cache_bytes),
        key_filter_dir=key_filter_dir,
    )
    selection = replace(selection, bears_damage=mode != ReadMode.FAILFAST)
    tell_cache_bytes(request.remote_cache_bytes)  # the plan reads indexes
    inventory, named_paths = open_paths(paths_in(path), selection)
    tasks = plan_scan(view, inventory, selection.naming(named_paths), ScanNeeds.of(request))
    batches = (batch for task in in_turn(tasks, first_range) for batch in read_task(task, request))
    return pa.RecordBatchReader.from_batches(request.schema, batches)
