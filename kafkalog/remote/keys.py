"""The RSA keys of a ring open the AES keys of segments, and these their chunks.

A key is named by the path of its file wherever it goes: what is in the file is read where a chunk
is decrypted, and nowhere kept but in this process.

Aiven's plug-in wraps with OAEP, SHA3-512 for the hash and for MGF1, and an empty label. OpenSSL
refuses that, PyCryptodome does it.

Source: RsaEncryptionProvider, RsaKeyReader, AesEncryptionProvider of
tiered-storage-for-apache-kafka.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkalog.errors import InvalidConfigError, RemoteStorageError
from kafkalog.format.segment_manifest import NONCE_BYTES, TAG_BYTES, DataKey
from kafkalog.remote.paths import KeyFiles

if TYPE_CHECKING:
    from Crypto.PublicKey.RSA import RsaKey

_MAX_PEM_BYTES = 64 * 1024
_AES_KEY_BYTES = 32
_INSTALL = "encrypted segments need PyCryptodome: pip install 'kafkalog[cloud]'"


def data_key_of(wrapped: DataKey, keys: KeyFiles, path: str) -> bytes:
    """The AES key of a segment. RemoteStorageError if its RSA key is not on the ring or does not
    open it, InvalidConfigError for a file that is no key; `path` is the manifest's."""
    file = dict(keys).get(wrapped.key_id)
    if file is None:
        ring = ", ".join(sorted(key_id for key_id, _ in keys)) or "no key at all"
        raise RemoteStorageError(
            f"encrypted with key {wrapped.key_id!r}, which is not on the ring ({ring}):"
            " --remote-key ID=FILE (remote_keys) adds it",
            path=path,
        )
    try:
        key = _unwrapped(wrapped.wrapped, file, Path(file).stat().st_mtime_ns)
    except ValueError:
        key = b""
    except OSError as error:
        raise InvalidConfigError(
            f"the file of key {wrapped.key_id!r}: {error.strerror or error}", path=file
        ) from None
    if len(key) != _AES_KEY_BYTES:
        raise RemoteStorageError(
            f"key {wrapped.key_id!r} of {file} does not open the data key: it is another key, or"
            " the manifest is damaged",
            path=path,
        )
    return key


def decrypt(data: bytes | memoryview, key: bytes, additional_data: bytes) -> bytes:
    """A nonce, what it hides and its tag → what is hidden; ValueError if the tag is wrong."""
    if len(data) < NONCE_BYTES + TAG_BYTES:
        raise ValueError(f"{len(data)} bytes are no encrypted chunk")
    cipher = _aes().new(key, _aes().MODE_GCM, nonce=data[:NONCE_BYTES], mac_len=TAG_BYTES)
    cipher.update(additional_data)
    view = memoryview(data)
    return bytes(cipher.decrypt_and_verify(view[NONCE_BYTES:-TAG_BYTES], data[-TAG_BYTES:]))


@lru_cache(maxsize=4096)
def _unwrapped(wrapped: bytes, file: str, _mtime_ns: int) -> bytes:
    """RSA takes longer than the chunks of a small segment: once for each."""
    from Crypto.Cipher import PKCS1_OAEP
    from Crypto.Hash import SHA3_512

    return bytes(PKCS1_OAEP.new(_private_key(file, _mtime_ns), hashAlgo=SHA3_512).decrypt(wrapped))


@lru_cache(maxsize=64)
def _private_key(file: str, _mtime_ns: int) -> RsaKey:
    _aes()
    from Crypto.PublicKey import RSA

    with Path(file).open("rb") as pem:
        data = pem.read(_MAX_PEM_BYTES)
    try:
        key = RSA.import_key(data)
    except (ValueError, IndexError, TypeError):
        raise InvalidConfigError("no RSA key in PEM", path=file) from None
    if not key.has_private():
        raise InvalidConfigError("a public key; the private one is needed", path=file)
    return key


def _aes() -> Any:
    try:
        from Crypto.Cipher import AES
    except ImportError:
        raise InvalidConfigError(_INSTALL) from None
    return AES
