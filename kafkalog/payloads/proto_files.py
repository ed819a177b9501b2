"""The text of a `.proto` file → a descriptor set, by Google's compiler (`grpcio-tools` has it).

It runs as a process of its own: it writes what is wrong to its stderr, and reads files.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from kafkalog.errors import InvalidConfigError

_MAIN = "kafkalog_schema.proto"
_SECONDS = 60


def descriptor_set(text: str, imports: Mapping[str, str]) -> bytes:
    """A descriptor set whose last file is this text's, with all that it imports: `imports` by
    their names, and Google's own types. InvalidConfigError with the compiler's words for what is
    no such file, and without the compiler."""
    if find_spec("grpc_tools") is None:
        raise InvalidConfigError(
            "schemas of Protobuf need Google's compiler: pip install 'kafkalog[registry]'"
        )
    with tempfile.TemporaryDirectory(prefix="kafkalog-proto-") as folder:
        for name, content in {**imports, _MAIN: text}.items():
            _write(Path(folder), name, content)
        out = Path(folder, "set")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
        command += [f"--descriptor_set_out={out}", _MAIN]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise InvalidConfigError(f"the compiler took more than {_SECONDS} s") from None
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["no word of why"]
            raise InvalidConfigError(f"not Protobuf: {said[0].removeprefix(_MAIN + ':')}")
        return out.read_bytes()


def _write(folder: Path, name: str, content: str) -> None:
    """Names come from a log: none may lead out of the folder."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\0" in name:
        raise InvalidConfigError(f"a schema imports {name!r}, which is no name of a file")
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
