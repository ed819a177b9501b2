"""Record what a shell script does to a tree, as `recording.py` does for this process.

The tools by which a script changes files, or syncs them, are others on its PATH: each hands its
words over and waits. Here the real one is run, and the tree is compared before and after; what the
shell itself wrote by a redirection is found the same way. So a sync that the script forgets is not
in the trace.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.operations.faults.forgetful_disk import (
    DIRECTORY,
    Dressed,
    Names,
    Resized,
    State,
    SyncedAll,
    SyncedDirectory,
    SyncedFile,
    Trace,
    Written,
)
from tests.operations.faults.recording import tree_of

TOOLS = ("mv", "rm", "ln", "cp", "touch", "chmod", "chown")
_HAND_OVER = """#!/bin/sh
printf '%s\\0' $# "$PWD" {tool} "$@" >{place}/asked
read -r code <{place}/answered
exit "$code"
"""


def tools_that_do_not_sync(place: Path) -> str:
    """A PATH on which `sync` does nothing: for runs whose trace is not wanted."""
    place.mkdir(exist_ok=True)
    sync = place / "sync"
    sync.write_text("#!/bin/sh\n")
    sync.chmod(0o755)
    return f"{place}:{os.environ['PATH']}"


class _ShellRecorder:
    """The trace so far, and the tree as it was at its end."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._now = tree_of(root)
        self.trace = Trace(self._now.copy())
        # An inode whose file is gone must not come back as another's number.
        self._open = [os.open(root / "/".join(name), os.O_RDONLY) for name in self._files()]

    def _files(self) -> list[tuple[str, str]]:
        return [name for name, inode in self._now.names.items() if inode != DIRECTORY]

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)

    def compare(self) -> None:
        """Whatever has changed since the last time, as events."""
        before, found = self._now, tree_of(self._root)
        self._now = found
        self._note_names(before, found)
        for inode in dict.fromkeys(found.names[name] for name in self._files()):
            if found.data[inode] != before.data.get(inode, b""):
                if before.data.get(inode):
                    self.trace.events.append(Resized(inode, 0))
                self.trace.events.append(Written(inode, 0, found.data[inode]))
            if found.looks[inode] != before.looks.get(inode):
                self.trace.events.append(Dressed(inode, found.looks[inode]))

    def _note_names(self, before: State, found: State) -> None:
        """A name that goes while its file gets another in the same directory is a rename."""
        gone = {name: inode for name, inode in before.names.items() if name not in found.names}
        for (directory, name), inode in found.names.items():
            if before.names.get((directory, name)) == inode:
                continue
            if inode != DIRECTORY and inode not in before.data:
                self._open.append(os.open(self._root / directory / name, os.O_RDONLY))
                self.trace.start.looks[inode] = found.looks[inode]
            old = next((n for n, i in gone.items() if i == inode and n[0] == directory), None)
            if old is not None:
                del gone[old]
            went = () if old is None else ((old[1], inode),)
            self.trace.events.append(Names(directory, ((name, inode),), went))
        for (directory, name), inode in gone.items():
            self.trace.events.append(Names(directory, gone=((name, inode),)))

    def synced(self, place: str, words: Sequence[str]) -> None:
        """`sync` writes everything, or the files and directories it is given."""
        paths = [os.path.realpath(os.path.join(place, w)) for w in words if w != "--"]  # noqa: PTH118
        if not paths:
            self.trace.events.append(SyncedAll())
        for path in paths:
            if Path(path).is_dir():
                below = os.path.relpath(path, self._root)
                self.trace.events.append(SyncedDirectory("" if below == "." else below))
            else:
                self.trace.events.append(SyncedFile(os.lstat(path).st_ino))

    def asked(self, place: str, tool: str, words: Sequence[str]) -> int:
        """Do what the script asks for; the exit code."""
        self.compare()
        if tool == "sync":
            self.synced(place, words)
            return 0
        done = subprocess.run(
            [str(shutil.which(tool)), *words], cwd=place, capture_output=True, check=False
        )
        self.compare()
        return done.returncode


def recorded_script(root: Path, command: Sequence[str], place: Path) -> Trace:
    """The trace of what a script does below `root`; it must go well. `place`: for its tools."""
    root = root.resolve()
    place.mkdir()
    for name in ("asked", "answered"):
        os.mkfifo(place / name)
    for tool in (*TOOLS, "sync"):
        (place / tool).write_text(_HAND_OVER.format(tool=tool, place=place))
        (place / tool).chmod(0o755)
    recorder = _ShellRecorder(root)
    asked, answered = (os.open(place / name, os.O_RDWR) for name in ("asked", "answered"))
    waiting = b""
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
    try:
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as script:
            while script.poll() is None:
                if not select.select([asked], [], [], 0.02)[0]:
                    continue
                waiting += os.read(asked, 65536)
                words = waiting.decode().split("\0")[:-1]
                if not words or len(words) < int(words[0]) + 3:
                    continue  # the rest is on its way
                waiting = b""
                os.write(answered, b"%d\n" % recorder.asked(words[1], words[2], words[3:]))
            assert script.stdout is not None
            assert script.returncode == 0, script.stdout.read()
        recorder.compare()
    finally:
        os.close(asked)
        os.close(answered)
        recorder.close()
        shutil.rmtree(place)
    return recorder.trace
