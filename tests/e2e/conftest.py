"""Fixtures: servers that are always ended, and whose output is shown when a test fails."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness.broker import SETTINGS, BrokerClient, broker_settings, connect_raw, leave_raw  # noqa: E402
from harness.certificates import Authority  # noqa: E402
from harness.chains import REACHES_SERVICES  # noqa: E402
from harness.coap import CoapClient  # noqa: E402
from harness.paho_device import PahoDevice  # noqa: E402
from harness.people import create_tenancy  # noqa: E402
from harness.rest import Rest, unique  # noqa: E402
from harness.server import BINARY, SYSADMIN, Server  # noqa: E402
from harness.wire import Wire  # noqa: E402

LOG_LINES_SHOWN = 60

# What takes all that the machine has, or weighs and times something: never two of these at a time.
HEAVY = {
    "test_bench",
    "test_broker_kill_loop",
    "test_clock",
    "test_disk_full",
    "test_kill_loop",
    "test_many_connections",
    "test_many_devices",
    "test_overload",
    "test_pause",
    "test_set_aside",
    "test_siege",
    "test_slow_disk",
    "test_soak",
}
_servers: list[Server] = []


def pytest_report_header() -> str:
    return f"binary: {BINARY}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers (pytest-xdist): a file stays together, all that is heavy is one file, and comes first, as it takes longest."""
    items.sort(key=lambda item: item.path.stem not in HEAVY)
    for item in items:
        name = item.path.stem
        item.add_marker(pytest.mark.xdist_group("heavy" if name in HEAVY else name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for server in _servers:
            tail = "\n".join(server.log().splitlines()[-LOG_LINES_SHOWN:])
            report.sections.append((f"server output, {server.log_path}", tail))
    return report


@pytest.fixture
def make_server(tmp_path: Path):
    """Makes servers that are ended with the test, cleanly if they still run."""
    made: list[Server] = []

    def make(name: str = "server", **options) -> Server:
        server = Server(tmp_path / name, **options)
        made.append(server)
        _servers.append(server)
        return server

    yield make
    try:
        for server in made:
            server.close()
    finally:
        for server in made:
            server.leave()
            _servers.remove(server)


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    """The certificate authority of this test run."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def shared(tmp_path_factory, authority: Authority):
    """One demo server with TLS, CoAP and DTLS for all tests that leave it as they found it."""
    identity = authority.issue("localhost", server=True)
    server = Server(
        tmp_path_factory.mktemp("shared"),
        env={
            "FIELDLINE_MQTTS_LISTEN": "127.0.0.1:0",
            "FIELDLINE_MQTTS_CERTIFICATE": identity.certificate,
            "FIELDLINE_MQTTS_PRIVATE_KEY": identity.key,
            "FIELDLINE_COAP_LISTEN": "127.0.0.1:0",
            "FIELDLINE_COAPS_LISTEN": "127.0.0.1:0",
            "FIELDLINE_COAPS_CERTIFICATE": identity.certificate,
            "FIELDLINE_COAPS_PRIVATE_KEY": identity.key,
            # Tests of limits wait for it.
            "FIELDLINE_USAGE_REPORT_INTERVAL": "1s",
            "FIELDLINE_RULES_STATISTICS_INTERVAL": "5s",
        }
        | REACHES_SERVICES,
    )
    _servers.append(server)
    with server.lent():
        yield server
    _servers.remove(server)


@pytest.fixture(scope="session")
def tenant(shared: Server) -> Rest:
    """The administrator of the demo tenant."""
    return shared.rest()


@pytest.fixture(scope="session")
def sysadmin(shared: Server) -> Rest:
    """The system administrator."""
    return shared.rest(*SYSADMIN)


@pytest.fixture
def rest(sysadmin: Rest) -> Rest:
    """An administrator of a tenant that no other test uses: its rule chains are its own."""
    return create_tenancy(sysadmin).admin


@pytest.fixture
def device(tenant: Rest):
    """A device of this test's own."""
    return tenant.create_device()


@pytest.fixture
def dial(shared: Server):
    """Opens raw connections to the shared server."""
    opened: list[Wire] = []

    def open_wire(version: int, **options) -> Wire:
        connection = Wire(options.pop("address", shared.mqtt_address), version, **options)
        opened.append(connection)
        return connection

    yield open_wire
    for connection in opened:
        connection.close()


@pytest.fixture
def seed() -> random.Random:
    """Randomness that a failed run can be repeated with: FIELDLINE_TEST_SEED."""
    number = int(os.environ.get("FIELDLINE_TEST_SEED", time.time_ns() & 0xFFFFFFFF))
    print(f"FIELDLINE_TEST_SEED={number}")
    return random.Random(number)


@pytest.fixture
def run(shared: Server):
    """Runs coap-client; what still runs ends with the test."""
    started = []

    def start(path: str, *arguments: str, **options) -> CoapClient:
        client = CoapClient(options.pop("address", shared.coap_address), path, *arguments, **options)
        started.append(client)
        return client

    yield start
    for client in started:
        if client.process.poll() is None:
            client.end()


@pytest.fixture
def connect(shared: Server):
    """Connects to the shared server over MQTT, with such a login; the connections end with the test."""
    opened: list[PahoDevice] = []

    def open_one(version: str = "3.1.1", **login) -> PahoDevice:
        connection = PahoDevice(shared.mqtt_address, version, **login)
        opened.append(connection)
        assert connection.connect() == 0
        return connection

    yield open_one
    for connection in opened:
        connection.__exit__()


@pytest.fixture(scope="session")
def broker(tmp_path_factory) -> Server:
    """One broker for everybody, for all tests that leave it as they found it."""
    server = Server(tmp_path_factory.mktemp("broker"), demo=False, env=SETTINGS)
    _servers.append(server)
    with server.lent():
        yield server
    _servers.remove(server)


@pytest.fixture
def start_broker(make_server):
    """Starts a broker of the test's own, with such settings."""
    return lambda **settings: make_server("own broker", demo=False, env=broker_settings(**settings)).start()


@pytest.fixture
def join(request):
    """Connects clients to a broker, by default the one for all tests; they leave with the test."""
    joined: list[BrokerClient] = []

    def join_one(version: str = "5.0", client_id: str | None = None, **fields) -> BrokerClient:
        server = fields.pop("server", None) or request.getfixturevalue("broker")
        client = BrokerClient(server.broker_address, version, client_id, **fields)
        joined.append(client)
        assert client.connect() == 0
        return client

    yield join_one
    for client in joined:
        client.leave()


@pytest.fixture
def raw(request):
    """Opens raw connections to a broker, by default the one for all tests."""
    opened: list[Wire] = []

    def open_wire(version: int, **options) -> Wire:
        server = options.pop("server", None) or request.getfixturevalue("broker")
        connection = Wire(server.broker_address, version, **options)
        opened.append(connection)
        return connection

    yield open_wire
    for connection in opened:
        connection.close()


@pytest.fixture
def absent(raw):
    """Makes sessions whose client is away, with such subscriptions; returns the client identifier."""

    def make(version: int, *filters: tuple[str, int], **options) -> str:
        client_id, connection = unique("absent"), raw(version, **options)
        assert connect_raw(connection, client_id) == 0
        assert connection.subscribe(*filters) == [qos for _, qos in filters]
        leave_raw(connection)
        return client_id

    return make
