"""The data source under the name "counting": what its plans and tasks read and copy, in bytes.

Spark runs plans and tasks in processes of their own, so what was counted goes to the file `counted`
beside the log dir, a JSON line each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from kafkalog.spark.batch_reader import PushingReader
from kafkalog.spark.source import PushingSource
from tests.support.bytes_read import bytes_read


class CountingReader(PushingReader):
    """Each plan and each task is done twice: the first time loads modules as well."""

    def partitions(self) -> list[InputPartition]:
        super().partitions()
        before = bytes_read()
        found = super().partitions()
        self._note(read=bytes_read() - before)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import kafkalog.columns.arrow_arrays as arrow_arrays

        gather, copied = arrow_arrays.gather_spans, 0

        def counted(*args: np.ndarray) -> None:
            nonlocal copied
            copied += int(args[2].clip(min=0).sum())
            gather(*args)

        list(super().read(partition))
        before = bytes_read()
        with patch.object(arrow_arrays, "gather_spans", counted):
            batches = list(super().read(partition))
        self._note(read=bytes_read() - before, copied=copied)
        return iter(batches)

    def _note(self, **counts: int) -> None:
        with (Path(self.options.paths[0]).parent / "counted").open("a") as file:
            file.write(json.dumps(counts) + "\n")


class CountingSource(PushingSource):
    """To be registered by `spark.dataSource.register`."""

    def _reader_class(self) -> type[CountingReader]:
        return CountingReader

    @classmethod
    def name(cls) -> str:
        return "counting"


def counted(log_dir: Path) -> dict[str, int]:
    """The sums so far; counting begins anew."""
    path = log_dir.parent / "counted"
    sums = {"read": 0, "copied": 0}
    for line in path.read_text().splitlines():
        for name, value in json.loads(line).items():
            sums[name] += value
    path.unlink()
    return sums
