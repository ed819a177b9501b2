"""The floors of the house, as a table. A module may import downward only.

Stop and think before editing this table: a new entry in a right-hand column is a decision about
the design, not a fix for a red test. Usually the thing you want to import belongs on a lower floor,
or your code belongs on a higher one. (The idea is Kafka's own import-control file.)
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "kafkalog"


@dataclass(frozen=True)
class Floor:
    """What one package may touch: own packages, outside libraries, and what else is barred."""

    own: frozenset[str]
    outside: frozenset[str]
    barred_stdlib: frozenset[str] = frozenset()
    barred_calls: frozenset[str] = frozenset()


FILES = frozenset({"open", "io.open"})
INPUT_OUTPUT = frozenset({"io", "os", "pathlib", "shutil", "socket", "subprocess", "tempfile"})


def floor(own: str, outside: str = "", **barred: frozenset[str]) -> Floor:
    return Floor(frozenset(own.split()), frozenset(outside.split()), **barred)


LOWER = (
    "errors clock texts html code_digest options format kernels native batches messages columns "
    "payloads remote log cluster planning zookeeper reading runs"
)
CHANGING = "resources replicas requests cleaning swap repair operations"

FLOORS: dict[str, Floor] = {
    "errors": floor("", barred_stdlib=INPUT_OUTPUT),
    "clock": floor("", barred_stdlib=INPUT_OUTPUT),
    "texts": floor("", barred_stdlib=INPUT_OUTPUT),
    "code_digest": floor("errors"),
    # What a notebook shows of the values above.
    "html": floor("", "jinja2"),
    "options": floor("", barred_stdlib=INPUT_OUTPUT),
    "format": floor("errors", "numpy", barred_calls=FILES),
    "kernels": floor(
        "format.constants format.record_batch", "llvmlite numba numpy", barred_calls=FILES
    ),
    # What is reached by address, and what does its work where it is not there.
    "native": floor(
        "format kernels.jit kernels.big_endian kernels.single_blocks kernels.join_checksums "
        "kernels.check_records kernels.status",
        "llvmlite numpy",
        barred_calls=FILES,
    ),
    "batches": floor("errors format kernels native", "numpy", barred_calls=FILES),
    "messages": floor("errors format", barred_calls=FILES),
    "columns": floor("errors format messages batches", "numpy pyarrow", barred_calls=FILES),
    # What is in keys and values, by schemas: libraries of the formats, and nothing of logs.
    "payloads": floor("errors format columns", "pyarrow fastavro google"),
    # Objects of remote storage: where they lie, how they are laid out and decoded.
    "remote": floor("errors format", "Crypto obstore"),
    "log": floor(
        "errors options texts html format kernels native batches messages remote", "numpy"
    ),
    # What the metadata log tells over time: plain rows.
    "cluster": floor("errors format messages log"),
    "planning": floor(
        "errors texts html format.constants format.topics log.cluster_settings log.inventory "
        "log.header_facts log.topic_partition",
        barred_stdlib=INPUT_OUTPUT | {"time"},
        barred_calls=FILES,
    ),
    # A dead ZooKeeper's tree, and what it says of the clusters; of `log` their facts only.
    "zookeeper": floor("errors format log.cluster_settings log.small_files"),
    "reading": floor(
        "errors clock options format kernels batches messages columns payloads remote log cluster "
        "planning zookeeper",
        "numpy pyarrow",
    ),
    # SQL in this process; what it reads, the readers above read.
    "dialect": floor("errors", "pyarrow sqlglot", barred_stdlib=INPUT_OUTPUT),
    "duckdb": floor(
        "errors columns payloads.topic_table dialect log.names reading", "pyarrow duckdb"
    ),
    "resources": floor("errors code_digest format texts", "numpy"),
    # Copies of a partition: whose each is, and where it ends.
    "replicas": floor("errors format kernels batches log", "numpy"),
    "requests": floor(f"{LOWER} resources replicas"),
    "cleaning": floor(f"{LOWER} resources", "numpy pyarrow"),
    # The one room that changes a log dir.
    "swap": floor(f"{LOWER} resources requests cleaning", "numpy"),
    "repair": floor(f"{LOWER} resources requests cleaning swap", "numpy"),
    "operations": floor(f"{LOWER} resources requests cleaning swap repair", "numpy"),
    # Where runs are kept: nothing of what they did.
    "runs": floor("errors"),
    # They look and never change: none of them may know what writes.
    "checking": floor(f"{LOWER} resources requests cleaning", "numpy"),
    "comparing": floor(f"{LOWER} resources replicas checking", "numpy"),
    # What a comparison found, put right.
    "healing": floor(f"{LOWER} {CHANGING} checking comparing", "numpy"),
    "contents": floor(f"{LOWER} resources cleaning checking", "numpy pyarrow"),
    # Topics back from segments, and metadata made anew for disks that lost theirs.
    "restoring": floor(f"{LOWER} {CHANGING} checking comparing contents bucket", "numpy pyarrow"),
    "bucket": floor(f"{LOWER} resources requests cleaning swap checking"),
    "auditing": floor(
        f"{LOWER} resources requests cleaning checking contents", "numpy pyarrow yaml jsonschema"
    ),
    # One screen in a second: nothing that loads kernels or Arrow.
    "overview": floor(
        "errors format messages log.topic_partition log.small_files log.log_dir_files "
        "log.index_tail log.lock_holder log.cluster_settings log.metadata_names log.metadata_state "
        "log.listing log.wrong_directory checking.finding_kind checking.checkpoint_problems "
        "auditing.audit_kinds auditing.thresholds",
    ),
    "report": floor("errors texts auditing", "jinja2 markupsafe squarify"),
    "spark": floor(
        f"{LOWER} {CHANGING} checking comparing bucket healing restoring auditing report",
        "numpy pyarrow pyspark py4j",
    ),
    "cli": floor(
        f"{LOWER} {CHANGING} checking comparing bucket healing restoring auditing overview report "
        "duckdb",
        "numpy pyarrow tqdm prompt_toolkit argcomplete",
    ),
    # The package's front door: the public names, each imported when it is first asked for.
    "__init__": floor(f"{LOWER} {CHANGING} auditing duckdb", "pyarrow"),
    # For notebooks.
    "plots": floor("errors log reading", "numpy pyarrow matplotlib"),
    # The frame of jobs/: a verb in a Spark session.
    "job": floor("cli spark", "pyspark"),
    # The verb whose engine may be a session.
    "query": floor("cli query_on_spark"),
    "query_on_spark": floor("errors cli spark job", "pyarrow pyspark"),
    "__main__": floor("cli"),
}

# The one module that reads the clock; `time.monotonic`, for how long something takes, anybody may.
CLOCK_READER = "clock"
CLOCK = re.compile(
    r"\btime\.(time|time_ns|localtime|gmtime|ctime|asctime|strftime|clock_gettime\w*)\b"
    r"|\bdatetime\.(now|utcnow|today)\b|\bdate\.today\b|\bos\.times\b"
    r"|\bfrom time import (?!monotonic\b|sleep\b|perf_counter\b)"
    # Spark's, DuckDB's and the page's
    r"|\b(current_(date|time|timestamp)|localtimestamp|unix_timestamp|get_current_timestamp)\("
    r"|\bF\.now\(|\bDate\.now\b|\bnew Date\(\)|\bperformance\.timeOrigin\b"
)
# The shell's, in the script that swaps by hand.
SHELL_CLOCK = re.compile(r"(^|[;&|(`]\s*)date\b|\bEPOCH(SECONDS|REALTIME)\b|%\([^)]*\)T", re.M)

# One module alone may know these libraries.
ONLY_IN = {
    "cramjam": "format.compression",
    "lz4": "format.compression",
    "zstandard": "format.compression",
    "gzip": "format.compression",
    "zlib": "format.compression",
    "google_crc32c": "format.checksum",
    "Crypto": "remote.keys",
    "obstore": "remote.buckets",
    "ctypes": "native.functions",
    "tqdm": "cli.progress",
    # Memory of no file, there: a mapped file that a broker truncates kills the process.
    "mmap": "log.pace",
}
# crc32: of batches. What Spark's tasks are sent travels compressed. Which lz4 it is whose functions
# are called by address. What loads kernels. The signal that ends a worker with its driver.
SHARED_BY = {
    "obstore": {"remote.bucket_client"},
    "zlib": {"auditing.packed_text", "format.checksum", "spark.tasks"},
    "lz4": {"native.codec_functions"},
    "ctypes": {"native.calls", "kernels.loading", "resources.process_pool"},
}


@dataclass(frozen=True)
class Import:
    """One imported name and the line it is on."""

    name: str
    line: int


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def other_sources() -> list[Path]:
    """The package's pages and scripts."""
    return sorted(p for p in PACKAGE.rglob("*") if p.suffix in {".html", ".js", ".sh"})


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).glob("*.py"))


