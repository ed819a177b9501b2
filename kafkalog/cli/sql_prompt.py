"""The prompt of `kafkalog sql` on a terminal: statements that end with a semicolon, with a history
that is kept and names that are completed. Ctrl-C ends a query or drops what is written, Ctrl-D ends
the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from kafkalog.cli.statements import split_statements

_PROMPT = "sql> "
_GOES_ON = "...> "
_LEAVE = frozenset({"exit", "quit", "\\q"})
_WORD = re.compile(r"\w+")
_KEYWORDS = (
    "AND", "AS", "BETWEEN", "BY", "CASE", "CAST", "COUNT", "CREATE", "DESC", "DESCRIBE", "DISTINCT",
    "ELSE", "END", "FROM", "GROUP", "HAVING", "IN", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT",
    "NULL", "ON", "OR", "ORDER", "SELECT", "SHOW", "SUM", "TABLES", "TEMPORARY", "THEN", "UNION",
    "USING", "VIEW", "WHEN", "WHERE", "WITH",
)  # fmt: skip


def prompted_statements(
    schemas: Callable[[], Mapping[str, pa.Schema]], history_file: Path
) -> Iterator[str]:
    """The statements that somebody writes, one after the other. KeyboardInterrupt is theirs who
    run a statement; here it drops what is written.
    """
    session: PromptSession[str] = PromptSession(
        history=_history(history_file),
        completer=NameCompleter(schemas),
        complete_while_typing=False,
        key_bindings=_bindings(),
        multiline=True,
        prompt_continuation=_GOES_ON,
    )
    while True:
        try:
            text = session.prompt(_PROMPT)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        for statement in split_statements(text):
            if statement.lower() in _LEAVE:
                return
            yield statement


class NameCompleter(Completer):
    """Views, and the columns of those that the statement names; keywords last."""

    def __init__(self, schemas: Callable[[], Mapping[str, pa.Schema]]) -> None:
        self._schemas = schemas

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
        begun = document.get_word_before_cursor(pattern=_WORD)
        names = self._schemas()
        words = {word.lower() for word in _WORD.findall(document.text)}
        columns = [c for name, schema in names.items() if name in words for c in schema.names]
        for name in dict.fromkeys([*columns, *names, *_KEYWORDS]):
            if name.lower().startswith(begun.lower()) and name != begun:
                yield Completion(name, start_position=-len(begun))


def is_finished(text: str) -> bool:
    """Whether Enter ends what is written: behind a semicolon, a word that leaves, or nothing."""
    stripped = text.strip()
    if not stripped or stripped.lower() in _LEAVE:
        return True
    # A semicolon inside a literal or a comment ends nothing: what comes next belongs to it.
    return stripped.endswith(";") and [*split_statements(f"{text} x")][-1] == "x"


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_finished(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def _history(file: Path) -> History:
    """Kept from prompt to prompt, where that can be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(file)
