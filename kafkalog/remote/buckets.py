"""Objects in buckets, by obstore: S3, GCS, Azure, and WebDAV over HTTP.

Credentials, endpoints and regions come from where each cloud's own tools look (environment, roles,
metadata services); a URI that holds some is refused, for URIs are shown in plans, rows and
messages. What a store says goes into errors without the query of its URLs, which may be signed.

A read names the ETag of the object that was looked at, so one that was replaced meanwhile is a
change, and never half of each. That is why what was listed or looked at once is not asked for
again by each question about the same segment: only the read itself has to go to the store.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import uuid
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from kafkalog.errors import InvalidConfigError, LogChangedError, RemoteStorageError
from kafkalog.remote.bucket_client import open_client
from kafkalog.remote.seen_objects import SeenObjects
from kafkalog.remote.stores import Listing, StoredObject

if TYPE_CHECKING:
    from obstore import ObjectMeta

SCHEMES = ("s3", "gs", "az", "http", "https")

_INSTALL = "buckets need obstore: pip install 'obstore>=0.11,<0.13'"
_QUERY = re.compile(r"\?[^\s\"')]*")
_ONE_REQUEST_BYTES, _PART_BYTES = 64 * 1024 * 1024, 16 * 1024 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BucketStore:
    """One bucket; its objects are named by whole URIs."""

    def __init__(self, root: str) -> None:
        """`root`: scheme and bucket. InvalidConfigError where obstore is not installed or does not
        take it."""
        try:
            import obstore
        except ImportError:
            raise InvalidConfigError(_INSTALL) from None
        self._obstore = obstore
        self._root = root
        self._seen = SeenObjects()
        self._lock = threading.Lock()
        # Whether what is deleted is kept; None as long as nobody asked.
        self._keeps_versions: bool | None = True if root.startswith("s3://") else None
        try:
            self._store = open_client(root)
        except obstore.exceptions.BaseError as error:
            raise InvalidConfigError(_said(error), path=root) from None

    def list_directory(self, path: str) -> Listing:
        try:
            found = self._obstore.list_with_delimiter(self._store, self._key(path) or None)
        except self._obstore.exceptions.BaseError as error:
            self._raise(error, path, "it cannot be listed")
        objects = [self._stored(meta) for meta in found["objects"]]
        self._seen.note_listed(path, len(objects))
        return Listing(
            tuple(prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"]),
            {stored.path.rpartition("/")[2]: stored for stored in objects},
        )

    def look(self, path: str) -> StoredObject:
        try:
            return self._stored(self._obstore.head(self._store, self._key(path)))
        except self._obstore.exceptions.BaseError as error:
            self._seen.forget(path)
            self._raise(error, path, "it cannot be looked at")

    def recall(self, path: str) -> StoredObject:
        return self._seen.recall(path) or self.look(path)

    def read(self, known: StoredObject, start: int, length: int) -> bytes:
        return bytes(self.view(known, start, length))

    def view(self, known: StoredObject, start: int, length: int) -> memoryview:
        end = min(start + length, known.size)
        if start >= end:
            return memoryview(b"")
        options: Any = {"range": (start, end)}
        if known.tag:
            options["if_match"] = known.tag
        try:
            found = self._obstore.get(self._store, self._key(known.path), options=options)
            # Not every store heeds If-Match.
            if known.tag and _tag(found.meta) != known.tag:
                raise self._obstore.exceptions.PreconditionError
            return memoryview(found.bytes())
        except self._obstore.exceptions.BaseError as error:
            self._seen.forget(known.path)
            self._raise(error, known.path, f"bytes {start} to {end - 1} cannot be read", start)

    def look_at_version(self, path: str) -> tuple[StoredObject, str]:
        try:
            found = self._obstore.head(self._store, self._key(path))
        except self._obstore.exceptions.BaseError as error:
            self._raise(error, path, "it cannot be looked at")
        # "null" is the version of an object from before versions were kept: where they are not kept
        # any more it goes with its object.
        version = found["version"]
        return self._stored(found), "" if version in (None, "null") else str(version)

    def keeps_versions(self, directory: str) -> bool:
        with self._lock:
            known = self._keeps_versions
        if known is not None:
            return known
        # GCS numbers objects whether it keeps them or not, and Azure goes on doing so: an object of
        # no bytes that is deleted again tells, and nothing less does that this client can ask for.
        path = f"{directory.rstrip('/')}/kafkalog-{uuid.uuid4().hex}.probe"
        try:
            self._obstore.put(self._store, self._key(path), b"", mode="create", use_multipart=False)
        except self._obstore.exceptions.BaseError as error:
            self._raise(error, path, "nothing can be written here, so nothing could be put back")
        _, version_id = self.look_at_version(path)
        self.remove(path)
        keeps = bool(version_id) and self.has_version(path, version_id)
        with self._lock:
            self._keeps_versions = keeps
        return keeps

    def has_version(self, path: str, version_id: str) -> bool:
        options: Any = {"version": version_id, "head": True}
        try:
            self._obstore.get(self._store, self._key(path), options=options)
        except (FileNotFoundError, self._obstore.exceptions.NotFoundError):
            return False
        except self._obstore.exceptions.BaseError as error:
            self._raise(error, path, f"version {version_id} cannot be looked at")
        return True

    def remove(self, path: str) -> None:
        self._seen.forget(path)
        try:
            self._obstore.delete(self._store, self._key(path))
        except self._obstore.exceptions.BaseError as error:
            self._raise(error, path, "it cannot be deleted")

    def put_back(self, path: str, version_id: str) -> None:
        key, options = self._key(path), {"version": version_id}
        self._seen.forget(path)
        try:
            found = self._obstore.get(self._store, key, options=options)  # type: ignore[arg-type]
            # One request, which the store refuses where an object is there again, up to a size that
            # may be held in memory.
            if found.meta["size"] <= _ONE_REQUEST_BYTES:
                data = bytes(found.bytes())
                self._obstore.put(self._store, key, data, mode="create", use_multipart=False)
            else:
                self._put_parts(key, version_id, found.meta["size"])
        except self._obstore.exceptions.AlreadyExistsError:
            raise FileExistsError(17, "an object is there again", path) from None
        except self._obstore.exceptions.BaseError as error:
            self._raise(error, path, f"version {version_id} cannot be put back")

    def _put_parts(self, key: str, version_id: str, size: int) -> None:
        writer = self._obstore.open_writer(self._store, key, buffer_size=_PART_BYTES)
        for start in range(0, size, _PART_BYTES):
            options: Any = {"version": version_id, "range": (start, min(start + _PART_BYTES, size))}
            writer.write(self._obstore.get(self._store, key, options=options).bytes())
        # Only here: what is not closed never becomes an object, and half of one must not.
        writer.close()

    def _key(self, path: str) -> str:
        return path.removeprefix(self._root).strip("/")

    def _stored(self, meta: ObjectMeta) -> StoredObject:
        tag = _tag(meta)
        digest = hashlib.blake2b((tag or str(meta["last_modified"])).encode(), digest_size=8)
        microseconds = (meta["last_modified"] - _EPOCH) // timedelta(microseconds=1)
        stored = StoredObject(
            f"{self._root}/{meta['path']}",
            meta["size"],
            microseconds * 1000,
            int.from_bytes(digest.digest()) >> 1,
            tag,
        )
        return self._seen.note(stored)

    def _raise(
        self, error: Exception, path: str, what: str, position: int | None = None
    ) -> NoReturn:
        known = self._obstore.exceptions
        if isinstance(error, known.NotFoundError):
            raise FileNotFoundError(2, "no such object", path) from None
        if isinstance(error, known.PreconditionError):
            raise LogChangedError(
                f"{what}: the object was replaced during the read", path=path, position=position
            ) from None
        raise RemoteStorageError(f"{what}: {_said(error)}", path=path, position=position) from None


@lru_cache(maxsize=64)
def _bucket(root: str, _process: int) -> BucketStore:
    """A client a process: its threads do not come with a fork."""
    return BucketStore(root)


def bucket_of(uri: str) -> BucketStore:
    """The bucket in which an object lies; InvalidConfigError for a URI that is none, or has
    credentials in it."""
    parts = urlsplit(uri)
    if parts.scheme not in SCHEMES or not parts.netloc:
        raise InvalidConfigError(f"a URI of {', '.join(SCHEMES)} names a bucket", path=parts.scheme)
    if "@" in parts.netloc or parts.query:
        raise InvalidConfigError(
            "credentials do not belong into a URI, which is shown in plans and rows: set them as"
            " the cloud's own tools take them",
            path=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
        )
    return _bucket(f"{parts.scheme}://{parts.netloc}", os.getpid())


def _tag(meta: ObjectMeta) -> str:
    """The ETag in quotes: Azure's lists leave them out, its answers do not."""
    tag = meta["e_tag"] or ""
    return tag if not tag or tag.endswith('"') else f'"{tag}"'


def _said(error: Exception) -> str:
    """The first line of what a store said, without the queries of URLs."""
    text = str(error).strip().splitlines()
    return _QUERY.sub("?…", text[0])[:400] if text else type(error).__name__
