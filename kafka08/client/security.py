"""The keys of Kafka's clients for TLS and SASL, and the Security of connections that they ask for.

Certificates and keys are PEM, in files or in the values, or in PKCS12 stores. Sources: SslConfigs,
SaslConfigs 2.8.2.
"""

from __future__ import annotations

from typing import Final

from kafka08.client.jaas import parse_jaas
from kafka08.config import Config, key
from kafka08.errors import ConfigError
from kafka08.network.session import PLAINTEXT, Security

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MODULES: Final = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": MECHANISMS[1:],
}
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
        "",
        doc="PEM file or PKCS12 store of the authorities to trust; empty: those of the system.",
    )
    ssl_truststore_certificates: str = key("", doc="The same as text.")
    ssl_truststore_type: str = key("", doc="PEM or PKCS12. The content of a file decides.")
    ssl_truststore_password: str = key(
        "", secret=True, doc="Password of a PKCS12 store; PEM has none."
    )
    ssl_keystore_location: str = key(
        "",
        doc="PEM file or PKCS12 store with this client's certificate, its chain and its key.",
    )
    ssl_keystore_certificate_chain: str = key("", doc="The certificate and its chain as text.")
    ssl_keystore_key: str = key("", secret=True, doc="The key as text.")
    ssl_keystore_type: str = key("", doc="PEM or PKCS12. The content of a file decides.")
    ssl_keystore_password: str = key(
        "", secret=True, doc="Password of a PKCS12 store, and of its key; PEM has none."
    )
    ssl_key_password: str = key("", secret=True, doc="Password of an encrypted key in PEM.")
    ssl_endpoint_identification_algorithm: str = key(
        "https",
        choices=("https", "HTTPS", ""),
        doc="https: a broker's certificate must have the name or address by which it is connected "
        "to; empty: it may have any.",
    )
    ssl_enabled_protocols: str = key("TLSv1.2,TLSv1.3", doc="Comma list of TLSv1.2 and TLSv1.3.")
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
        tls = None
        if self.security_protocol.endswith("SSL"):
            # Imported late: OpenSSL takes 10 ms, and most clients are PLAINTEXT.
            from kafka08.client.tls_contexts import TlsContexts

            tls = TlsContexts(self)
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
