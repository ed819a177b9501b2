"""Spark's syntax, read by sqlglot so that nothing is lost: each call keeps the name it was written
with, each number its suffix, each CAST its kind."""

from __future__ import annotations

import logging
from typing import Any, ClassVar, cast

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from kafkalog.dialect.errors import QueryError, refusal

# What sqlglot would take for a command it does not know, with a warning on stderr.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


class SparkText(Spark):
    """sqlglot's Spark without what it does to calls and literals on the way."""

    class Tokenizer(Spark.Tokenizer):
        NUMERIC_LITERALS: ClassVar = {}
        # A doubled quote is one, as in Spark 4.
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    class Parser(SparkParser):
        # Emptied, so that each call stays a call under the name that was written: sqlglot knows
        # many functions under other names, and a rule here is for a name of Spark's.
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }
        FUNCTION_PARSERS: ClassVar = {
            **{name: SparkParser.FUNCTION_PARSERS[name] for name in ("TRIM", "SUBSTRING")},
            "EXTRACT": lambda self: _extract(self),
            "POSITION": lambda self: _position(self),
            "CAST": lambda self: _marked(self._parse_cast(True)),
            "TRY_CAST": lambda self: _marked(self._parse_cast(False, safe=True)),
        }

        def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
            # sqlglot takes a first `offset` for the clause OFFSET, which cannot stand there.
            group = self._curr if not skip_group_by_token else None
            if group and group.token_type is TokenType.GROUP_BY:
                after = self._next
                if after and after.token_type is TokenType.OFFSET:
                    after.token_type = TokenType.VAR
            return super()._parse_group(skip_group_by_token)


def _marked(node: exp.Expression) -> exp.Expression:
    """A cast that stands in the text, unlike the one that sqlglot makes of `DATE '…'`."""
    node.meta["written"] = True
    return node


def _extract(parser: Parser) -> exp.Expression:
    """The field keeps its letters: it is part of the column's name."""
    field = parser._parse_var()
    parser._match(TokenType.FROM)
    return exp.Extract(this=field, expression=parser._parse_bitwise())


def _position(parser: Parser) -> exp.Expression:
    first = parser._parse_bitwise()
    if parser._match(TokenType.IN):
        return exp.StrPosition(this=parser._parse_bitwise(), substr=first)
    arguments = [first]
    while parser._match(TokenType.COMMA):
        arguments.append(parser._parse_bitwise())
    return exp.Anonymous(this="position", expressions=arguments)


def parse(query: str) -> exp.Expression:
    """The tree of one query."""
    if "|>" in query:
        raise refusal("the pipe syntax |>")
    try:
        trees = [tree for tree in sqlglot.parse(query, read=SparkText) if tree is not None]
    except ParseError as error:
        raise QueryError(_syntax_error(error, query)) from None
    except TokenError as error:
        raise QueryError(f"syntax error: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise QueryError("the query nests too deeply") from None
    if len(trees) != 1:
        raise QueryError(f"one query is expected, {len(trees)} were found")
    return cast(exp.Expression, trees[0])


def _syntax_error(error: ParseError, query: str) -> str:
    first = error.errors[0]
    line, end, found = first["line"], first["col"], first["highlight"] or ""
    column = max(1, end - len(found) + 1)
    text = query.splitlines()[line - 1 : line]
    shown = f"\n  {text[0]}\n  {' ' * (column - 1)}^" if text else ""
    what = str(first["description"]).split(" for <class")[0]
    return f"syntax error at line {line}, column {column}, near {found!r}: {what}{shown}"
