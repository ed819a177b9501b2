"""Statements that are no queries: temporary views are made and dropped, views are listed and
described. Everything else is a query, or refused as one.

Source: Spark's SqlBaseParser.g4, of which these are the forms that mean something here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BEFORE = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_NAME = r"(?P<name>\w+|`[^`]+`)"
_CREATE = re.compile(
    rf"{_BEFORE}CREATE\s+(?P<replaces>OR\s+REPLACE\s+)?(?:TEMP|TEMPORARY)\s+VIEW\s+{_NAME}"
    r"\s+AS\b(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)
_DROP = re.compile(
    rf"{_BEFORE}DROP\s+VIEW\s+(?P<if_exists>IF\s+EXISTS\s+)?{_NAME}\s*", re.IGNORECASE | re.DOTALL
)
_DESCRIBE = re.compile(
    rf"{_BEFORE}DESC(?:RIBE)?\s+(?:TABLE\s+)?{_NAME}\s*", re.IGNORECASE | re.DOTALL
)
_SHOW = re.compile(rf"{_BEFORE}SHOW\s+(?:TABLES|VIEWS)\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class CreateView:
    name: str
    query: str
    replaces: bool


@dataclass(frozen=True, slots=True)
class DropView:
    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class DescribeView:
    name: str


@dataclass(frozen=True, slots=True)
class ShowViews:
    pass


@dataclass(frozen=True, slots=True)
class Query:
    text: str


Statement = CreateView | DropView | DescribeView | ShowViews | Query


def parse_statement(text: str) -> Statement:
    """What a statement is."""
    if found := _CREATE.fullmatch(text):
        return CreateView(_named(found), found["query"], found["replaces"] is not None)
    if found := _DROP.fullmatch(text):
        return DropView(_named(found), found["if_exists"] is not None)
    if found := _DESCRIBE.fullmatch(text):
        return DescribeView(_named(found))
    if _SHOW.fullmatch(text):
        return ShowViews()
    return Query(text)


def _named(found: re.Match[str]) -> str:
    return found["name"].strip("`")
