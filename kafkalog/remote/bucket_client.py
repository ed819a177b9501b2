"""The client of one bucket, as the cloud's own variables say where it is and who asks.

obstore reads nearly all of them by itself. What is added here: endpoints that are plain HTTP, and
STORAGE_EMULATOR_HOST, by which Google's own libraries find an emulator, to which nobody logs in.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any

# A store that hangs ends in an error after so long, one that says 429 or 5xx is asked again.
CLIENT = {"timeout": "30s", "connect_timeout": "10s"}
RETRIES: Any = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}

_EMULATOR = "STORAGE_EMULATOR_HOST"
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}


def open_client(root: str) -> Any:
    """`root`: scheme and bucket. ImportError without obstore, its own errors where it does not take
    the root or what the environment says."""
    from obstore.store import from_url

    scheme = root.partition(":")[0]
    endpoints = [os.environ.get(name, "") for name in _ENDPOINTS.get(scheme, ())]
    config: Any = {}
    emulator = os.environ.get(_EMULATOR) if scheme == "gs" else None
    if emulator:
        endpoint = emulator if "://" in emulator else f"http://{emulator}"
        endpoints.append(endpoint)
        nobody = {"client_email": "", "private_key": "", "private_key_id": ""}
        key = {"gcs_base_url": endpoint.rstrip("/"), "disable_oauth": True, **nobody}
        config["service_account_key"] = json.dumps(key)
    is_open = root.startswith("http://") or any(map(_is_open, endpoints))
    client: Any = {**CLIENT, "allow_http": True} if is_open else CLIENT
    return from_url(root, config=config or None, client_options=client, retry_config=RETRIES)


def _is_open(endpoint: str) -> bool:
    return endpoint.startswith("http://")
