"""Where the metadata of a KRaft node lies in its log dir."""

from __future__ import annotations

from kafkalog.format.topics import CLUSTER_METADATA_TOPIC

METADATA_DIR = f"{CLUSTER_METADATA_TOPIC}-0"
# At the root of a log dir: what a new cluster's metadata begins with.
BOOTSTRAP_FILE = "bootstrap.checkpoint"
