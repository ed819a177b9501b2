"""Log dirs of nodes that are formatted and were never started."""

from __future__ import annotations

from pathlib import Path

from kafkalog.messages.cluster_metadata import FEATURE_LEVEL_RECORD, encode_metadata_record
from kafkalog.messages.metadata_snapshot import pack_metadata_snapshot

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
LEVELS = {"metadata.version": 30, "group.version": 1, "eligible.leader.replicas.version": 1}
FORMATTED_MS = 1_795_000_000_000


def fresh_log_dir(path: Path, node_id: int = 1, cluster_id: str = CLUSTER_ID) -> Path:
    """As kafka-storage.sh format leaves it."""
    path.mkdir(parents=True)
    directory_id = f"{node_id}AqYlqWSTkWc9uKgMHJyBw"
    lines = {
        "version": 1, "cluster.id": cluster_id, "node.id": node_id, "directory.id": directory_id
    }  # fmt: skip
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    (path / "meta.properties").write_text(text)
    values = [
        encode_metadata_record(FEATURE_LEVEL_RECORD, 0, {"name": name, "featureLevel": level})
        for name, level in LEVELS.items()
    ]
    (path / "bootstrap.checkpoint").write_bytes(pack_metadata_snapshot(values, FORMATTED_MS))
    return path
