"""Devices that connect over TLS, with and without a certificate of their own."""

import datetime
import hashlib
import ssl

import pytest

from harness.certificates import Authority, Identity, profile_of
from harness.paho_device import VERSIONS, PahoDevice
from harness.rest import unique
from harness.server import eventually
from harness.wire import V5, V311

TELEMETRY = "v1/devices/me/telemetry"


def trimmed(pem: str) -> str:
    return "".join(line for line in pem.splitlines() if "CERTIFICATE" not in line)


@pytest.fixture
def certified(tenant, authority: Authority):
    """Makes a device that is known by its certificate."""

    def make(**options) -> tuple:
        device = tenant.create_device()
        identity: Identity = authority.issue(unique("device"), **options)
        tenant.set_credentials(device.id, "X509_CERTIFICATE", None, identity.pem)
        return device, identity

    return make


@pytest.mark.parametrize("version", VERSIONS)
def test_an_access_token_works_over_tls(shared, authority, tenant, device, version):
    with PahoDevice(shared.mqtts_address, version, username=device.token, tls=authority.client()) as client:
        assert client.connect() == 0
        assert client.publish(TELEMETRY, '{"a":1}') == 0
    assert eventually(lambda: tenant.values(device.id, "a")) == [1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_device_is_known_by_its_certificate(shared, authority, tenant, certified, version):
    device, identity = certified()
    with PahoDevice(shared.mqtts_address, version, tls=authority.client(identity)) as client:
        assert client.connect() == 0
        assert client.publish(TELEMETRY, '{"a":1}') == 0
    assert eventually(lambda: tenant.values(device.id, "a")) == [1]


def test_the_id_of_certificate_credentials_is_the_hash_of_the_certificate(tenant, certified):
    device, identity = certified()
    stored = tenant.credentials(device.id)
    assert stored["credentialsId"] == hashlib.sha3_256(trimmed(identity.pem).encode()).hexdigest()
    assert stored["credentialsValue"] == trimmed(identity.pem)


@pytest.mark.parametrize(("version", "code"), [(V311, 5), (V5, 0x87)])
def test_an_unknown_certificate_is_refused(shared, authority, dial, device, version, code):
    tls = authority.client(authority.issue(unique("stranger")))
    connection = dial(version, address=shared.mqtts_address, tls=tls)
    # The certificate decides: a valid token beside it does not help.
    assert connection.connect(username=device.token) == code
    connection.ended(code)


@pytest.mark.parametrize(("version", "code"), [(V311, 5), (V5, 0x87)])
def test_an_expired_certificate_is_refused(shared, authority, dial, certified, version, code):
    yesterday = datetime.timedelta(days=-1)
    _, identity = certified(valid=(10 * yesterday, yesterday))
    connection = dial(version, address=shared.mqtts_address, tls=authority.client(identity))
    assert connection.connect() == code
    connection.ended(code)


def test_somebody_elses_certificate_behind_ones_own_proves_nothing(shared, authority, dial, certified):
    _, victim = certified()
    attacker = authority.issue(unique("attacker"))
    # The attacker has the key of the first certificate only; the victim's is no secret.
    chain = attacker.followed_by(victim)
    connection = dial(V5, address=shared.mqtts_address, tls=authority.client(chain))
    assert connection.connect() == 0x87


def test_a_wrong_token_over_tls_is_refused_as_over_tcp(shared, authority, dial):
    assert dial(V5, address=shared.mqtts_address, tls=authority.client()).connect(username="nobody") == 0x86


def test_plain_text_on_the_tls_port_is_refused_and_tls_on_the_plain_port_too(shared, authority, dial, device):
    plain = dial(V311, address=shared.mqtts_address)
    plain.send(b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04abcd")
    packet = plain.socket.recv(64)
    assert packet == b"" or packet[0] == 0x15, "neither a close nor a TLS alert"
    with pytest.raises((ssl.SSLError, ConnectionError, TimeoutError)):
        dial(V311, tls=authority.client(), timeout=5)
    assert dial(V311).connect(username=device.token) == 0


# -- certificates that a profile's authority has issued --


@pytest.fixture
def factory(tmp_path) -> Authority:
    """An authority that issues certificates for devices."""
    return Authority(tmp_path / "factory")


def issued(factory: Authority, name: str, **options) -> Identity:
    """A certificate of the factory that shows the factory's own one after it."""
    return factory.issue(name, **options).followed_by(Identity(factory.path, factory.path))


def test_a_device_is_created_when_its_certificate_comes_from_the_authority_of_a_profile(
    shared, authority, tenant, factory, dial
):
    profile = profile_of(tenant, factory, creates=True)
    name = unique("made")
    identity = issued(factory, f"{name}@factory")
    with PahoDevice(shared.mqtts_address, tls=authority.client(identity)) as client:
        assert client.connect() == 0
        assert client.publish(TELEMETRY, '{"a":1}') == 0
    device = tenant.device_by_name(name)
    assert device["deviceProfileId"] == profile["id"]
    assert tenant.credentials(device["id"]["id"])["credentialsType"] == "X509_CERTIFICATE"
    assert eventually(lambda: tenant.values(device["id"]["id"], "a")) == [1]
    # A new certificate replaces the old one, and the device comes back with it alone.
    renewed = issued(factory, f"{name}@factory")
    for _ in range(2):
        with PahoDevice(shared.mqtts_address, tls=authority.client(renewed)) as client:
            assert client.connect() == 0
    other = issued(factory, unique("without the pattern"))
    assert dial(V5, address=shared.mqtts_address, tls=authority.client(other)).connect() == 0x87


def test_the_authority_of_a_profile_lets_nobody_in_whom_it_does_not_know(
    shared, authority, tenant, factory, dial, tmp_path
):
    profile = profile_of(tenant, factory, creates=False)
    unknown = issued(factory, f"{unique('unknown')}@factory")
    assert dial(V5, address=shared.mqtts_address, tls=authority.client(unknown)).connect() == 0x87
    known = tenant.create_device(unique("known"), type=None, deviceProfileId=profile["id"])
    tenant.set_credentials(known.id, "X509_CERTIFICATE", None, factory.issue(unique("first")).pem)
    # Whoever shows the authority's certificate behind one of their own has nothing of it.
    forger = Authority(tmp_path / "forger")
    forged = forger.issue(f"{known.name}@factory").followed_by(Identity(factory.path, factory.path))
    assert dial(V5, address=shared.mqtts_address, tls=authority.client(forged)).connect() == 0x87
    genuine = issued(factory, f"{known.name}@factory")
    assert dial(V5, address=shared.mqtts_address, tls=authority.client(genuine)).connect() == 0
