# SPDX-License-Identifier: Apache-2.0
"""A real broker with TLS, SASL and ACLs, and the properties files of Kafka's own clients for it.

Listeners  SECURED (SASL_SSL: PLAIN, SCRAM-SHA-512, OAUTHBEARER), MUTUAL (SSL with a certificate of
           the client), and a plaintext one without restrictions.
Users      "viewer" may Describe all groups and the topic "orders", "half" the group "payments" and
           this topic; "nobody" has no permission;
           "lister" may Describe the cluster and __consumer_offsets; "reader" may Read
           __consumer_offsets. The certificate's user, CN=viewer, has the permissions of "viewer".
Stores     openssl and keytool make them: client.p12, client.jks and client.pem contain the same
           key; trust.p12, trust.jks and ca.pem contain the CA. other-ca.pem is a CA that signed no
           certificate of the broker or the client.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.admin._acls import ACLResourcePatternType

from tests.support.broker import Broker

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "väry-secret&1"
STORE_PASSWORD = "store-secret-2"
SECRETS = (PASSWORD, STORE_PASSWORD)

_NEW_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
LISTENERS = {"SECURED": "SASL_SSL", "MUTUAL": "SSL"}
_KAFKA = "org.apache.kafka.common.security"
_LOGIN = {
    "PLAIN": f"{_KAFKA}.plain.PlainLoginModule",
    "SCRAM-SHA-512": f"{_KAFKA}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule",
}


class Stores(NamedTuple):
    """The directory of the stores; `make` makes them with openssl and keytool."""

    directory: Path

    def make(self) -> None:
        for name in ("ca", "other-ca"):
            self._openssl(
                f"req -x509 {_NEW_KEY} -subj /CN={name} -keyout {name}.key -out {name}.pem"
            )
        for name, subject in (("server", "broker"), ("client", "viewer")):
            self._signed(name, subject)
        for store, kind in (("jks", "JKS"), ("p12", "PKCS12")):
            self._keytool(
                f"-importcert -alias ca -file ca.pem -keystore trust.{store} -storetype {kind}"
            )
        self._keytool(
            "-importkeystore -srckeystore client.p12 -srcstoretype PKCS12 -destkeystore client.jks "
            f"-deststoretype JKS -srcstorepass {STORE_PASSWORD}"
        )
        self._openssl(
            "pkcs8 -topk8 -v2 aes-256-cbc -in client.key -out client-sealed.key "
            f"-passout pass:{STORE_PASSWORD}"
        )
        sealed, chain = (self.text(name) for name in ("client-sealed.key", "client.crt"))
        (self.directory / "client.pem").write_text(sealed + chain)

    def text(self, name: str) -> str:
        return (self.directory / name).read_text()

    def _signed(self, name: str, subject: str) -> None:
        """Makes a key and its certificate, which the CA signs, in PEM and PKCS12 files."""
        self._openssl(f"req {_NEW_KEY} -subj /CN={subject} {_files(name, 'csr')}")
        (self.directory / "san").write_text("subjectAltName=IP:127.0.0.1\n")
        self._openssl(
            f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
            f"-extfile san -out {name}.crt"
        )
        self._openssl(
            f"pkcs12 -export -name {name} -inkey {name}.key -in {name}.crt -certfile ca.pem "
            f"-out {name}.p12 -passout pass:{STORE_PASSWORD}"
        )

    def _openssl(self, arguments: str) -> None:
        self._run(["openssl", *arguments.split()])

    def _keytool(self, arguments: str) -> None:
        self._run(["keytool", *arguments.split(), "-noprompt", "-storepass", STORE_PASSWORD])

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def _files(name: str, form: str) -> str:
    return f"-keyout {name}.key -out {name}.{form}"


def secured_broker(stores: Stores) -> Broker:
    """Returns a broker with the listeners above, not yet started."""
    sasl = "listener.name.secured."
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "ssl.keystore.location": str(stores.directory / "server.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.truststore.location": str(stores.directory / "trust.p12"),
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        f"{sasl}sasl.enabled.mechanisms": ",".join(_LOGIN),
        f"{sasl}plain.sasl.jaas.config": f"{_LOGIN['PLAIN']} required "
        f'user_viewer="{escaped(PASSWORD)}";',
        f"{sasl}scram-sha-512.sasl.jaas.config": f"{_LOGIN['SCRAM-SHA-512']} required;",
        f"{sasl}oauthbearer.sasl.jaas.config": f"{_LOGIN['OAUTHBEARER']} required "
        'unsecuredLoginStringClaim_sub="broker";',
    }
    return Broker(properties=properties, listeners=LISTENERS)


def escaped(text: str) -> str:
    """Escapes a string for a properties file, whose encoding is not UTF-8."""
    return "".join(one if one.isascii() else f"\\u{ord(one):04x}" for one in text)


def permit(server: str) -> None:
    """Creates the users with their permissions, through the plaintext listener."""
    with KafkaAdminClient(bootstrap_servers=server) as admin:
        mechanism = ScramMechanism.SCRAM_SHA_512
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion(user, mechanism, PASSWORD.encode())
                for user in ("viewer", "half", "nobody", "lister", "reader")
            ]
        )
        admin.create_acls(
            [
                _may("viewer", ACLOperation.DESCRIBE, ResourceType.GROUP, "*"),
                _may("half", ACLOperation.DESCRIBE, ResourceType.GROUP, "payments"),
                _may("half", ACLOperation.DESCRIBE, ResourceType.TOPIC, "orders"),
                _may("viewer", ACLOperation.DESCRIBE, ResourceType.TOPIC, "orders"),
                _may("lister", ACLOperation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"),
                _may("lister", ACLOperation.DESCRIBE, ResourceType.TOPIC, "__consumer_offsets"),
                _may("reader", ACLOperation.READ, ResourceType.TOPIC, "__consumer_offsets"),
            ]
        )


def _may(user: str, operation: Any, kind: Any, name: str) -> Any:
    pattern = ResourcePattern(kind, name, ACLResourcePatternType.LITERAL)
    return ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, pattern)


def sasl(mechanism: str, user: str = "viewer", password: str = PASSWORD) -> str:
    """Returns the lines of a properties file for the SECURED listener, without the trust store."""
    options = f'username="{user}" password="{escaped(password)}"'
    if mechanism == "OAUTHBEARER":
        options = f'unsecuredLoginStringClaim_sub="{user}"'
    return (
        f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={_LOGIN[mechanism]} required \\\n    {options};\n"
    )
