"""`kafkalog dump FILE…`: what is in a file of a log dir, as text or as JSON lines.

The kind of a file follows from its name, as for Kafka's DumpLogSegments, whose options have the
same names here; a directory stands for all files in it that are known, and with
`--remote-dir` the directory of a tiered partition for its segments in remote storage as well.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from kafkalog.cli.dump_decoders import DECODERS
from kafkalog.cli.dump_entries import DUMPERS
from kafkalog.cli.dump_log import dump_log, dump_remote_log
from kafkalog.cli.dump_options import BASE64, TEXT, DumpOptions
from kafkalog.cli.dump_remote import dump_remote
from kafkalog.cli.dump_small_files import SMALL_FILES, dump_small_file
from kafkalog.cli.option_values import remote_storage
from kafkalog.cli.output import ExitCode, say, write_bytes
from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.format.file_names import (
    OF_KAFKA_0_7,
    LogFileKind,
    is_of_kafka_0_7,
    parse_file_name,
)
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.log.listing import Entry, entries_in, is_directory, path_text
from kafkalog.log.metadata_records import BOOTSTRAP_FILE
from kafkalog.log.small_files import is_there
from kafkalog.remote.layouts import path_behind_manifest
from kafkalog.remote.paths import NO_REMOTE_STORAGE
from kafkalog.remote.stores import local_path

_LOGS = (LogFileKind.LOG, LogFileKind.METADATA_SNAPSHOT)


def run(args: argparse.Namespace) -> ExitCode:
    """Print the files in the order given; FINDINGS if something is wrong with one."""
    named = [*args.paths, *(name for text in args.files for name in text.split(",") if name)]
    if not named or "" in named:
        raise InvalidConfigError("dump needs a FILE, or a directory")
    if args.payload and args.format:
        raise InvalidConfigError("--payload or --format, which is its earlier name, not both")
    if args.hex and args.json:
        raise InvalidConfigError("--hex is a view for people: it goes without --json")
    options = options_of(args)
    named = [local_path(name) for name in named]
    missing = [name for name in named if not (is_there(name) or is_directory(name))]
    if missing:
        raise InvalidConfigError(f"no such file or directory: {', '.join(missing)}")
    storage = remote_storage(args) if args.remote_dir or args.remote_layout else NO_REMOTE_STORAGE
    is_wrong = False
    for name in named:
        path = Path(name)
        files = [path]
        if storage != NO_REMOTE_STORAGE:
            is_wrong = dump_remote(name, storage, options) or is_wrong
        if storage.is_tree:
            continue
        if is_directory(path):
            files = sorted(path / e.name for e in entries_in(path) if _is_known(path, e))
        if not files:
            say(f"{name}: no file in it is one of a log dir")
            is_wrong = True
        for file in files:
            is_wrong = _dump(file, options) or is_wrong
    return ExitCode.FINDINGS if is_wrong else ExitCode.DONE


def options_of(args: argparse.Namespace) -> DumpOptions:
    """What the arguments ask for; a decoder and the contents ask for records, as in Kafka."""
    decoders = [name for name in DECODERS if getattr(args, f"{name}-decoder".replace("-", "_"))]
    if len(decoders) > 1:
        raise InvalidConfigError(f"one decoder at a time: {' and '.join(decoders)} are given")
    contents = bool(args.print_data_log or decoders)
    return DumpOptions(
        as_json=args.json,
        records=contents or args.deep_iteration,
        contents=contents,
        metadata=not args.skip_record_metadata,
        binary_format=args.payload or args.format or (BASE64 if args.json else TEXT),
        redact=args.redact,
        decoder="".join(decoders),
        annotated=args.hex,
        max_bytes=args.max_bytes,
        max_batch_bytes=check_max_batch_bytes(args.max_batch_bytes),
        verify_only=args.verify_index_only,
        sanity_only=args.index_sanity_check,
        remote_keys=tuple(args.remote_key),
    )


def _is_known(directory: Path, entry: Entry) -> bool:
    name, path = entry.name, path_text(directory / entry.name)
    is_named = parse_file_name(name) is not None or name == BOOTSTRAP_FILE
    is_named = is_named or path_behind_manifest(path, ()) is not None
    return entry.is_file() and (is_named or name in SMALL_FILES)


def _dump(path: Path, options: DumpOptions) -> bool:
    if not options.as_json:
        write_bytes(f"Dumping {path_text(path)}\n".encode())
    name = parse_file_name(path.name)
    try:
        remote = path_behind_manifest(path_text(path), options.remote_keys)
        if remote is not None:
            return dump_remote_log(remote, options)
        if path.name == BOOTSTRAP_FILE or (name and name.kind in _LOGS):
            return dump_log(path, options)
        if name is not None:
            return DUMPERS[name.kind](path, name.offset, options)
        if path.name in SMALL_FILES:
            return dump_small_file(path, options)
    except (KafkaLogError, OSError) as error:
        say(str(error))
        return True
    what = f": {OF_KAFKA_0_7}" if is_of_kafka_0_7(path.name) else ""
    say(f"Ignoring unknown file {path_text(path)}{what}")
    return True
