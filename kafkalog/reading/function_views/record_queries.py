"""Views over all records or batches, as queries in DuckDB's dialect over a view of the source.

They say the same as the functions of these names in `spark.analysis`, which Spark runs over many
machines: names, types and order of columns are those of `columns.record_summaries`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """A query over some columns of a view of the source.

    sql: with `{source}` where the name of that relation goes. read_committed: the relation is
    without what was aborted or is not committed yet.
    """

    view: str
    columns: tuple[str, ...]
    sql: str
    read_committed: bool = False

    def over(self, relation: str) -> str:
        """The query over a relation of this name, quoted if it has to be."""
        return self.sql.format(source=relation)


LATEST_BY_KEY = RecordQuery(
    "records",
    ("topic", "partition", "key", "offset", "timestamp", "timestampMs", "value", "headers"),
    """
SELECT "topic", "partition", "key", unnest("latest"), "latest"."value" IS NULL AS "isTombstone"
FROM (
    SELECT "topic", "partition", "key", max_by(
        struct_pack(
            "offset" := "offset", "timestamp" := "timestamp", "timestampMs" := "timestampMs",
            "value" := "value", "headers" := "headers"
        ), "offset"
    ) AS "latest"
    FROM {source} WHERE "key" IS NOT NULL GROUP BY "topic", "partition", "key"
)
""",
    read_committed=True,
)

_MEASURED = ("topic", "key", "keySize", "valueSize", "headers")
# A row a key of a topic: how often, and the bytes of its parts.
_BY_KEY = """
    SELECT "topic", "key", count(*)::BIGINT AS "recordsCount",
        count_if("valueSize" IS NULL)::BIGINT AS "tombstonesCount",
        sum(coalesce("keySize", 0))::BIGINT AS "keyBytes",
        sum(coalesce("valueSize", 0))::BIGINT AS "valueBytes",
        sum("headerSize")::BIGINT AS "headerBytes",
        ("keyBytes" + "valueBytes" + "headerBytes")::BIGINT AS "sizeInBytes"
    FROM (
        SELECT "topic", "key", "keySize", "valueSize", coalesce(list_sum(list_transform(
            "headers", lambda h: strlen(h."key") + coalesce(octet_length(h."value"), 0)
        )), 0) AS "headerSize"
        FROM {source}
    ) GROUP BY "topic", "key"
"""

HOT_KEYS = RecordQuery(
    "records",
    _MEASURED,
    f"""
SELECT *, "sizeInBytes" / nullif(sum("sizeInBytes") OVER (PARTITION BY "topic"), 0) AS "share"
FROM ({_BY_KEY})
""",
)

KEY_STATS = RecordQuery(
    "records",
    _MEASURED,
    f"""
SELECT "topic", sum("recordsCount")::BIGINT AS "recordsCount",
    sum("tombstonesCount")::BIGINT AS "tombstonesCount", sum("keyBytes")::BIGINT AS "keyBytes",
    sum("valueBytes")::BIGINT AS "valueBytes", sum("headerBytes")::BIGINT AS "headerBytes",
    sum("sizeInBytes")::BIGINT AS "sizeInBytes", count("key")::BIGINT AS "distinctKeys",
    coalesce(list(struct_pack(
        "sizeInBytes" := "sizeInBytes", "key" := "key", "recordsCount" := "recordsCount"
    ) ORDER BY "sizeInBytes" DESC, "key" DESC NULLS LAST) FILTER ("rank" <= 10), []) AS "hotKeys"
FROM (
    SELECT *, row_number() OVER (
        PARTITION BY "topic" ORDER BY "sizeInBytes" DESC, "key" ASC NULLS LAST
    ) AS "rank" FROM ({_BY_KEY})
) GROUP BY "topic"
""",
)

GAPS = RecordQuery(
    "batches",
    ("topic", "partition", "baseOffset", "lastOffset", "recordsCount", "segmentBaseOffset", "path"),
    """
WITH "following" AS (
    SELECT "topic", "partition", "segmentBaseOffset", "baseOffset", "lastOffset", "recordsCount",
        regexp_replace("path", '/[^/]*$', '') AS "logPath",
        lag("lastOffset") OVER "log" AS "lastBefore",
        lag("segmentBaseOffset") OVER "log" AS "segmentBefore"
    FROM {source}
    WINDOW "log" AS (
        PARTITION BY "topic", "partition", regexp_replace("path", '/[^/]*$', '')
        ORDER BY "baseOffset"
    )
)
SELECT "topic", "partition", coalesce("lastBefore", -1) + 1 AS "startOffset",
    "baseOffset" AS "endOffset",
    "baseOffset" - coalesce("lastBefore", -1) - 1 AS "missingCount",
    CASE WHEN "lastBefore" IS NULL THEN 'start'
        WHEN "segmentBaseOffset" <> "segmentBefore" THEN 'segments' ELSE 'batches' END AS "place",
    "logPath" AS "path"
FROM "following"
WHERE "recordsCount" >= 0 AND "baseOffset" > coalesce("lastBefore", -1) + 1
UNION ALL
SELECT "topic", "partition", "baseOffset", "lastOffset" + 1,
    "lastOffset" - "baseOffset" + 1 - "recordsCount", 'batch', "logPath"
FROM "following"
WHERE "recordsCount" >= 0 AND "lastOffset" - "baseOffset" + 1 > "recordsCount"
""",
)
