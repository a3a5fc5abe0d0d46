"""The keys of Kafka's clients for TLS and SASL, and the Security of connections that they ask for.

Certificates and keys are PEM, in files or in the values, or in PKCS12 stores. Sources: SslConfigs,
SaslConfigs 2.8.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka08.client.jaas import parse_jaas
from kafka08.client.plugins import plugin
from kafka08.config import Config, key
from kafka08.errors import ConfigError
from kafka08.network.session import PLAINTEXT, Exchange, Security, Session

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
PREFIXES: Final = ("security.", "ssl.", "sasl.", "enable.ssl.")
"""How the keys of this module begin, and those of librdkafka for the same."""
_MODULE: Final = "org.apache.kafka.common.security."
MODULES: Final = {
    _MODULE + "plain.PlainLoginModule": ("PLAIN",),
    _MODULE + "scram.ScramLoginModule": MECHANISMS[1:3],
    _MODULE + "oauthbearer.OAuthBearerLoginModule": (OAUTHBEARER,),
}
"""Login module → its mechanisms."""
TOKEN_HANDLERS: Final = (
    _MODULE + "oauthbearer.OAuthBearerLoginCallbackHandler",
    _MODULE + "oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
"""Java's classes for the tokens of an OAuth server; they are chosen by its URL here."""
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
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.config": "sasl.jaas.config",
    "sasl.oauthbearer.method": "sasl.oauthbearer.token.endpoint.url",
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

    sasl_login_callback_handler_class: str = key(
        "", doc="For OAUTHBEARER: your function without arguments that returns a token."
    )
    sasl_oauthbearer_token_endpoint_url: str = key(
        "", doc="For OAUTHBEARER: where an OAuth server issues tokens for client credentials."
    )
    sasl_oauthbearer_client_credentials_client_id: str = key(
        "", doc="The client's id there; else clientId in sasl.jaas.config."
    )
    sasl_oauthbearer_client_credentials_client_secret: str = key(
        "", secret=True, doc="The client's secret there; else clientSecret in sasl.jaas.config."
    )
    sasl_oauthbearer_scope: str = key(
        "", doc="The scope of the tokens; else scope in sasl.jaas.config."
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
        log_in = self._login() if self.security_protocol.startswith("SASL") else None
        return Security(self.security_protocol, tls, log_in)

    def _login(self) -> Callable[[Session], Exchange]:
        mechanism = self.sasl_mechanism
        if mechanism == "GSSAPI":
            raise ConfigError(
                "sasl.mechanism: GSSAPI (Kerberos) is not here; a listener of the brokers may have "
                f"one of {', '.join(MECHANISMS)}"
            )
        if mechanism not in MECHANISMS:
            what = f"{mechanism!r} is not" if mechanism else "must be"
            raise ConfigError(f"sasl.mechanism: {what} one of {', '.join(MECHANISMS)}")
        from kafka08.client import sasl  # imported late, as hashlib takes a while

        if mechanism == OAUTHBEARER:
            return sasl.login_by_token(self._token_source())
        if not self.sasl_jaas_config:
            raise ConfigError("sasl.jaas.config: it must have the user name and the password")
        options = self._jaas_options()
        for name in ("username", "password"):
            if not options.get(name):
                raise ConfigError(f"sasl.jaas.config: there is no {name}")
        return sasl.login(mechanism, options["username"], options["password"])

    def _token_source(self) -> Callable[[], str]:
        own = self.sasl_login_callback_handler_class
        if own and own not in TOKEN_HANDLERS:
            return plugin("sasl.login.callback.handler.class", own, {}, self)
        from kafka08.client.oauth import ClientCredentials, unsecured_tokens  # loads OpenSSL

        options = self._jaas_options() if self.sasl_jaas_config else {}
        if not self.sasl_oauthbearer_token_endpoint_url:
            return unsecured_tokens(options)
        prefix = "sasl_oauthbearer_client_credentials_client_"
        pair = {
            name: getattr(self, prefix + name) or options.get(f"client{name.capitalize()}", "")
            for name in ("id", "secret")
        }
        for name, value in pair.items():
            if not value:
                raise ConfigError(
                    f"{(prefix + name).replace('_', '.')}: it is missing, and sasl.jaas.config has "
                    f"no client{name.capitalize()}"
                )
        return ClientCredentials(
            self.sasl_oauthbearer_token_endpoint_url,
            pair["id"],
            pair["secret"],
            self.sasl_oauthbearer_scope or options.get("scope", ""),
            options.get("ssl.truststore.location", ""),
            options.get("ssl.truststore.password", ""),
        )

    def _jaas_options(self) -> dict[str, str]:
        mechanism = self.sasl_mechanism
        module, options = parse_jaas(self.sasl_jaas_config)
        if mechanism not in MODULES.get(module, ()):
            wanted = next(name for name, served in MODULES.items() if mechanism in served)
            raise ConfigError(
                f"sasl.jaas.config: {module} is not the login module of {mechanism}, {wanted}"
            )
        return options
