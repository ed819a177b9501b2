"""Any bytes in place of any object of remote storage: a finding or a KafkaLogError; never another
exception, a hang, or memory above the cap.
"""

from __future__ import annotations

import pytest

from tests.damage.doors import capped
from tests.damage.formats import try_mutations
from tests.damage.remote_formats import remote_formats, try_forged_manifests

NAMES = [
    *(
        f"{v} {s} object"
        for v in ("plain", "zstd", "AES")
        for s in ("rsm-manifest", "log", "indexes")
    ),
    "remote log metadata",
    "remote log metadata record",
]
# Each read of it opens a log dir.
SLOW = "remote log metadata"
BY_NAME = [pytest.param(n, marks=pytest.mark.thorough if n == SLOW else ()) for n in NAMES]


def test_all_of_them_are_tried() -> None:
    assert sorted(NAMES) == sorted(remote_formats())


@pytest.mark.parametrize("name", BY_NAME)
def test_a_sound_object_is_read(name: str) -> None:
    for sample in remote_formats()[name].samples:
        remote_formats()[name].read(sample)


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", BY_NAME)
def test_every_damaged_object_ends_as_promised(name: str, count: int) -> None:
    with capped(120):
        broken = try_mutations(remote_formats()[name], seed=count, count=count)
    assert not broken, "\n".join(broken[:5])


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.thorough)])
def test_every_forged_manifest_ends_as_promised(count: int) -> None:
    with capped(120):
        broken = try_forged_manifests(seed=count, count=count)
    assert not broken, "\n".join(broken[:5])
