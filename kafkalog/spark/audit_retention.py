"""Audits on Spark: partitions read by tasks, the document put together by the driver.

A task audits some partition directories, packed so that all have about as many segments; small
results come back. The driver lists directories and reads metadata logs, so driver and executors
must see the log dirs under the same path. Every list of the document is a DataFrame as well, with
the columns that its published schema names.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kafkalog.auditing.audit_run import Executor
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.partition_audit import audit_partition
from kafkalog.auditing.request import AuditScope, AuditTask, audit_request
from kafkalog.auditing.scenarios import parse_scenarios
from kafkalog.auditing.whole import AuditOptions, whole_audit
from kafkalog.clock import now_ms
from kafkalog.errors import InvalidConfigError
from kafkalog.log.names import paths_in, values_in
from kafkalog.planning.packing import pack_evenly
from kafkalog.remote.paths import RemoteStorage
from kafkalog.report.page import render_page
from kafkalog.requests.run_request import RunOptions
from kafkalog.spark.document_types import list_schemas
from kafkalog.spark.tasks import run_pickled_packs
from kafkalog.texts import format_bytes

Tell = Callable[[str], None]

# A task has this many segments to look at, and some milliseconds of work for each.
_SEGMENTS_A_TASK = 1000


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found: `document` is that of `kafkalog audit --json`. In a notebook it shows
    itself as the page.
    """

    spark: SparkSession
    document: dict[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The lists of the document there are frames of."""
        return tuple(list_schemas())

    def frame(self, name: str) -> DataFrame:
        """A list of the document (`findings`, `segments`, `timeline` …) as a DataFrame.

        InvalidConfigError for a list it does not have.
        """
        schema = list_schemas().get(name)
        if schema is None:
            raise InvalidConfigError(f"no list {name!r}; there are {', '.join(self.names)}")
        rows = [_row(row, schema) for row in self.document.get(name) or ()]
        return self.spark.createDataFrame(rows, schema)

    def page(self) -> str:
        """The page of `--report`."""
        return render_page(self.document)

    def _repr_html_(self) -> str:
        page = html.escape(self.page(), quote=True)
        return f'<iframe srcdoc="{page}" title="Log audit" width="100%" height="900"></iframe>'


def audit(
    spark: SparkSession,
    log_dirs: Sequence[str],
    *,
    policy: str | None = None,
    capacity: Mapping[str, int] | None = None,
    keeps: bool = True,
    since: str | None = None,
    contents: bool = False,
    estimate: bool = False,
    what_if: Sequence[str] = (),
    at_ms: Sequence[int] = (),
    price_per_gib_month: float | None = None,
    remote_dirs: Sequence[str] = (),
    remote_layout: str | None = None,
    **options: Unpack[RunOptions],
) -> Audit:
    """Audit the selected partitions; the options are those of `kafkalog audit`.

    `policy`: a file; `capacity`: bytes by log dir, "" for all others; `keeps`: whether the run is
    kept in `run_dir` for later ones; `since`: the id of one of them, its directory, "last", or the
    path of a document, for the document's section `since`; `contents`, `estimate`, `what_if`,
    `price_per_gib_month` as there, `at_ms`: times to simulate for; `remote_dirs`, `remote_layout`:
    where objects of tiered topics are looked at, by the driver. Nothing below the log dirs is
    changed. Raises InvalidConfigError for paths, partitions and earlier audits that do not exist,
    settings that Kafka would refuse, and policies that make no sense.
    """
    scope = AuditScope(
        reads_records=contents,
        reads_keys=estimate,
        scenarios=parse_scenarios(values_in(what_if, str)),
        times=tuple((False, time_ms) for time_ms in values_in(at_ms, int)),
        price=price_per_gib_month,
        remote=RemoteStorage(paths_in(remote_dirs), remote_layout),
    )
    request = audit_request(log_dirs, options, scope)
    audit_options = AuditOptions(policy, capacity or {}, keeps, since=since)
    whole = whole_audit(request, audit_options, spark_executor(spark), now_ms)
    return Audit(spark, whole.document)


def spark_executor(spark: SparkSession, tell: Tell | None = None) -> Executor:
    """What turns tasks into audited partitions with Spark; see `kafkalog.auditing.audit_run`.
    `tell` gets a line for each.
    """

    def execute(tasks: Sequence[AuditTask]) -> Iterable[AuditedPartition]:
        packs = pack_evenly(
            tasks, lambda task: task.segments_to_read + 1, task_bytes=_SEGMENTS_A_TASK
        )
        text = f"audit {len(tasks)} partitions"
        audited = run_pickled_packs(spark, packs, _audit_pack, text)
        return audited if tell is None else _told(audited, tell)

    return execute


def _told(audited: Iterable[AuditedPartition], tell: Tell) -> Iterator[AuditedPartition]:
    for each in audited:
        read = f"{len(each.segments)} segments, {format_bytes(each.size_in_bytes)} audited"
        tell(f"{each.name}: {read}")
        yield each


def _audit_pack(tasks: Sequence[AuditTask]) -> Iterator[AuditedPartition]:
    return map(audit_partition, tasks)


def _row(values: dict[str, Any], schema: StructType) -> tuple[Any, ...]:
    """A row's values in the order of its columns; structs within as tuples, too."""
    found = []
    for field in schema.fields:
        value = values.get(field.name)
        if isinstance(field.dataType, StructType) and value is not None:
            value = _row(value, field.dataType)
        found.append(value)
    return tuple(found)
