"""A throw-away certificate authority and the kubeconfig files of a cluster.

Shell: draws random keys, reads the clock, writes files that only their owner may read.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=365)
CLOCK_SKEW = datetime.timedelta(hours=1)
USAGES = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into a folder. Elliptic curves: a cluster's dozen keys cost milliseconds."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        certificate = (
            _builder(self._name, issuer=self._name, key=self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(ca=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pair = _write(folder, "ca", certificate, self._key)

    @property
    def certificate(self) -> Path:
        return self.pair.certificate

    def issue(
        self, file: str, common_name: str, *, groups: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> Pair:
        """Sign a certificate for a user (`common_name`, member of `groups`) that also serves `hosts`.

        `hosts` are DNS names or IP addresses; the file names are `<file>.crt` and `<file>.key`.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(common_name, groups), issuer=self._name, key=key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(USAGES), critical=False)
        builder = builder.add_extension(_usage(ca=False), critical=True)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return _write(self.folder, file, builder.sign(self._key, hashes.SHA256()), key)

    def signing_pair(self, file: str) -> Pair:
        """Return a key pair for service-account tokens; `certificate` is the public key."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return Pair(
            _private(self.folder / f"{file}.pub", public), _private(self.folder / f"{file}.key", _pem(key))
        )

    def kubeconfig(self, file: Path, *, server: str, cluster: str, user: str, pair: Pair) -> Path:
        """Write a kubeconfig file with everything embedded, so that it may be copied anywhere."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": cluster,
                    "cluster": {"server": server, "certificate-authority-data": _encoded(self.certificate)},
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": _encoded(pair.certificate),
                        "client-key-data": _encoded(pair.key),
                    },
                }
            ],
            "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
            "current-context": cluster,
        }
        return _private(file, json.dumps(document, indent=1).encode())


def _builder(
    subject: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    """What the key is for; Python 3.13 and newer refuse certificates that do not say it."""
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, groups: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(folder: Path, file: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    encoded = certificate.public_bytes(serialization.Encoding.PEM)
    return Pair(_private(folder / f"{file}.crt", encoded), _private(folder / f"{file}.key", _pem(key)))


def _private(path: Path, content: bytes) -> Path:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
