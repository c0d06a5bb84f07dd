"""Certificates for the TLS listener and for devices, made for one test run."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .rest import Rest, unique

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key, as files."""

    certificate: Path
    key: Path

    @property
    def pem(self) -> str:
        """The certificate as text."""
        return self.certificate.read_text()

    def followed_by(self, other: Identity) -> Identity:
        """This identity, showing another certificate after its own."""
        chain = self.certificate.with_suffix(".chain.pem")
        chain.write_text(self.pem + other.pem)
        return Identity(chain, self.key)


class Authority:
    """A certificate authority that a test trusts."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Fieldline test authority")])
        builder = _builder(self.name, self.name, self.key, valid=(-DAY, 365 * DAY))
        self.certificate = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True).sign(
            self.key, hashes.SHA256()
        )
        self.path = folder / "ca.pem"
        self.path.write_bytes(_pem(self.certificate))

    def issue(self, name: str, *, server: bool = False, valid: tuple = (-DAY, 30 * DAY)) -> Identity:
        """A certificate for a server on this machine, or for a device."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        builder = _builder(subject, self.name, key, valid).add_extension(x509.ExtendedKeyUsage([usage]), False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        certificate = (builder.add_extension(names, False) if server else builder).sign(self.key, hashes.SHA256())
        identity = Identity(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        identity.certificate.write_bytes(_pem(certificate))
        identity.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return identity

    def client(self, identity: Identity | None = None) -> ssl.SSLContext:
        """What a device needs to connect: trust in this authority, and its own certificate if it has one."""
        context = ssl.create_default_context(cafile=str(self.path))
        if identity is not None:
            context.load_cert_chain(identity.certificate, identity.key)
        return context


def profile_of(tenant: Rest, factory: Authority, *, creates: bool) -> dict:
    """A profile that takes the devices whose certificates an authority has issued, by the name before `@factory`."""
    provision = {
        "type": "X509_CERTIFICATE_CHAIN",
        "provisionDeviceSecret": factory.path.read_text(),
        "certificateRegExPattern": "(.*)@factory",
        "allowCreateNewDevicesByX509Certificate": creates,
    }
    profile = {
        "name": unique("factory"),
        "type": "DEFAULT",
        "transportType": "DEFAULT",
        "provisionType": "X509_CERTIFICATE_CHAIN",
        "profileData": {
            "configuration": {"type": "DEFAULT"},
            "transportConfiguration": {"type": "DEFAULT"},
            "provisionConfiguration": provision,
        },
    }
    return tenant.post("/api/deviceProfile", profile).json()


def _builder(subject: x509.Name, issuer: x509.Name, key, valid: tuple) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + valid[0])
        .not_valid_after(now + valid[1])
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
