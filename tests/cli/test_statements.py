"""`--sql "a; b;"`: where one query ends and the next begins, as Spark's own lexer sees the text."""

from __future__ import annotations

import pytest

from kafkalog.cli.statements import split_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1 a; SELECT 2 b;", ["SELECT 1 a", "SELECT 2 b"]),
        ("SELECT 1;\nSELECT\n 2;\n", ["SELECT 1", "SELECT\n 2"]),
        ("SELECT 1", ["SELECT 1"]),
        ("", []),
        (" ;; \n ; SELECT 1 ;; ", ["SELECT 1"]),
        ("SELECT 'a;b'; SELECT \"c;d\"", ["SELECT 'a;b'", 'SELECT "c;d"']),
        (r"SELECT 'it\'s; so'; SELECT 2", [r"SELECT 'it\'s; so'", "SELECT 2"]),
        ("SELECT 'it''s; so'; SELECT 2", ["SELECT 'it''s; so'", "SELECT 2"]),
        (r"SELECT r'C:\'; SELECT 2", [r"SELECT r'C:\'", "SELECT 2"]),
        ("SELECT `a;b``;c` FROM t; SELECT 2", ["SELECT `a;b``;c` FROM t", "SELECT 2"]),
        ("SELECT 1 -- not; here\n; SELECT 2", ["SELECT 1 -- not; here", "SELECT 2"]),
        ("SELECT 1 -- it's\n; SELECT 2", ["SELECT 1 -- it's", "SELECT 2"]),
        ("SELECT 1 /* a;/* b; */ ; */ x; SELECT 2", ["SELECT 1 /* a;/* b; */ ; */ x", "SELECT 2"]),
        ("-- only; words\n; /* and; these */", []),
        ("-- first\nSELECT 1; -- last", ["-- first\nSELECT 1"]),
        ("SELECT 'never closed; SELECT 2", ["SELECT 'never closed; SELECT 2"]),
        ("SELECT 1 /* never; closed", ["SELECT 1 /* never; closed"]),
        ("SET a = $$x;y$$; SELECT 2", ["SET a = $$x;y$$", "SELECT 2"]),
        ("SELECT 0; BEGIN SELECT 1; SELECT 2; END", ["SELECT 0", "BEGIN SELECT 1; SELECT 2; END"]),
        ("SELECT beginning; SELECT 2", ["SELECT beginning", "SELECT 2"]),
        ("beginning; SELECT 2", ["beginning", "SELECT 2"]),
    ],
)  # fmt: skip
def test_text_falls_into_statements(text: str, statements: list[str]) -> None:
    assert list(split_statements(text)) == statements