def dotted(path: Path) -> str:
    """`kafkalog/format/varint.py` → `format.varint`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def imports(tree: ast.AST) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            # `from kafkalog.log import inventory` imports kafkalog.log.inventory.
            base = node.module or ""
            if base.split(".")[0] == "kafkalog":
                yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield Import(base, node.lineno)


def calls(tree: ast.AST) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            # `datetime.datetime.now(...)` counts as `datetime.now`.
            yield Import(".".join(ast.unparse(node.func).split(".")[-2:]), node.lineno)


def allowed_own(target: str, allowed: frozenset[str]) -> bool:
    """`target` is `room.module.name`; an allowed entry names a room or one module of it."""
    return any(target == entry or target.startswith(f"{entry}.") for entry in allowed)


def violations(module: str, source: str) -> list[str]:
    """What `module` (dotted, without `kafkalog.`) does against the table, a sentence each."""
    room = module.split(".")[0]
    if room not in FLOORS:
        return [f"the room {room!r} is not in the table"]
    rules = FLOORS[room]
    tree = ast.parse(source)
    found = []
    for item in imports(tree):
        top, _, rest = item.name.partition(".")
        if top == "kafkalog":
            own_room = rest.split(".")[0]
            is_package_fact = own_room.startswith("__")
            if own_room != room and not is_package_fact and not allowed_own(rest, rules.own):
                found.append(f"line {item.line}: imports {item.name}")
        elif top in ONLY_IN:
            if module != ONLY_IN[top] and module not in SHARED_BY.get(top, set()):
                found.append(f"line {item.line}: imports {top} (only in {ONLY_IN[top]})")
        elif top in sys.stdlib_module_names:
            if top in rules.barred_stdlib:
                found.append(f"line {item.line}: imports {top}")
        elif top not in rules.outside and item.name not in rules.outside:
            found.append(f"line {item.line}: imports {item.name}")
    found += [
        f"line {call.line}: calls {call.name}"
        for call in calls(tree)
        if call.name in rules.barred_calls
    ]
    if module != CLOCK_READER:
        found += clock_reads(source)
    return found


def clock_reads(source: str, pattern: re.Pattern[str] = CLOCK) -> list[str]:
    """Where the source of a module, page or script asks for the time of day, a sentence each."""
    return [
        f"line {source.count(chr(10), 0, match.start()) + 1}: asks for the time ({match.group()})"
        for match in pattern.finditer(source)
    ]


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_module_imports_downward_only(path: Path) -> None:
    assert violations(dotted(path), path.read_text(encoding="utf-8")) == []


def test_addresses_of_memory_stay_in_one_room() -> None:
    address = re.compile(r"\.ctypes\b|\b__array_interface__\b|\baddressof\b|\bfrom_address\b")
    users = {dotted(p).split(".")[0] for p in modules() if address.search(p.read_text("utf-8"))}
    assert users == {"native"}


@pytest.mark.parametrize("path", other_sources(), ids=lambda p: p.name)
def test_pages_and_scripts_do_not_ask_for_the_time(path: Path) -> None:
    pattern = SHELL_CLOCK if path.suffix == ".sh" else CLOCK
    assert clock_reads(path.read_text(encoding="utf-8"), pattern) == []


@pytest.mark.parametrize("line", ["now=$(date +%s)", "echo $EPOCHSECONDS", "x; date -u"])
def test_a_clock_of_the_shell_is_found(line: str) -> None:
    assert clock_reads(line, SHELL_CLOCK)


@pytest.mark.parametrize("path", python_files("tests/support/reference"), ids=lambda p: p.stem)
def test_reference_never_imports_what_it_judges(path: Path) -> None:
    barred = (
        "kafkalog.kernels",
        "kafkalog.batches",
        "kafkalog.cleaning",
        "kafkalog.planning",
        "kafkalog.swap",
        "kafkalog.repair",
        "kafkalog.operations",
    )
    names = [item.name for item in imports(ast.parse(path.read_text(encoding="utf-8")))]
    assert [name for name in names if name.startswith(barred)] == []


@pytest.mark.parametrize("path", python_files("jobs"), ids=lambda p: p.stem)
def test_job_is_an_envelope(path: Path) -> None:
    """Jobs use the frame and two faces: `kafkalog.spark`, and the verbs of `kafkalog.cli` and
    `kafkalog.query`."""
    names = [item.name for item in imports(ast.parse(path.read_text(encoding="utf-8")))]
    ours = ("job", "spark", "cli", "query", "errors")
    allowed = (*(f"kafkalog.{name}" for name in ours), "pyspark")
    outside = [n for n in names if not n.startswith(allowed)]
    assert [n for n in outside if n.split(".")[0] not in sys.stdlib_module_names] == []
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 90


@pytest.mark.parametrize(
    ("module", "source", "broken"),
    [
        ("format.varint", "import pyarrow", "imports pyarrow"),
        (
            "format.varint",
            "import zstandard",
            "imports zstandard (only in format.compression)",
        ),
        (
            "format.varint",
            "from kafkalog.kernels import varints",
            "imports kafkalog.kernels.varints",
        ),
        ("format.varint", "def f():\n    return open('x')", "calls open"),
        ("planning.compaction", "import os", "imports os"),
        (
            "planning.compaction",
            "from kafkalog.log import log_dir",
            "imports kafkalog.log.log_dir",
        ),
        ("cleaning.rewrite", "import time\ntime.time()", "asks for the time (time.time)"),
        ("cli.salvage", "import time\nclock = time.time_ns", "asks for the time (time.time_ns)"),
        ("reading.at_rest", "from time import time", "asks for the time (from time import"),
        ("checking.run", "import datetime\ndatetime.datetime.now()", "asks for the time (datetime"),
        ("spark.groups", "F.current_timestamp()", "asks for the time (current_timestamp("),
        ("cleaning.rewrite", "import pyspark.sql", "imports pyspark.sql"),
        (
            "cli.compact",
            "from kafkalog.spark import compact",
            "imports kafkalog.spark.compact",
        ),
        ("log.storage", "import mmap", "imports mmap (only in log.pace"),
        ("attic.old", "import os", "the room 'attic' is not in the table"),
    ],
)
def test_table_catches_a_wrong_import(module: str, source: str, broken: str) -> None:
    assert [v for v in violations(module, source) if broken in v], violations(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("format.compression", "import zstandard"),
        ("planning.compaction", "from kafkalog.log.inventory import SegmentInfo"),
        ("spark.source", "from pyspark.sql.datasource import DataSource"),
        ("log.log_dir", "from kafkalog.format import checkpoints\nimport os"),
        ("cli.verify", "import time\nstarted = time.monotonic()\ntime.sleep(1)"),
        ("clock", "import time\ntime.time_ns()"),
    ],
)
def test_table_lets_a_right_import_pass(module: str, source: str) -> None:
    assert violations(module, source) == []
