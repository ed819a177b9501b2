"""Where Spark looks: it imports every top-level package named `pyspark_*` and registers its
`DefaultSource`.

Kept apart from `kafkalog` so that the package itself can be imported without pyspark.
"""

from __future__ import annotations

from kafkalog.spark.source import KafkaLogSource as DefaultSource

__all__ = ["DefaultSource"]
