"""Queries by chance: expressions of each type over the columns, in all shapes of a query."""

from __future__ import annotations

import random

# Columns by type, of each table. `extreme` is compared only: sums of it overflow in both engines.
COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "records": {
        "binary": ("key", "value"),
        "string": ("topic", "cast(key AS STRING)", "cast(value AS STRING)"),
        "int": ("partition", "timestampType"),
        "bigint": ("offset",),
        "timestamp": ("timestamp",),
        "headers": ("headers",),
        "boolean": ("key IS NULL", "topic = 'orders'"),
        "double": ("offset / 7", "cast(partition AS DOUBLE)"),
        "decimal": ("offset / 4.0", "partition * 1.25"),
    },
    "batches": {
        "binary": ("X'6162'", "cast(codec AS BINARY)"),
        "string": ("topic", "codec"),
        "int": ("partition", "recordsCount", "magic", "producerEpoch"),
        "bigint": ("baseOffset", "crc", "maxTimestampMs"),
        "timestamp": ("timestamp_millis(maxTimestampMs)",),
        "boolean": ("isValid", "magic = 2"),
        "double": ("share", "part"),
        "decimal": ("recordsCount * 0.5", "crc / 1024.0"),
    },
}
UNIQUE = {"records": "offset", "batches": "baseOffset"}
TYPES = ("binary", "string", "int", "bigint", "timestamp", "boolean", "double", "decimal")
ORDERED = ("binary", "string", "int", "bigint", "timestamp", "boolean", "double")
LITERALS = {
    "binary": ("X'6B'", "X'FF'", "X''", "X'C3A9'"),
    "string": ("'k'", "'orders'", "''", "'é'", "'%'", "'z'", "'it''s'", "'12'"),
    "int": ("0", "1", "-3", "7", "100"),
    "bigint": ("5L", "3000000000", "-1L"),
    "timestamp": (
        "timestamp '2024-02-29 13:04:05.12'",
        "timestamp '1969-12-31 23:59:59'",
        "timestamp '2030-01-01'",
    ),
    "boolean": ("true", "false"),
    "double": ("1.5D", "0.0D", "2D"),
    "decimal": ("1.5", "0.25", "100.0"),
}
# {s} a string, {b} binary, {i} int, {l} bigint, {d} double, {t} timestamp, {o} boolean,
# {n} a decimal, {k} a small number.
FORMS: dict[str, tuple[str, ...]] = {
    "binary": ("cast({s} AS BINARY)", "coalesce({b}, {b})", "if({o}, {b}, {b})",
               "concat({b}, {b})", "nullif({b}, {b})", "headers[0].value"),
    "string": ("cast({b} AS STRING)", "concat({s}, {s})", "{s} || {s}", "coalesce({s}, {s})",
               "cast({i} AS STRING)", "cast({l} AS STRING)", "cast({t} AS STRING)",
               "cast({o} AS STRING)", "hex({b})", "hex({s})", "base64({b})", "md5({b})",
               "substring({s}, {k}, {k})", "trim({s})", "lpad({s}, {k}, '*')", "left({s}, {k})",
               "right({s}, {k})", "replace({s}, 'o', 'é')", "date_format({t}, 'yyyy-MM-dd')",
               "get_json_object({s}, '$.status')", "CASE WHEN {o} THEN {s} ELSE {s} END",
               "if({o}, {s}, {s})", "nvl({s}, {s})", "greatest({s}, {s})", "least({s}, {s})",
               "concat_ws('/', {s}, {s})", "repeat(topic, 2)", "upper(topic)", "lower(codec)",
               "cast({n} AS STRING)", "reverse({s})", "initcap({s})"),
    "int": ("{i} + {k}", "{i} - {i}", "{i} * {k}", "{i} % 7", "length({b})", "length({s})",
            "octet_length({s})", "year({t})", "month({t})", "day({t})", "hour({t})",
            "minute({t})", "second({t})", "dayofweek({t})", "abs({i})", "coalesce({i}, {i})",
            "instr({s}, 'o')", "cast({o} AS INT)", "-{i}", "pmod({i}, 7)", "size(headers)",
            "CASE WHEN {o} THEN {i} END", "locate('a', {s})", "~{i}", "{i} & 3", "quarter({t})",
            "cast({i} / 4 AS INT)", "weekofyear({t})", "datediff({t}, timestamp '2024-01-01')"),
    "bigint": ("{l} + {i}", "{l} - {l}", "{l} * {k}", "{l} div 3", "{l} % 10", "{i} div {k}",
               "unix_millis({t})", "unix_seconds({t})", "cast({t} AS BIGINT)",
               "cast({i} AS BIGINT)",
               "coalesce({l}, {l})", "greatest({l}, {l})", "abs({l})", "round({l}, -1)",
               "ceil({d})", "floor({n})", "if({o}, {l}, {i})"),
    "timestamp": ("date_trunc('DAY', {t})", "date_trunc('month', {t})", "date_trunc('HOUR', {t})",
                  "coalesce({t}, {t})", "timestamp_seconds({i})", "date_trunc('week', {t})",
                  "if({o}, {t}, {t})", "greatest({t}, {t})",
                  "timestamp '2024-02-29 00:00:00' + INTERVAL 90 MINUTES"),
    "boolean": ("{s} = {s}", "{b} = {b}", "{b} = {s}", "{i} < {l}", "{l} >= {i}", "{d} > {d}",
                "{t} < {t}", "{t} >= '2024-01-01'", "{s} LIKE '%o%'", "{s} LIKE 'k_'",
                "{s} RLIKE '^[a-z]+.*$'", "{s} IS NULL", "{b} IS NOT NULL", "{o} AND {o}",
                "{o} OR {o}", "NOT {o}", "{i} IN (0, 1, 7)", "{s} IN ('k', 'orders', 'é')",
                "{l} BETWEEN {i} AND {l}", "{s} <=> {s}", "{i} != {i}", "{b} <=> {b}",
                "{n} > {n}", "{n} = {i}", "{d} = {i}", "startswith({s}, 'k')", "isnan({d})",
                "{s} NOT LIKE '%z'", "{i} NOT IN (1, 2)", "{d} <= {n}", "{o} = {o}",
                "contains({s}, 'a')", "{s} NOT IN ('a', 'b')", "{s} > {s}", "{b} > {b}"),
    "double": ("{d} + {d}", "{d} * {d}", "{d} - {i}", "{i} / {k}", "{l} / 3", "{d} / 4",
               "round({d}, 2)", "abs({d})", "coalesce({d}, {d})", "cast({i} AS DOUBLE)",
               "-{d}", "sqrt(abs({d}))", "sign({d})", "if({o}, {d}, {i})", "cast({n} AS DOUBLE)",
               "cast({t} AS DOUBLE)"),
    "decimal": ("{i} * 1.5", "{i} + 0.25", "round({i} / 3.0, 2)", "{i} / 8.0", "{l} - 0.5",
                "cast({i} AS DECIMAL(12, 2))", "{i} % 2.5"),
}  # fmt: skip
LETTERS = {
    "b": "binary", "s": "string", "i": "int", "l": "bigint", "t": "timestamp", "o": "boolean",
    "d": "double", "n": "decimal",
}  # fmt: skip
AGGREGATES = (
    "count(*)", "count({any})", "count(DISTINCT {any})", "sum({i})", "sum({l})", "avg({i})",
    "min({any})", "max({any})", "count_if({o})", "every({o})", "some({o})", "sum({n})",
    "avg(part)", "sum(part)", "max(cast({b} AS STRING))", "min({s})", "count(DISTINCT {i}, {s})",
    "sum({i}) FILTER (WHERE {o})", "sort_array(collect_set({s}))", "max_by({s}, {u})",
    "min_by({b}, {u})", "sum(DISTINCT {i})", "sum({i}) / count(*)", "max({i}) - min({i})",
    "size(collect_list({i}))", "round(avg({i}), 2)", "approx_count_distinct({s})", "first({s})",
)  # fmt: skip
WINDOWS = (
    "row_number() OVER (PARTITION BY {p} ORDER BY {u})",
    "rank() OVER (ORDER BY {p})",
    "dense_rank() OVER (PARTITION BY {p} ORDER BY {i} DESC)",
    "lag({any}) OVER (PARTITION BY {p} ORDER BY {u})",
    "lead({any}, 2) OVER (ORDER BY {u})",
    "sum({i}) OVER (PARTITION BY {p} ORDER BY {u})",
    "count(*) OVER (PARTITION BY {p})",
    "max({any}) OVER (PARTITION BY {p} ORDER BY {u} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "avg({i}) OVER (ORDER BY {u} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "min({t2}) OVER (PARTITION BY {p})",
    "ntile(4) OVER (ORDER BY {u})",
)


class Generator:
    """The same seed gives the same queries."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def query(self) -> str:
        shapes = (
            self.plain, self.plain, self.grouped, self.grouped, self.windowed, self.joined,
            self.subquery, self.common, self.union, self.exploded, self.distinct,
        )  # fmt: skip
        return self.chance.choice(shapes)()

    def table(self) -> str:
        return self.chance.choice(tuple(COLUMNS))

    def expression(self, table: str, kind: str, depth: int) -> str:
        """An expression of a type; `depth` 0 is a column, seldom a literal."""
        if depth <= 0 or self.chance.random() < 0.25:
            if self.chance.random() < 0.2:
                return self.chance.choice(LITERALS[kind])
            return self.chance.choice(COLUMNS[table][kind])
        form = self.chance.choice(FORMS[kind])
        if (table == "batches" and "headers" in form) or (table == "records" and "codec" in form):
            return self.expression(table, kind, depth - 1)
        return self.filled(form, table, depth - 1)

    def filled(self, form: str, table: str, depth: int) -> str:
        out, at = "", 0
        while (start := form.find("{", at)) >= 0:
            end = form.index("}", start)
            out += form[at:start] + self.place(form[start + 1 : end], table, depth)
            at = end + 1
        return out + form[at:]

    def place(self, letter: str, table: str, depth: int) -> str:
        if letter == "k":
            return str(self.chance.randint(1, 5))
        if letter == "u":
            return UNIQUE[table]
        if letter == "p":
            return self.chance.choice(("topic", "partition"))
        if letter == "t2":
            letter = "t"
        kind = self.chance.choice(ORDERED) if letter == "any" else LETTERS[letter]
        inner = self.expression(table, kind, depth)
        return inner if inner.isidentifier() else f"({inner})"

    def items(self, table: str, count: int, depth: int = 2) -> list[str]:
        found = []
        for place in range(count):
            kind = self.chance.choice(TYPES)
            alias = f" AS x{place}" if self.chance.random() < 0.5 else ""
            found.append(self.expression(table, kind, depth) + alias)
        return found

    def where(self, table: str) -> str:
        if self.chance.random() < 0.4:
            return ""
        return f" WHERE {self.expression(table, 'boolean', 2)}"

    def order(self, table: str) -> str:
        kind = self.chance.choice(ORDERED)
        way = self.chance.choice(("", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"))
        return f" ORDER BY {self.expression(table, kind, 1)}{way}, {UNIQUE[table]}"

    def limit(self) -> str:
        return self.chance.choice(("", "", f" LIMIT {self.chance.randint(1, 9)}"))

    def plain(self) -> str:
        table = self.table()
        items = ", ".join(self.items(table, self.chance.randint(1, 4)))
        order = self.order(table)
        if order.startswith(
            (" ORDER BY 1", " ORDER BY 0", " ORDER BY 7", " ORDER BY -", " ORDER BY 5")
        ):
            order = f" ORDER BY {UNIQUE[table]}"
        return f"SELECT {items} FROM {table}{self.where(table)}{order}{self.limit()}"

    def distinct(self) -> str:
        table = self.table()
        items = ", ".join(self.items(table, self.chance.randint(1, 2), 1))
        return f"SELECT DISTINCT {items} FROM {table}{self.where(table)}"

    def aggregates(self, table: str, count: int) -> list[str]:
        found = []
        while len(found) < count:
            form = self.chance.choice(AGGREGATES)
            if table == "records" and "part)" in form:
                continue
            found.append(self.filled(form, table, 1))
        return found

    def grouped(self) -> str:
        table = self.table()
        kind = self.chance.choice(ORDERED)
        key = self.expression(table, kind, 1)
        items = ", ".join(self.aggregates(table, self.chance.randint(1, 3)))
        if kind in ("int", "bigint") and key.lstrip("-").isdigit():
            key = "topic"
        form = self.chance.randint(0, 3)
        if form == 0:
            return f"SELECT {key} AS g, {items} FROM {table}{self.where(table)} GROUP BY g"
        if form == 1:
            return f"SELECT {key}, {items} FROM {table}{self.where(table)} GROUP BY 1"
        if form == 2:
            tail = " HAVING count(*) > 1 ORDER BY n DESC, g"
            return f"SELECT {key} AS g, count(*) AS n, {items} FROM {table} GROUP BY ALL{tail}"
        return f"SELECT {items} FROM {table}{self.where(table)}"

    def windowed(self) -> str:
        table = self.table()
        found = [self.filled(self.chance.choice(WINDOWS), table, 1) for _ in range(2)]
        order = f" ORDER BY {UNIQUE[table]}"
        return f"SELECT {UNIQUE[table]}, {', '.join(found)} FROM {table}{self.where(table)}{order}"

    def joined(self) -> str:
        way = self.chance.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN",
                                  "LEFT ANTI JOIN"))  # fmt: skip
        on = self.chance.choice((
            "r.topic = b.topic AND r.partition = b.magic", "r.offset = b.baseOffset",
            "r.key = b.codec", "cast(r.key AS STRING) = b.codec AND r.offset < b.baseOffset",
            "r.topic <=> b.topic AND r.timestampType = b.producerEpoch",
        ))  # fmt: skip
        if "SEMI" in way or "ANTI" in way:
            return (
                f"SELECT r.offset, r.key FROM records r {way} batches b ON {on} ORDER BY r.offset"
            )
        items = "r.offset, b.baseOffset, cast(r.key AS STRING) AS k, b.share, r.timestamp"
        return f"SELECT {items} FROM records r {way} batches b ON {on}"

    def subquery(self) -> str:
        table = self.table()
        unique, inner = UNIQUE[table], self.items(table, 2, 1)
        inner_sql = f"SELECT {unique} AS u, {inner[0].split(' AS x')[0]} AS v FROM {table}"
        form = self.chance.randint(0, 4)
        if form == 0:
            return f"SELECT u, v FROM ({inner_sql}{self.where(table)}) AS q ORDER BY u DESC"
        if form == 1:
            return f"SELECT count(*), count(v), min(u) FROM ({inner_sql}) q WHERE v IS NOT NULL"
        if form == 2:
            return (
                f"SELECT topic, offset FROM records WHERE topic IN (SELECT topic FROM batches"
                f"{self.where('batches')}) ORDER BY offset"
            )
        if form == 3:
            return (
                "SELECT offset, (SELECT max(b.recordsCount) FROM batches b WHERE b.topic = r.topic)"
                " AS m FROM records r WHERE EXISTS (SELECT 1 FROM batches c WHERE "
                "c.partition = r.partition) ORDER BY offset"
            )
        return f"SELECT * FROM {table} WHERE {unique} = (SELECT max({unique}) FROM {table})"

    def common(self) -> str:
        table = self.table()
        unique = UNIQUE[table]
        item = self.expression(table, self.chance.choice(TYPES), 2)
        return (
            f"WITH a AS (SELECT {unique} AS u, topic, {item} AS v FROM {table}"
            f"{self.where(table)}), "
            f"b AS (SELECT topic, count(*) AS n, max(u) AS last FROM a GROUP BY topic) "
            f"SELECT a.u, a.v, b.n FROM a JOIN b USING (topic) WHERE a.u <= b.last ORDER BY a.u"
        )

    def union(self) -> str:
        word = self.chance.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "INTERSECT ALL"))
        one, two = self.chance.choice(
            (("string", "string"), ("int", "bigint"), ("bigint", "double"), ("binary", "binary"),
             ("int", "decimal"), ("timestamp", "timestamp"), ("string", "binary"))
        )  # fmt: skip
        first = self.expression("records", one, 1)
        second = self.expression("batches", two, 1)
        return f"SELECT {first} AS v FROM records {word} SELECT {second} FROM batches"

    def exploded(self) -> str:
        outer = self.chance.choice(("", "OUTER "))
        if self.chance.random() < 0.5:
            view = f"LATERAL VIEW {outer}explode(headers) t AS h"
            items = "offset, h.key, h.value, h.key = 'a' AS is_a"
        else:
            view = f"LATERAL VIEW {outer}posexplode(headers) t AS p, h"
            items = "offset, p, cast(h.value AS STRING), length(h.key)"
        return f"SELECT {items} FROM records {view}{self.where('records')}"


def queries(seed: int, count: int) -> list[str]:
    generator = Generator(seed)
    return [generator.query() for _ in range(count)]
