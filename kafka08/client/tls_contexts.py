"""TlsContexts: the TLS of a client's connections, of its configuration and of files that change."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Final

from kafka08.client.key_stores import Pem, read_store
from kafka08.errors import ConfigError

if TYPE_CHECKING:
    from kafka08.client.security import SecureClientConfig

logger = logging.getLogger(__name__)

VERSIONS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


class TlsContexts:
    """Call it for each new connection. Certificates that were renewed in their files are used from
    then on; where they cannot be read, the former ones are, with a warning.

    ConfigError for a value, a file or its content.
    """

    def __init__(self, config: SecureClientConfig) -> None:
        self._config = config
        paths = config.ssl_truststore_location, config.ssl_keystore_location
        self._files = [Path(path) for path in paths if path]
        self._read = self._warned = self._versions()
        self._context = context_of(config)

    def __call__(self) -> ssl.SSLContext:
        versions = self._versions()
        if versions != self._read:
            try:
                self._context = context_of(self._config)
                self._read = versions
            except ConfigError as error:  # it may be half written
                if versions != self._warned:
                    logger.warning(
                        "the certificates that were read before are still used: %s", error
                    )
                    self._warned = versions
        return self._context

    def _versions(self) -> list[tuple[int, ...]]:
        return [_version(path) for path in self._files]


def _version(path: Path) -> tuple[int, ...]:
    """A value that changes with the file; () without one."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def context_of(config: SecureClientConfig) -> ssl.SSLContext:
    """A new context. ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(config.ssl_endpoint_identification_algorithm)
    wanted = {name.strip() for name in config.ssl_enabled_protocols.split(",")}
    if not wanted <= VERSIONS.keys():
        raise ConfigError(f"ssl.enabled.protocols: it may have {' and '.join(VERSIONS)}")
    allowed = [VERSIONS[name] for name in sorted(wanted)]
    context.minimum_version, context.maximum_version = allowed[0], allowed[-1]
    if config.ssl_cipher_suites:
        try:
            context.set_ciphers(config.ssl_cipher_suites.replace(",", ":"))
        except ssl.SSLError as error:
            raise ConfigError(
                "ssl.cipher.suites: OpenSSL has none of these, such as ECDHE-RSA-AES256-GCM-SHA384"
            ) from error
    _trust(context, config)
    _identify(context, config)
    return context


def _trust(context: ssl.SSLContext, config: SecureClientConfig) -> None:
    text, name = config.ssl_truststore_certificates, "ssl.truststore.certificates"
    if config.ssl_truststore_location:
        name = "ssl.truststore.location"
        text = read_store(config.ssl_truststore_location, name, config.ssl_truststore_password).text
    if not text:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=_as_ascii(text))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name}: it has no certificate in PEM that can be read") from error


def _identify(context: ssl.SSLContext, config: SecureClientConfig) -> None:
    found, name = _identity(config)
    if not found.text:
        return
    # OpenSSL reads keys from files alone. This one is only its owner's.
    with NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(_as_ascii(found.text))
        file.flush()
        try:
            # Without a password OpenSSL would ask the terminal for one.
            context.load_cert_chain(file.name, password=found.password)
        except (OSError, ValueError) as error:
            given = "wrong" if found.password else "missing"
            why = (
                f"its key is encrypted, and ssl.key.password may be {given}"
                if "ENCRYPTED" in found.text
                else "it must have a certificate, and the key of that certificate"
            )
            raise ConfigError(f"{name}: {why}") from error


def _identity(config: SecureClientConfig) -> tuple[Pem, str]:
    """This client's certificate and key, with the name of the configuration key they come from."""
    key, chain = config.ssl_keystore_key, config.ssl_keystore_certificate_chain
    if config.ssl_keystore_location:
        name = "ssl.keystore.location"
        passwords = config.ssl_keystore_password, config.ssl_key_password
        return read_store(config.ssl_keystore_location, name, *passwords), name
    if bool(key) != bool(chain):
        raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain go together")
    text = f"{key}\n{chain}\n" if key else ""
    return Pem(text, config.ssl_key_password), "ssl.keystore.key"


def _as_ascii(text: str) -> str:
    """The PEM, without the letters of comments that Python's ssl refuses."""
    return text.encode("ascii", "ignore").decode()
