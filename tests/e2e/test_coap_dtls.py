"""CoAP over DTLS: with libcoap's client, and with OpenSSL's program."""

import json
import os
import select
import socket
import subprocess
from typing import Self

import pytest

from harness.certificates import Authority, profile_of
from harness.coap import ACK, CON, GET, OBSERVE, POST, URI_PATH, CoapClient, Message, observers, path
from harness.rest import telemetry, unique
from harness.server import eventually


@pytest.fixture
def secure(shared, run, authority):
    """Runs coap-client over DTLS."""

    def start(target: str, *arguments: str, **options) -> CoapClient:
        return run(target, *arguments, address=shared.coaps_address, trusted=authority.path, **options)

    return start


def test_a_device_is_known_by_its_certificate_over_dtls(secure, tenant, authority: Authority):
    device = tenant.create_device()
    identity = authority.issue(unique("device"))
    tenant.set_credentials(device.id, "X509_CERTIFICATE", None, identity.pem)
    sent = secure("api/v1/telemetry", method="post", payload='{"a":1}', identity=identity).finish()
    assert sent.codes == ["2.01"], sent.log
    assert eventually(lambda: tenant.values(device.id, "a")) == [1]
    # Observing, with a change that comes in blocks.
    client = secure("api/v1/attributes", "-s", "8", identity=identity)
    assert eventually(lambda: client.received) == "{}\n"
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"long": "x" * 3000})
    # The client prints what it has of a body, and a line's end when it has all of it.
    assert eventually(lambda: client.received.count("\n") == 2)
    assert json.loads(client.received.splitlines()[1]) == {"long": "x" * 3000}
    client.end()
    stranger = secure("api/v1/telemetry", method="post", payload="{}", identity=authority.issue(unique("no"))).finish()
    assert stranger.codes == ["4.01"], stranger.log


def test_a_token_works_over_dtls_and_a_certificate_is_not_needed(secure, tenant, device, shared):
    sent = secure(path(device, "telemetry"), method="post", payload='{"a":1}').finish()
    assert sent.codes == ["2.01"], sent.log
    assert eventually(lambda: tenant.values(device.id, "a")) == [1]
    assert secure("api/v1/nobody/telemetry", method="post", payload='{"a":1}').finish().codes == ["4.01"]
    samples = shared.metrics()
    assert samples['fieldline_transport_accepted_connections_total{transport="coaps"}'] >= 2


class Openssl:
    """A session of the program of OpenSSL, which goes on as long as its owner writes.

    The cipher is the one that RFC 7252 wants of every device.
    """

    def __init__(self, shared, authority: Authority, *options):
        host, port = shared.coaps_address
        command = ["openssl", "s_client", "-dtls1_2", "-connect", f"{host}:{port}", "-CAfile", authority.path]
        command += ["-cipher", "ECDHE-ECDSA-AES128-CCM8:@SECLEVEL=0", *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.communicate()

    def write(self, data: bytes) -> None:
        """Writes what becomes one message."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, message: Message) -> Message:
        """Sends a message and returns the answer. Only for one that prints nothing else (`-quiet`)."""
        self.write(message.encode())
        told, _, _ = select.select([self.process.stdout], [], [], 20)
        assert told, "nothing was answered"
        return Message.decode(os.read(self.process.stdout.fileno(), 2048))


def post(number: int, feature: str = "telemetry") -> Message:
    targets = [(URI_PATH, segment.encode()) for segment in ("api", "v1", feature)]
    return Message(CON, POST, number, b"\x01", targets, b'{"a":1}')


def test_a_device_is_created_by_the_chain_of_its_certificate_over_dtls(shared, authority, tenant, tmp_path):
    factory = Authority(tmp_path / "factory")
    profile_of(tenant, factory, creates=True)
    name = unique("made")
    identity = factory.issue(f"{name}@factory")
    shown = ["-cert", identity.certificate, "-key", identity.key, "-cert_chain", factory.path]
    with Openssl(shared, authority, "-quiet", *shown) as session:
        answer = session.ask(post(7))
    assert (answer.kind, answer.status, answer.id) == (ACK, "2.01", 7)
    device = tenant.device_by_name(name)["id"]["id"]
    assert eventually(lambda: tenant.values(device, "a")) == [1]


def test_what_is_no_dtls_ends_nothing(shared, secure, tenant, device):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.connect(shared.coaps_address)
        hello = bytes.fromhex("16feff0000000000000000") + b"\x00\x40" + b"\x01" + bytes(63)
        for datagram in (b"", b"\x40\x01\x00\x01", hello, b"\x16\xfe\xfd" + bytes(1300), bytes(65_000)):
            stranger.send(datagram)
    sent = secure(path(device, "telemetry"), method="post", payload='{"a":1}').finish()
    assert sent.codes == ["2.01"], sent.log


def test_a_certificate_of_nobody_counts_once_it_is_saved_in_the_session_that_showed_it(shared, authority, tenant):
    identity = authority.issue(unique("late"))
    device = tenant.create_device()
    shown = ["-cert", identity.certificate, "-key", identity.key]
    with Openssl(shared, authority, "-quiet", *shown) as session:
        assert [session.ask(post(number)).status for number in (1, 2)] == ["4.01"] * 2
        tenant.set_credentials(device.id, "X509_CERTIFICATE", None, identity.pem)
        assert session.ask(post(3)).status == "2.01"
    assert eventually(lambda: tenant.values(device.id, "a")) == [1]


def test_who_ends_its_session_observes_no_longer(shared, authority, tenant):
    devices, before = [tenant.create_device() for _ in range(2)], observers(shared)
    with Openssl(shared, authority) as session:
        for number, device in enumerate(devices, 1):
            targets = [(URI_PATH, segment.encode()) for segment in ("api", "v1", device.token, "attributes")]
            session.write(Message(CON, GET, number, bytes([number]), [(OBSERVE, b""), *targets]).encode())
            assert eventually(lambda number=number: observers(shared) == before + number)
        # A command to the program, which says goodbye.
        session.write(b"Q\n")
        assert eventually(lambda: observers(shared) == before)
