"""How a file of a segment is named that lies behind a manifest.

All that reads segments names a file by its path. So this is a path, too, and goes wherever one goes
(plans, tasks, rows, messages); it knows besides where the bytes come from. What opens files asks
`log.storage`, which tells the two apart. Of keys it has the names of their files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# (key id, file of the private key), as `--remote-key ID=FILE` names them.
KeyFiles = tuple[tuple[str, str], ...]

# The index files of a broker by their endings, and what a manifest calls them.
PIECES = {
    ".index": "offset",
    ".timeindex": "timestamp",
    ".snapshot": "producerSnapshot",
    ".leader_epoch_checkpoint": "leaderEpoch",
    ".txnindex": "transaction",
}


@dataclass(frozen=True, slots=True)
class RemoteStorage:
    """Places with the older segments of tiered partitions, how they are laid out (None: to be
    found out), and the keys of what is encrypted there."""

    places: tuple[str, ...] = ()
    layout: str | None = None
    keys: KeyFiles = ()

    @property
    def is_tree(self) -> bool:
        """Whether what is read is remote storage itself, without the log dir of a broker."""
        return self.layout is not None and not self.places


NO_REMOTE_STORAGE = RemoteStorage()


class ManifestPath(str):
    """The path of the object `.log`, or of an index within the object `.indexes`.

    manifest: the path of the manifest. objects: what the paths of the other two begin with.
    piece: the name of an index in the manifest, None for the log. keys: files of RSA keys.
    """

    __slots__ = ("keys", "manifest", "objects", "piece")

    manifest: str
    objects: str
    piece: str | None
    keys: KeyFiles

    def __new__(
        cls, manifest: str, objects: str, keys: KeyFiles, piece: str | None = None
    ) -> ManifestPath:
        text = f"{objects}.log" if piece is None else f"{objects}.indexes#{piece}"
        path = super().__new__(cls, text)
        path.manifest, path.objects, path.keys, path.piece = manifest, objects, keys, piece
        return path

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.manifest, self.objects, self.keys, self.piece))

    @property
    def parts(self) -> list[Any]:
        """What it is made of, as JSON takes it: a text alone opens nothing."""
        return [self.manifest, self.objects, [list(key) for key in self.keys], self.piece]

    @classmethod
    def of_parts(cls, parts: Sequence[Any]) -> ManifestPath:
        """The path whose `parts` these are."""
        manifest, objects, keys, piece = parts
        return cls(manifest, objects, tuple((key_id, file) for key_id, file in keys), piece)

    def beside(self, ending: str) -> ManifestPath:
        """The file that a broker has beside the `.log` under another ending, as `.index`."""
        piece = None if ending == ".log" else PIECES[ending]
        return ManifestPath(self.manifest, self.objects, self.keys, piece)


def beside(path: str, ending: str) -> str:
    """The file beside a segment's `.log` with another ending, as `.index`."""
    if isinstance(path, ManifestPath):
        return path.beside(ending)
    return path[: path.rindex(".log")] + ending
