"""The option table: parsing, defaults, refusals. No session needed."""

from __future__ import annotations

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.option_table import OPTIONS
from kafkalog.reading.request import ReadMode
from kafkalog.reading.source_options import parse_options
from kafkalog.reading.views import VIEWS


def test_defaults() -> None:
    options = parse_options({"path": "/logs"})
    assert (options.view, options.mode) == ("records", ReadMode.FAILFAST)
    assert options.verify_checksums
    assert not parse_options({"path": "/logs", "view": "batches"}).verify_checksums
    assert options.column_names[-1] == "timestampType"


def test_names_are_matched_without_case() -> None:
    options = parse_options({"PATH": "/a, /b", "SubScribe": "x,y", "INCLUDEHEADERS": "TRUE"})
    assert options.paths == ("/a", "/b")
    assert options.selection.topics == {"x", "y"}
    assert options.column_names[-1] == "headers"


def test_what_the_catalog_adds_to_a_tables_options_is_understood() -> None:
    catalog = {"location": "file:/my%20logs", "option.view": "batches", "view": "batches"}
    options = parse_options({**catalog, "serialization.format": "1", "provider": "kafkalog"})
    assert (options.paths, options.view) == (("/my logs",), "batches")
    assert parse_options({"location": "file:/x", "path": "/y"}).paths == ("/y",)


def test_offsets_and_partitions() -> None:
    options = parse_options(
        {
            "paths": '["/a,b", "/c"]',
            "assign": '{"x": [0, 2]}',
            "startingOffsets": '{"x": {"0": 5, "2": -2}}',
            "endingOffsets": "highwatermark",
        }
    )
    assert options.paths == ("/a,b", "/c")
    x0, x2 = TopicPartition("x", 0), TopicPartition("x", 2)
    assert options.selection.partitions == {x0, x2}
    assert options.selection.starting_offsets == {x0: 5, x2: -2}
    assert options.selection.ending_offsets == "highWatermark"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"path": ""}, "option path takes"),
        ({"path": "a", "paths": '["b"]'}, "exclude each other"),
        ({"view": "records"}, "a path is needed"),
        ({"path": "a", "mode": "lenient"}, "takes FAILFAST, PERMISSIVE or DROPMALFORMED"),
        ({"path": "a", "includeHeaders": "yes"}, "takes true or false, not 'yes'"),
        ({"path": "a", "subscribe": "x", "assign": '{"x": [0]}'}, "exclude each other"),
        ({"path": "a", "assign": '{"x": 1}'}, "option assign takes"),
        ({"path": "a", "assign": "{}"}, "no topic is named"),
        ({"path": "a", "assign": '{"x": [0], "y": []}'}, "no partition of y is named"),
        ({"path": "a", "startingOffsets": "newest"}, "option startingOffsets takes earliest"),
        ({"path": "a", "startingOffsets": '{"x": {"0": -3}}'}, "x-0"),
        ({"path": "a", "endingOffsets": '{"x": {"0": -2}}'}, "no meaning at this end"),
        ({"path": "a", "endingOffsets": '{"x": {"0": true}}'}, "x-0"),
        ({"path": "a", "startingOffsets": '{"x": {"0": 9223372036854775808}}'}, "x-0"),
        ({"path": "a", "endingOffsets": '{"x": {"zero": 1}}'}, "x-zero"),
        ({"path": "a", "columns": "key", "includeHeaders": "true"}, "contradict each other"),
        ({"path": "a", "columns": "key,,value"}, "an empty name"),
        ({"path": "a", "view": "segments", "endingOffsets": "latest"}, "not for view 'segments'"),
        ({"path": "a", "view": "partitions", "pathGlobFilter": "0*"}, "not for view 'partitions'"),
        ({"path": "a", "kafkaVersion": "3.9"}, "takes 4.1 to 4.4, not '3.9'"),
        ({"path": "a", "view": "batches", "includeHeaders": "true"}, "for view records"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidConfigError, match=reason):
        parse_options(options)


def test_names_of_files_and_releases() -> None:
    options = parse_options({"path": "a", "pathGlobFilter": "*7.log", "kafkaVersion": "4.2.2"})
    selection = options.selection
    assert selection.accepts_file("/logs/a-0/00000000000000000007.log")
    assert not selection.accepts_file("/logs/7.log/00000000000000000008.log")


def test_an_unknown_view_is_refused_with_those_of_the_source() -> None:
    with pytest.raises(InvalidConfigError, match=r"'orders' is unknown.*, open_transactions$"):
        parse_options({"path": "a", "view": "orders"})


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidConfigError, match="'nonsense' is unknown; available: path"):
        parse_options({"path": "a", "nonsense": "4.3"})
    with pytest.raises(InvalidConfigError, match=r"'kafkaversions' .*did you mean kafkaVersion"):
        parse_options({"path": "a", "kafkaversions": "4.3"})


def test_the_options_that_views_name_are_there() -> None:
    named = {option for view in VIEWS.values() for option in view.options}
    assert named <= set(OPTIONS)
    assert OPTIONS["key"].takers == ("records",)
    assert OPTIONS["subscribe"].takers == tuple(VIEWS)
