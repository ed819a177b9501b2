"""A policy: what topics have to keep to, as a file that is kept beside the code.

    version: 1
    rules:
      - name: personal-data
        topics: ["customers*", "people"]
        settings:
          cleanup.policy: delete
        limits:
          max-age: 30d

`policy.schema.json` is its published schema. A file that does not follow it is a usage error that
names the line; so is a key that appears twice, a setting that Kafka does not know and a duration
that is none. Anchors are refused: a few lines of them stand for a file of any size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkalog.checking.finding_kind import Severity
from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.log.small_files import read_small_file
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.setting_units import DURATIONS, SIZES, parse_quantity, plain_value

if TYPE_CHECKING:
    import jsonschema
    import yaml

MAX_POLICY_BYTES = 1 << 20
_MOST_LEVELS = 16
_DURATIONS = ("max-age", "min-retention", "max-compaction-lag")

# Where a value stands: its keys and list positions from the top of the file.
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """What a number has to be between, both ends included; None is no end."""

    at_least: int | None
    at_most: int | None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a rule says of data, ms and bytes; None where it says nothing."""

    max_age_ms: int | None = None
    min_retention_ms: int | None = None
    max_compaction_lag_ms: int | None = None
    codecs: tuple[str, ...] | None = None
    max_keys: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule: `settings` maps Kafka's key to the values of which one has to be in force (as text,
    the way LogConfig writes them), or to a range. `words`: each limit as the file says it;
    `asks`: the whole rule in words.
    """

    name: str
    topics: tuple[str, ...]
    exceptions: tuple[str, ...]
    severity: Severity
    settings: Mapping[str, tuple[str, ...] | Range]
    limits: Limits
    words: Mapping[str, str]
    asks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a file, in its order."""

    path: str
    rules: tuple[PolicyRule, ...]


