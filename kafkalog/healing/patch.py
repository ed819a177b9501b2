"""A patch for a host that has only its own disk: the right copies of what is wrong there, as a tar
file, not compressed, with a manifest of lengths and SHA-256 in front.

    manifest.json                 version, files: [name, bytes, SHA-256]
    N/meta.properties …           the root files of the Nth log dir
    N/T-P/00….log, .txnindex …    segments up to the last difference, and what tells of them

It is made where the right copies are and applied where the wrong ones are: unpacked it is a log dir
like others, and what is done is planned anew from what is there.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.healing.plan import HEAL, HealPlan
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.log_dir_files import CHECKPOINT_FILES
from kafkalog.resources.spilled_array import spill_directory

VERSION = 1
_MANIFEST = "manifest.json"
_MOST_MANIFEST_BYTES = 64 * 1024 * 1024
_ROOT_FILES = (META_PROPERTIES_FILE, *CHECKPOINT_FILES)
_NAME = re.compile(
    r"\d{1,6}/(?:(?:meta\.properties|[a-z-]+-checkpoint)|[A-Za-z0-9._-]{1,260}/"
    r"(?:\d{20}\.(?:log|txnindex|snapshot)|leader-epoch-checkpoint|partition\.metadata))"
)
_PIECE_BYTES = 1024 * 1024


def write_patch(plans: Sequence[HealPlan], output: str) -> int:
    """Write the patch of these plans; its bytes. InvalidConfigError where nothing is to be healed;
    OSError as from reading and writing."""
    chosen = [plan for plan in plans if plan.status == HEAL]
    if not chosen:
        reasons = "; ".join(f"{plan.topic_partition}: {plan.reason}" for plan in plans)
        raise InvalidConfigError(
            "no patch: no digest that is wrong can be put right from a copy that is here"
            + (f": {reasons}" if reasons else "")
        )
    files = _files_of(chosen)
    sizes = {name: path.stat().st_size for name, path in files.items()}
    rows = [[name, sizes[name], _sha256(path)] for name, path in files.items()]
    manifest = json.dumps({"version": VERSION, "files": rows}).encode()
    whole = Path(f"{output}.tmp")
    try:
        with tarfile.open(whole, "x:") as tar:
            info = tarfile.TarInfo(_MANIFEST)
            info.size = len(manifest)
            tar.addfile(info, io.BytesIO(manifest))
            for name, path in files.items():
                info = tarfile.TarInfo(name)
                info.size, info.mtime = sizes[name], int(path.stat().st_mtime)
                with path.open("rb") as file:
                    tar.addfile(info, file)
        whole.rename(output)
    finally:
        whole.unlink(missing_ok=True)
    return Path(output).stat().st_size


def _files_of(plans: Sequence[HealPlan]) -> dict[str, Path]:
    """What is in a patch: name → file."""
    sources = {plan.source for plan in plans}
    numbers: dict[Path, int] = {}
    found: dict[str, Path] = {}
    for source in sorted(sources):
        directory = Path(source)
        number = numbers.setdefault(directory.parent, len(numbers))
        for name in _ROOT_FILES:
            if (directory.parent / name).exists():
                found[f"{number}/{name}"] = directory.parent / name
        partition = reopen_partition(source)
        cut = max(each.cut_offset for each in plans if each.source == source)
        bases = (
            {s.base_offset for s in partition.segments if s.base_offset < cut} if partition else ()
        )
        for path in sorted(directory.iterdir()):
            name = f"{number}/{directory.name}/{path.name}"
            stem = path.name.partition(".")[0]
            is_taken = not stem.isdecimal() or int(stem) in bases or path.suffix == ".snapshot"
            if is_taken and _NAME.fullmatch(name) and path.is_file():
                found[name] = path
    return found


@contextmanager
def opened_patch(path: str) -> Iterator[list[str]]:
    """The log dirs of a patch, unpacked for as long as this lasts. CorruptRecordError for a file
    that is none, was not written to its end or was changed; OSError.
    """
    with tempfile.TemporaryDirectory(prefix="kafkalog-patch-", dir=spill_directory()) as work:
        try:
            with tarfile.open(path, "r:") as tar:
                _unpack(tar, Path(work), path)
        except (tarfile.TarError, EOFError, ValueError) as error:
            raise CorruptRecordError(f"no patch: {error}", path=path) from None
        yield [str(each) for each in sorted(Path(work).iterdir())]


def _unpack(tar: tarfile.TarFile, work: Path, path: str) -> None:
    manifest = tar.next()
    if manifest is None or manifest.name != _MANIFEST or manifest.size > _MOST_MANIFEST_BYTES:
        raise CorruptRecordError(f"no patch: it does not begin with {_MANIFEST}", path=path)
    expected = _expected(_content(tar, manifest).read(), path)
    while (member := tar.next()) is not None:
        size, digest = expected.pop(member.name, (-1, ""))
        # Names are those of files of a log dir, and nothing else: no link, no way out.
        if not (member.isreg() and _NAME.fullmatch(member.name)) or member.issparse():
            raise CorruptRecordError(f"{member.name!r} is no file of a patch", path=path)
        if member.size != size:
            raise CorruptRecordError(
                f"{member.name} has {member.size} bytes, {size} expected", path=path
            )
        target = work / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        content = _content(tar, member)
        with target.open("xb") as file:
            while piece := content.read(_PIECE_BYTES):
                file.write(piece)
        if _sha256(target) != digest:
            raise CorruptRecordError(f"SHA-256 of {member.name} is not the stored one", path=path)
    if expected:
        raise CorruptRecordError(f"{sorted(expected)[0]} is missing: it is cut", path=path)


def _expected(data: bytes, path: str) -> dict[str, tuple[int, str]]:
    values: Any = json.loads(data)
    if not isinstance(values, dict) or values.get("version") != VERSION:
        raise CorruptRecordError(f"no patch of version {VERSION}", path=path)
    try:
        return {str(name): (int(size), str(digest)) for name, size, digest in values["files"]}
    except (KeyError, TypeError) as error:
        raise CorruptRecordError(f"the manifest of the patch: {error}", path=path) from None


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Any:
    content = tar.extractfile(member)
    if content is None:
        raise tarfile.ReadError(f"{member.name!r} is no file")
    return content


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
