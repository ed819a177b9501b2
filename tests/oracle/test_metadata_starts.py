"""A real controller on a metadata log with a record behind it: it ends itself, or starts, as the
table says by which `verify` goes.
"""

from __future__ import annotations

import pytest

from data.copy_samples import copy_sample
from tests.oracle.rounds import work_directory
from tests.support.broker import Broker, BrokerFailedError
from tests.support.metadata_variants import VARIANTS, append_records

# One start each: the long run asks for all of them.
_SHORT = {"a change of an unknown partition"}

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow, pytest.mark.thorough]


@pytest.mark.parametrize(
    "name",
    [n if n in _SHORT else pytest.param(n, marks=pytest.mark.soak) for n in VARIANTS],
)
def test_a_controller_starts_or_ends_itself_as_the_table_says(name: str) -> None:
    values, refused = VARIANTS[name]
    with work_directory() as work:
        append_records(copy_sample("broker", work / "broker" / "data"), values)
        broker = Broker(work / "broker", {"log.cleaner.enable": "false"})
        try:
            if refused is None:
                broker.start()
            else:
                with pytest.raises(BrokerFailedError, match="exit code"):
                    broker.start()
        finally:
            broker.kill()