@cache
def policy_schema() -> dict[str, Any]:
    """policy.schema.json."""
    text = files("kafkalog.auditing").joinpath("policy.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def read_policy(path: str) -> Policy:
    """The policy in a file. InvalidConfigError names file and line."""
    try:
        data = read_small_file(Path(path), MAX_POLICY_BYTES)
    except OSError as error:
        raise InvalidConfigError(error.strerror or str(error), path=path) from None
    except KafkaLogError as error:
        raise InvalidConfigError(error.reason, path=path) from None
    return parse_policy(data, path)


def parse_policy(data: bytes, path: str = "policy.yaml") -> Policy:
    """The same of a file's bytes."""
    document, lines = _parse_yaml(data, path)
    import jsonschema  # a tenth of an audit's start, and most have no policy

    validator = jsonschema.Draft202012Validator(policy_schema())
    for error in sorted(validator.iter_errors(document), key=lambda e: list(map(str, e.path))):
        raise _mistake(path, lines, tuple(error.absolute_path), _words(error))
    rules: list[PolicyRule] = []
    for number, entry in enumerate(document["rules"]):
        place: Place = ("rules", number)
        if any(rule.name == entry["name"] for rule in rules):
            reason = f"a second rule with the name {entry['name']}"
            raise _mistake(path, lines, (*place, "name"), reason)
        rules.append(_Reader(path, lines, place).rule(entry))
    return Policy(path, tuple(rules))


@dataclass(frozen=True, slots=True)
class _Reader:
    path: str
    lines: Mapping[Place, int]
    place: Place

    def rule(self, entry: Mapping[str, Any]) -> PolicyRule:
        settings = {
            key: self.setting(key, value) for key, value in entry.get("settings", {}).items()
        }
        limits = {key: self.limit(key, value) for key, value in entry.get("limits", {}).items()}
        return PolicyRule(
            name=entry["name"],
            topics=tuple(entry["topics"]),
            exceptions=tuple(entry.get("except", ())),
            severity=Severity(entry.get("severity", "error")),
            settings=settings,
            limits=Limits(
                **{
                    key.replace("-", "_") + ("_ms" if key in _DURATIONS else ""): value
                    for key, value in limits.items()
                }
            ),
            words={key: f"{key} {_word(value)}" for key, value in entry.get("limits", {}).items()},
            asks=tuple(_asks(entry)),
        )

    def setting(self, key: str, value: Any) -> tuple[str, ...] | Range:
        if isinstance(value, dict):
            ends = {name: self.value_of(key, end, (name,)) for name, end in value.items()}
            if not all(isinstance(end, int) for end in ends.values()):
                raise self.mistake(("settings", key), f"{key} is no number that has a range")
            return Range(ends.get("at-least"), ends.get("at-most"))
        values = value if isinstance(value, list) else [value]
        found = []
        for number, each in enumerate(values):
            below = (number,) if isinstance(value, list) else ()
            found.append(setting_text(self.value_of(key, each, below)))
        return tuple(found)

    def value_of(self, key: str, value: Any, below: Place) -> Any:
        """The value as Kafka would take it."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            text = plain_value(key, text)
            config = LogConfig.from_properties({key: text}, is_partial=True)
        except InvalidConfigError as error:
            raise self.mistake(("settings", key, *below), error.reason) from None
        return setting_of(config, key)

    def limit(self, key: str, value: Any) -> Any:
        if key == "codecs":
            return tuple(value)
        if isinstance(value, int):
            number = None if isinstance(value, bool) or value < 0 else value
        else:
            number = parse_quantity(value, DURATIONS if key in _DURATIONS else SIZES)
        if number is None:
            wanted = "a duration, as 30d" if key in _DURATIONS else "a size, as 10GiB"
            raise self.mistake(("limits", key), f"{key}: expected {wanted}, found {value!r}")
        return number

    def mistake(self, below: Place, reason: str) -> InvalidConfigError:
        return _mistake(self.path, self.lines, (*self.place, *below), reason)


def setting_of(config: LogConfig, key: str) -> Any:
    """The value of a dotted key in force."""
    name = "segment_bytes" if key == "internal.segment.bytes" else key.replace(".", "_")
    return getattr(config, name)


def setting_text(value: Any) -> str:
    """A value as Kafka writes it; the order of a list says nothing."""
    if isinstance(value, tuple):
        return ",".join(sorted(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _asks(entry: Mapping[str, Any]) -> Iterator[str]:
    for key, value in entry.get("settings", {}).items():
        if isinstance(value, dict):
            yield " and ".join(
                f"{key} {name.replace('-', ' ')} {end}" for name, end in value.items()
            )
        elif isinstance(value, list):
            yield f"{key} {' or '.join(map(_word, value))}"
        else:
            yield f"{key} {_word(value)}"
    for key, value in entry.get("limits", {}).items():
        yield f"{key} {_word(value)}"


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parse_yaml(data: bytes, path: str) -> tuple[Any, dict[Place, int]]:
    """The file as plain values, and the line of each."""
    # Only where a policy is given: the import takes 40 ms.
    import yaml

    try:
        text = data.decode()
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line = 0 if event.start_mark is None else event.start_mark.line
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise _at_line(path, line, "anchors and aliases are not taken")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_LEVELS:
                raise _at_line(path, line, f"not YAML of a policy: over {_MOST_LEVELS} levels deep")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: dict[Place, int] = {}
        if node is None:
            raise InvalidConfigError("the file is empty", path=path)
        _note_lines(node, (), lines, path)
        return yaml.safe_load(text), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = f"not YAML: {error.problem or error.context}"
        raise _at_line(path, 0 if mark is None else mark.line, reason) from None
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidConfigError(f"not YAML: {error}", path=path) from None


def _note_lines(node: yaml.Node, place: Place, lines: dict[Place, int], path: str) -> None:
    import yaml

    lines[place] = node.start_mark.line
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            _note_lines(item, (*place, number), lines, path)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                raise _at_line(path, key.start_mark.line, f"{name} is there twice")
            seen.add(name)
            _note_lines(value, (*place, name), lines, path)
            lines[*place, name] = key.start_mark.line


def _words(error: jsonschema.ValidationError) -> str:
    """What is wrong, without the value repeated in full."""
    if error.validator == "additionalProperties":
        allowed = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
        found = error.instance if isinstance(error.instance, dict) else {}
        unknown = ", ".join(sorted(set(map(str, found)) - set(allowed)))
        return f"unknown: {unknown}; there are {', '.join(sorted(allowed))}"
    if error.validator == "anyOf":
        return "a rule needs settings or limits"
    if error.validator == "oneOf":
        return "expected a value, a list of values, or at-least and at-most"
    return str(error.message)[:300]


def _mistake(
    path: str, lines: Mapping[Place, int], place: Place, reason: str
) -> InvalidConfigError:
    known = next((place[:n] for n in range(len(place), -1, -1) if place[:n] in lines), ())
    name = ".".join(map(str, place))
    return _at_line(path, lines.get(known, 0), f"{name}: {reason}" if name else reason)


def _at_line(path: str, line: int, reason: str) -> InvalidConfigError:
    return InvalidConfigError(f"line {line + 1}: {reason}", path=path)
