"""Files with certificates and keys, as PEM: those that are PEM, and PKCS12 stores, Java's default.

A store of Java's own format (JKS) is refused with the command that converts it. Source:
DefaultSslEngineFactory 2.8.2.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka08.errors import ConfigError
from kafka08.extras import naming_extra

BEGIN: Final = b"-----BEGIN "
JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""The first bytes of Java's own stores (JKS, JCEKS)."""
DER_SEQUENCE: Final = b"\x30"
STORE_BYTES_MAX: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates and a key.

    password   of the key, if that is encrypted
    """

    text: str = field(repr=False)
    password: str = field(default="", repr=False)


def read_store(path: str, name: str, password: str, key_password: str = "") -> Pem:
    """The content of a store; `name` is the key that has its path. ConfigError for one that cannot
    be read, which shows no password.

    password       of a PKCS12 store; PEM has none
    key_password   of an encrypted key in PEM
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(STORE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from error
    if len(data) > STORE_BYTES_MAX:
        raise ConfigError(f"{name}: {path} has more than {STORE_BYTES_MAX} bytes: no such store")
    if BEGIN in data:
        return Pem(data.decode("utf-8", "replace"), key_password)
    if data.startswith(JKS):
        store = f"{Path(path).stem}.p12"
        raise ConfigError(
            f"{name}: {path} is a store of Java's own format (JKS). Convert it: keytool "
            f"-importkeystore -srckeystore {path} -destkeystore {store} -deststoretype PKCS12"
        )
    if not data.startswith(DER_SEQUENCE):
        raise ConfigError(f"{name}: {path} is neither PEM nor a PKCS12 store")
    return _from_pkcs12(data, path, name, password)


def _from_pkcs12(data: bytes, path: str, name: str, password: str) -> Pem:
    try:
        with naming_extra("a PKCS12 store"):
            from cryptography.hazmat.primitives import serialization
            from cryptography.hazmat.primitives.serialization import pkcs12
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{name}: {path}: {error}. Or convert it to PEM: openssl pkcs12 -in {path} -nodes -out "
            f"{Path(path).stem}.pem"
        ) from error
    where = name.rpartition(".")[0]
    try:
        store = pkcs12.load_pkcs12(data, password.encode() or None)
    except ValueError as error:
        state = "wrong" if password else "missing"
        raise ConfigError(
            f"{name}: {path} cannot be read as PKCS12: {where}.password may be {state}"
        ) from error
    found = [store.cert, *store.additional_certs]
    pem = serialization.Encoding.PEM
    parts = [entry.certificate.public_bytes(pem) for entry in found if entry is not None]
    # A password for the key alone: OpenSSL reads keys from files, where nobody else shall find it.
    key_password = os.urandom(24).hex() if store.key is not None else ""
    if store.key is not None:
        encryption = serialization.BestAvailableEncryption(key_password.encode())
        form = serialization.PrivateFormat.PKCS8
        parts.append(store.key.private_bytes(pem, form, encryption))
    return Pem(b"".join(parts).decode(), key_password)
