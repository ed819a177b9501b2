"""What a store said of its objects, which is not asked for again by each question about them."""

from __future__ import annotations

import threading
from collections import OrderedDict

from kafkalog.remote.stores import StoredObject

# Some 300 bytes each.
_MOST = 65_536


class SeenObjects:
    """Objects as they were when somebody listed or looked; the oldest go. Threads may share it."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, StoredObject] = OrderedDict()
        # Directories of which all objects are among these.
        self._listed: set[str] = set()
        self._lock = threading.Lock()

    def note(self, stored: StoredObject) -> StoredObject:
        with self._lock:
            self._seen[stored.path] = stored
            self._seen.move_to_end(stored.path)
            if len(self._seen) > _MOST:
                oldest, _ = self._seen.popitem(last=False)
                self._listed.discard(oldest.rpartition("/")[0])
        return stored

    def note_listed(self, directory: str, objects_count: int) -> None:
        """All objects that are directly below a directory have been noted."""
        with self._lock:
            if objects_count < _MOST:
                self._listed.add(directory.rstrip("/"))

    def recall(self, path: str) -> StoredObject | None:
        """None where nobody looked; FileNotFoundError where its directory was listed without it."""
        with self._lock:
            known = self._seen.get(path)
            is_absent = known is None and path.rpartition("/")[0] in self._listed
        if is_absent:
            raise FileNotFoundError(2, "no such object", path)
        return known

    def forget(self, path: str) -> None:
        with self._lock:
            self._seen.pop(path, None)
            self._listed.discard(path.rpartition("/")[0])
