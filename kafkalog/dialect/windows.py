"""Window functions: ranking, neighbours, and aggregates OVER (…)."""

from __future__ import annotations

from sqlglot import exp

from kafkalog.dialect.aggregates import build
from kafkalog.dialect.casts import cast
from kafkalog.dialect.errors import QueryError, only, refusal
from kafkalog.dialect.scope import Context, handles, is_aggregate
from kafkalog.dialect.typed import Typed, computed
from kafkalog.dialect.types import DOUBLE, INT, SqlType, common_type

_RANKS: dict[str, tuple[SqlType, str]] = {
    "row_number": (INT, "row_number()"),
    "rank": (INT, "RANK()"),
    "dense_rank": (INT, "DENSE_RANK()"),
    "percent_rank": (DOUBLE, "PERCENT_RANK()"),
    "cume_dist": (DOUBLE, "cume_dist()"),
}
WINDOW_FUNCTIONS = (*_RANKS, "ntile", "lag", "lead")
_TO_HERE = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_RANGE_TO_HERE = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


@handles(exp.Window)
def window(context: Context, node: exp.Window) -> Typed:
    """A call with OVER."""
    only(node, "this", "partition_by", "order", "spec", "over")
    if not context.allows_windows:
        raise QueryError("a window function may stand in SELECT and ORDER BY only")
    if node.args.get("over") != "OVER":
        raise refusal(f"{node.args.get('over')} of a window")
    keys = [context.compile(part) for part in node.args.get("partition_by") or []]
    order = node.args.get("order")
    orders = [ordered(context, part) for part in (order.expressions if order else [])]
    parts, shown = [], []
    if keys:
        parts.append(f"PARTITION BY {', '.join(key.sql for key in keys)}")
        shown.append(f"PARTITION BY {', '.join(key.label for key in keys)}")
    if orders:
        parts.append(f"ORDER BY {', '.join(sql for sql, _ in orders)}")
        shown.append(f"ORDER BY {', '.join(label for _, label in orders)}")
    spec = node.args.get("spec")
    call = node.this
    if is_aggregate(call):
        return _aggregate(context, call, parts, shown, _frame(spec, bool(orders)))
    if not isinstance(call, exp.Anonymous):
        raise refusal(f"{type(call).__name__.upper()} in a window")
    if spec is not None:
        raise refusal(f"a frame of {call.this}()")
    if not orders:
        raise QueryError(f"{call.this}() needs ORDER BY in its window")
    return _function(context, call, parts, shown)


def ordered(context: Context, node: exp.Ordered) -> tuple[str, str]:
    """A part of ORDER BY, and Spark's name for it."""
    only(node, "this", "desc", "nulls_first")
    item = context.compile(node.this)
    if not item.type.is_plain:
        raise refusal(f"ORDER BY of {item.type}")
    way = direction(node)
    return f"{item.sql} {way}", f"{item.label} {way}"


def direction(node: exp.Ordered) -> str:
    way = "DESC" if node.args.get("desc") else "ASC"
    return f"{way} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


def _frame(spec: exp.Expression | None, has_order: bool) -> tuple[str, str]:
    if spec is None:
        # The default of both engines: with an order up to the current row and its peers, without
        # one all of the partition.
        if has_order:
            return _RANGE_TO_HERE, _RANGE_TO_HERE
        text = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        return text, text
    only(spec, "kind", "start", "start_side", "end", "end_side")
    kind = str(spec.args["kind"]).upper()
    start = _bound(kind, spec.args.get("start"), spec.args.get("start_side"))
    end = _bound(kind, spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    text = f"{kind} BETWEEN {start} AND {end}"
    return text, text


def _bound(kind: str, value: object, side: object) -> str:
    if value == "CURRENT ROW":
        return "CURRENT ROW"
    if value == "UNBOUNDED":
        return f"UNBOUNDED {str(side).upper()}"
    if kind == "ROWS" and isinstance(value, exp.Literal) and value.this.isdigit():
        return f"{value.this} {str(side).upper()}"
    raise refusal(f"this frame of a window ({kind})")


def _over(parts: list[str]) -> str:
    return f"OVER ({' '.join(parts)})"


def _aggregate(
    context: Context,
    call: exp.Expression,
    parts: list[str],
    shown: list[str],
    frame: tuple[str, str],
) -> Typed:
    test = None
    if isinstance(call, exp.Filter):
        test, call = call.expression.this, call.this
    if not isinstance(call, exp.Anonymous):
        raise refusal("this window")
    calls, value, type_, is_bytes, label = build(context, call, test)
    if "DISTINCT" in label:
        raise QueryError("DISTINCT is not possible in a window")
    if test is not None:
        raise refusal("FILTER in a window")
    over = _over([*parts, frame[0]])
    sql = value.format(*(f"({one} {over})" for one in calls))
    return computed(sql, type_, f"{label} {_over([*shown, frame[1]])}", is_bytes=is_bytes)


def _function(context: Context, call: exp.Anonymous, parts: list[str], shown: list[str]) -> Typed:
    name = str(call.this).lower()
    if name in _RANKS:
        if call.expressions:
            raise refusal(f"{name}() with arguments")
        type_, label = _RANKS[name]
        sql = f"({name}() {_over(parts)})"
        sql = f"CAST({sql} AS INTEGER)" if type_ == INT else sql
        frame = _RANGE_TO_HERE if name == "cume_dist" else _TO_HERE
        return computed(sql, type_, f"{label} {_over([*shown, frame])}")
    if name == "ntile":
        count = context.compile(call.expressions[0])
        if not isinstance(count.value, int) or count.value <= 0:
            raise refusal("ntile() of this form")
        sql = f"CAST(ntile({count.sql}) {_over(parts)} AS INTEGER)"
        return computed(sql, INT, f"ntile({count.label}) {_over([*shown, _TO_HERE])}")
    if name in {"lag", "lead"}:
        return _neighbour(context, call, name, parts, shown)
    raise refusal(f"{call.this}() in a window")


def _neighbour(
    context: Context, call: exp.Anonymous, name: str, parts: list[str], shown: list[str]
) -> Typed:
    given = [context.compile(argument) for argument in call.expressions]
    if not 1 <= len(given) <= 3 or (len(given) > 1 and not isinstance(given[1].value, int)):
        raise refusal(f"{name}() of this form")
    item = given[0]
    step = given[1].value if len(given) > 1 else 1
    if not isinstance(step, int) or step < 0:
        raise refusal(f"{name}() by {given[1].label}")
    other, other_label = "", "NULL"
    if len(given) == 3:
        if common_type(item.type, given[2].type) != item.type or item.is_bytes:
            raise refusal(f"{name}() of {item.type} with {given[2].type}")
        other, other_label = f", {cast(given[2], item.type).sql}", given[2].label
    row = f"{-step if name == 'lag' else step} FOLLOWING"
    label = f"{name}({item.label}, {step}, {other_label})"
    frame = f"ROWS BETWEEN {row} AND {row}"
    sql = f"({name}({item.sql}, {step}{other}) {_over(parts)})"
    return computed(sql, item.type, f"{label} {_over([*shown, frame])}", is_bytes=item.is_bytes)
