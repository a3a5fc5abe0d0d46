"""The keys of Kafka's clients for TLS and SASL, and the Security of connections that they ask for.

Certificates and keys are PEM, in files or in the values. Sources: SslConfigs, SaslConfigs,
DefaultSslEngineFactory 2.8.2.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka08.client.jaas import parse_jaas
from kafka08.config import Config, key
from kafka08.errors import ConfigError
from kafka08.network.session import PLAINTEXT, Security

if TYPE_CHECKING:
    import ssl

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MODULES: Final = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": MECHANISMS[1:],
}
VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
PEM: Final = b"-----BEGIN "
JKS: Final = b"\xfe\xed\xfe\xed"
OF_LIBRDKAFKA: Final = {
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.location (certificates and key in one file)",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.location (certificates and key in one file)",
    "ssl.key.pem": "ssl.keystore.key",
    "enable.ssl.certificate.verification": "ssl.endpoint.identification.algorithm",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
}
"""Keys of librdkafka → Kafka's key for the same."""


class SecureClientConfig(Config):
    """The keys for TLS and SASL of a client. With PLAINTEXT the others have no effect."""

    security_protocol: str = key(
        "PLAINTEXT",
        choices=PROTOCOLS,
        doc="How to talk to brokers: with TLS (SSL), a login (SASL).",
    )
    ssl_truststore_location: str = key(
        "", doc="PEM file of the authorities to trust; empty: those of the system."
    )
    ssl_truststore_certificates: str = key("", doc="The same as text.")
    ssl_truststore_type: str = key("", doc="PEM. The content of a file decides.")
    ssl_truststore_password: str = key("", secret=True, doc="PEM has none: no effect.")
    ssl_keystore_location: str = key(
        "", doc="PEM file with this client's certificate, its chain and its key."
    )
    ssl_keystore_certificate_chain: str = key("", doc="The certificate and its chain as text.")
    ssl_keystore_key: str = key("", secret=True, doc="The key as text.")
    ssl_keystore_type: str = key("", doc="PEM. The content of a file decides.")
    ssl_keystore_password: str = key("", secret=True, doc="PEM has none: no effect.")
    ssl_key_password: str = key("", secret=True, doc="Password of an encrypted key.")
    ssl_endpoint_identification_algorithm: str = key(
        "https",
        choices=("https", "HTTPS", ""),
        doc="https: a broker's certificate must have the name or address by which it is connected "
        "to; empty: it may have any.",
    )
    ssl_enabled_protocols: str = key(",".join(VERSIONS), doc="Comma list of TLSv1.2 and TLSv1.3.")
    ssl_cipher_suites: str = key("", doc="Cipher suites of TLS 1.2, as OpenSSL names them.")
    sasl_mechanism: str = key(
        "", doc=f"How to log in: {', '.join(MECHANISMS)}. Java's default, GSSAPI, is not here."
    )
    sasl_jaas_config: str = key(
        "", secret=True, doc="Login module with user name and password, as Java reads it."
    )

    def validate(self) -> None:
        self.security  # noqa: B018 - raises

    @property
    def security(self) -> Security:
        """The security of all connections. ConfigError for a value, a file or its content."""
        if self.security_protocol == "PLAINTEXT":
            return PLAINTEXT
        for name in sorted(OF_LIBRDKAFKA.keys() & self.unknown.keys()):
            raise ConfigError(f"{name} is a key of librdkafka; here it is {OF_LIBRDKAFKA[name]}")
        tls = self._context() if self.security_protocol.endswith("SSL") else None
        log_in = None
        if self.security_protocol.startswith("SASL"):
            from kafka08.client.sasl import login  # imported late, as hashlib takes a while

            log_in = login(self.sasl_mechanism, *self._credentials())
        return Security(self.security_protocol, tls, log_in)

    def _credentials(self) -> tuple[str, str]:
        mechanism = self.sasl_mechanism
        if mechanism not in MECHANISMS:
            what = f"{mechanism!r} is not" if mechanism else "must be"
            raise ConfigError(f"sasl.mechanism: {what} one of {', '.join(MECHANISMS)}")
        if not self.sasl_jaas_config:
            raise ConfigError("sasl.jaas.config: it must have the user name and the password")
        module, options = parse_jaas(self.sasl_jaas_config)
        if mechanism not in MODULES.get(module, ()):
            wanted = next(name for name, served in MODULES.items() if mechanism in served)
            raise ConfigError(
                f"sasl.jaas.config: {module} is not the login module of {mechanism}, {wanted}"
            )
        for name in ("username", "password"):
            if not options.get(name):
                raise ConfigError(f"sasl.jaas.config: there is no {name}")
        return options["username"], options["password"]

    def _context(self) -> ssl.SSLContext:
        import ssl  # imported late: it takes 10 ms, and most clients are PLAINTEXT

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = bool(self.ssl_endpoint_identification_algorithm)
        wanted = [name.strip() for name in self.ssl_enabled_protocols.split(",")]
        if not wanted or not set(wanted) <= set(VERSIONS):
            raise ConfigError(f"ssl.enabled.protocols: it may have {' and '.join(VERSIONS)}")
        allowed = sorted(wanted)
        numbers = dict(zip(VERSIONS, (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3), strict=True))
        context.minimum_version, context.maximum_version = numbers[allowed[0]], numbers[allowed[-1]]
        if self.ssl_cipher_suites:
            try:
                context.set_ciphers(self.ssl_cipher_suites.replace(",", ":"))
            except ssl.SSLError as error:
                raise ConfigError(
                    "ssl.cipher.suites: OpenSSL has none of these, such as "
                    "ECDHE-RSA-AES256-GCM-SHA384"
                ) from error
        self._trust(context)
        self._identify(context)
        return context

    def _trust(self, context: ssl.SSLContext) -> None:
        text, name = self.ssl_truststore_certificates, "ssl.truststore.certificates"
        if self.ssl_truststore_location:
            name = "ssl.truststore.location"
            text = _pem_of(self.ssl_truststore_location, name)
        if not text:
            context.load_default_certs()
            return
        try:
            context.load_verify_locations(cadata=_as_ascii(text))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{name}: it has no certificate in PEM that can be read") from error

    def _identify(self, context: ssl.SSLContext) -> None:
        text, name = self.ssl_keystore_key, "ssl.keystore.key"
        if self.ssl_keystore_location:
            name = "ssl.keystore.location"
            text = _pem_of(self.ssl_keystore_location, name)
        elif bool(text) != bool(self.ssl_keystore_certificate_chain):
            raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain go together")
        if not text:
            return
        from tempfile import NamedTemporaryFile  # imported late: most clients have no key

        # OpenSSL reads keys from files alone. This one is only its owner's.
        with NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(_as_ascii(f"{text}\n{self.ssl_keystore_certificate_chain}\n"))
            file.flush()
            try:
                # Without a password OpenSSL would ask the terminal for one.
                context.load_cert_chain(file.name, password=self.ssl_key_password)
            except (OSError, ValueError) as error:
                given = "wrong" if self.ssl_key_password else "missing"
                is_encrypted = "ENCRYPTED" in text
                why = (
                    f"its key is encrypted, and ssl.key.password may be {given}"
                    if is_encrypted
                    else "it must have a certificate, and the key of that certificate, in PEM"
                )
                raise ConfigError(f"{name}: {why}") from error


def _as_ascii(text: str) -> str:
    """The PEM, without the letters of comments that Python's ssl refuses."""
    return text.encode("ascii", "ignore").decode()


def _pem_of(path: str, name: str) -> str:
    """The content of a PEM file. ConfigError for any other file, with the command that converts
    it."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: {error}") from error
    if PEM in data:
        return data.decode("utf-8", "replace")
    export = f"openssl pkcs12 -in store.p12 -nodes -out {Path(path).stem}.pem"
    if data.startswith(JKS):
        raise ConfigError(
            f"{name}: {path} is a Java keystore. Convert it to PEM: keytool -importkeystore "
            f"-srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12, then {export}"
        )
    raise ConfigError(
        f"{name}: {path} is not PEM. If it is a PKCS12 store, convert it: "
        f"{export.replace('store.p12', path)}"
    )
