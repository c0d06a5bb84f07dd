"""What tenants' nodes may connect to, and whose word counts about who is behind a proxy."""

import socket

import pytest
import requests

from harness import wire
from harness.chains import CALL, SWITCH, Chain, Service, events, post
from harness.people import PASSWORD, create_tenancy
from harness.proxy_protocol import LOCAL, SIGNATURE, v1, v2
from harness.server import SYSADMIN, eventually

DEBUG = {"failuresEnabled": True, "allEnabled": False}
REFUSED = "is refused"


def calls(url: str) -> tuple[str, dict]:
    return "rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": url}


def gets(url: str, **more) -> tuple[str, dict]:
    return "rest.TbRestApiCallNode", CALL | {"requestMethod": "GET", "restEndpointUrlPattern": url} | more


def at_once(nodes: dict[str, tuple[str, dict]]) -> Chain:
    """A chain that gives telemetry to each of the nodes."""
    chain = Chain()
    switch = chain.node(SWITCH)
    for name, node in nodes.items():
        chain.connect(switch, "Post telemetry", chain.node(node, name, debugSettings=DEBUG))
    return chain


def failures(rest, chain: dict) -> dict[str, str]:
    """The last error of each node, by its name."""
    found = {}
    for node in rest.get(f"/api/ruleChain/{chain['id']['id']}/metadata").json()["nodes"]:
        for event in events(rest, "RULE_NODE", node["id"]["id"], "DEBUG_RULE_NODE"):
            if event["body"].get("error"):
                found[node["name"]] = event["body"]["error"]
    return found


def test_nodes_do_not_reach_the_machine_nor_the_metadata_of_a_cloud(make_server):
    server = make_server().start()
    rest = server.rest()
    port = server.http_address[1]
    hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "LocalHost",
    ]
    hosts += ["[64:ff9b::7f00:1]"]
    nodes = {host: gets(f"http://{host}:{port}/metrics") for host in hosts}
    nodes |= {
        "metadata": gets("http://169.254.169.254/latest/meta-data/"),
        "metadata name": gets("http://metadata.google.internal/computeMetadata/v1/"),
        "private": gets("http://10.0.0.1/"),
        "unique local": gets("http://[fd00::1]/"),
        "proxy": gets("http://1.1.1.1/", enableProxy=True, proxyHost="127.0.0.1", proxyPort=port),
        "proxy name": gets("http://1.1.1.1/", enableProxy=True, proxyHost="localhost", proxyPort=port),
        "mqtt": ("mqtt.TbMqttNode", {"topicPattern": "t", "host": "127.0.0.1", "port": server.mqtt_address[1]}),
        "azure": (
            "mqtt.azure.TbAzureIotHubNode",
            {
                "topicPattern": "t",
                "host": "localhost",
                "clientId": "c",
                "credentials": {"type": "sas", "sasKey": "a2V5"},
            },
        ),
        "kafka": ("kafka.TbKafkaNode", {"topicPattern": "t", "bootstrapServers": f"localhost:{port}"}),
        "rabbitmq": ("rabbitmq.TbRabbitMqNode", {"host": "127.0.0.1", "port": port, "routingKeyPattern": "r"}),
        "sms": (
            "sms.TbSendSmsNode",
            {
                "numbersToTemplate": "+4912345",
                "smsMessageTemplate": "hi",
                "useSystemSmsSettings": False,
                "smsProviderConfiguration": {
                    "type": "SMPP",
                    "host": "127.0.0.1",
                    "port": port,
                    "systemId": "a",
                    "password": "b",
                },
            },
        ),
        "sqs": (
            "aws.sqs.TbSqsNode",
            {
                "queueUrlPattern": f"http://127.0.0.1:{port}/queue",
                "accessKeyId": "a",
                "secretAccessKey": "b",
                "region": "eu-west-1",
            },
        ),
    }
    chain = at_once(nodes)
    mail = {"useSystemSmtpSettings": False, "smtpHost": "127.0.0.1", "smtpPort": port}
    addressed = chain.node(
        (
            "mail.TbMsgToEmailNode",
            {
                "fromTemplate": "a@example.org",
                "toTemplate": "b@example.org",
                "subjectTemplate": "s",
                "bodyTemplate": "b",
                "mailBodyType": "false",
            },
        )
    )
    sent = chain.node(("mail.TbSendEmailNode", mail), "mail", debugSettings=DEBUG)
    chain.connect(0, "Post telemetry", addressed).connect(addressed, "Success", sent)
    nodes["mail"] = mail
    saved = chain.save(rest, root=True)
    post(server, rest.create_device(), {"n": 1})
    found = eventually(lambda: (seen := failures(rest, saved)).keys() == nodes.keys() and seen, within=30)
    assert {name: error for name, error in found.items() if REFUSED not in error} == {}
    for name, reason in [("127.0.0.1", "loopback"), ("private", "private range"), ("metadata", "metadata service")]:
        assert f"refused: {reason}" in found[name] and "the operator may allow it by egress.allow" in found[name]
    assert "address 127.0.0.1 of host localhost" in found["kafka"]


@pytest.mark.parametrize("by", ["range", "host"])
def test_the_operator_opens_ranges_and_hosts(make_server, by):
    with Service(lambda _: 200) as service:
        port = service.server.server_port
        address, name = f"http://127.0.0.1:{port}/", f"http://localhost:{port}/"
        env, opened, closed = {
            "range": ({"FIELDLINE_EGRESS_ALLOW": "127.0.0.1/32"}, [address, name], [f"http://127.0.0.2:{port}/"]),
            "host": (
                {"FIELDLINE_EGRESS_ALLOW_HOSTS": f"localhost:{port}"},
                [name],
                [address, "http://localhost:9/"],
            ),
        }[by]
        server = make_server(env=env).start()
        rest = server.rest()
        saved = at_once({url: calls(url) for url in opened + closed}).save(rest, root=True)
        post(server, rest.create_device(), {"n": 1})
        eventually(lambda: len(service.received) == len(opened))
        found = eventually(lambda: (seen := failures(rest, saved)).keys() == set(closed) and seen)
        assert all(REFUSED in error for error in found.values()), found


def test_a_tenant_profile_opens_what_it_says_to_its_tenants_alone(make_server):
    server = make_server().start()
    sysadmin = server.rest(*SYSADMIN)
    with Service(lambda _: 200) as service:
        trusted, other = create_tenancy(sysadmin, allowedEgress=["127.0.0.0/8"]), create_tenancy(sysadmin)
        chains = {}
        for tenancy in (trusted, other):
            rest = tenancy.admin
            saved = at_once({"call": calls(service.url)}).save(rest, root=True)
            device = rest.create_device()
            chains[rest] = (saved, device)
            post(server, device, {"of": tenancy.tenant["title"]})
        found = eventually(lambda: failures(other.admin, chains[other.admin][0]))
        assert "address 127.0.0.1 is refused: loopback" in found["call"]
        eventually(lambda: service.received)
        assert [body["of"] for body in service.received] == [trusted.tenant["title"]]

        # A tenant's administrator cannot change that, and the operator can at any time.
        other.admin.post("/api/tenantProfile", other.profile, expect=403)
        profile = sysadmin.get(f"/api/tenantProfile/{trusted.profile['id']['id']}").json()
        assert profile["profileData"]["configuration"]["allowedEgress"] == ["127.0.0.0/8"]
        profile["profileData"]["configuration"]["allowedEgress"] = "127.0.0.0/8"
        sysadmin.post("/api/tenantProfile", profile, expect=400)
        profile["profileData"]["configuration"]["allowedEgress"] = []
        sysadmin.post("/api/tenantProfile", profile)
        saved, device = chains[trusted.admin]
        post(server, device, {"of": "nobody"})
        eventually(lambda: failures(trusted.admin, saved))
        assert len(service.received) == 1


def log_in(server, user: str, password: str, **headers) -> requests.Response:
    """A log-in with headers of a proxy."""
    body = {"username": user, "password": password}
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return requests.post(f"{server.http}/api/auth/login", json=body, headers=headers, timeout=10)


@pytest.mark.parametrize("trusted", [True, False])
def test_who_guesses_behind_a_trusted_proxy_locks_out_nobody_else(make_server, trusted):
    env = {"FIELDLINE_HTTP_TRUSTED_PROXIES": "127.0.0.1"} if trusted else {}
    server = make_server(env=env).start()
    user = create_tenancy(server.rest(*SYSADMIN)).admin.user["email"]
    bad = {"X_Forwarded_For": "198.51.100.66"}
    good = {"X_Forwarded_For": "203.0.113.9, 192.0.2.7"}
    for _ in range(10):
        assert log_in(server, user, "a wrong one", **bad).status_code == 401
    answer = log_in(server, user, PASSWORD, **good)
    if not trusted:
        assert answer.status_code != 200, "who is not trusted is not heard"
        return
    assert answer.status_code == 200, answer.text
    assert log_in(server, user, PASSWORD, **bad).status_code != 200, "where the guesses come from"


def test_limits_and_the_audit_log_go_by_who_is_behind_the_proxy(make_server):
    limit = {"FIELDLINE_API_LOGINS_PER_MINUTE": 4}
    server = make_server(env=limit | {"FIELDLINE_HTTP_TRUSTED_PROXIES": "127.0.0.0/8"}).start()
    sysadmin = server.rest(*SYSADMIN)
    rest = create_tenancy(sysadmin).admin
    user = rest.user["email"]
    for number in range(6):
        assert log_in(server, user, PASSWORD, X_Forwarded_For=f"192.0.2.{number}, 127.0.0.9").status_code == 200
    codes = [log_in(server, user, PASSWORD, Forwarded='for="[2001:db8::1]:4711"').status_code for _ in range(5)]
    assert codes == [200] * 4 + [429]

    def addresses() -> set[str]:
        entries = rest.get("/api/audit/logs", pageSize=100, page=0, actionTypes="LOGIN").json()["data"]
        return {entry["actionData"].get("clientAddress") for entry in entries}

    eventually(lambda: {"192.0.2.0", "192.0.2.5", "2001:db8::1"} <= addresses())

    open_server = make_server("untrusting", env=limit).start()
    codes = [
        log_in(open_server, "nobody@example.org", "wrong", X_Forwarded_For=f"192.0.2.{number}").status_code
        for number in range(5)
    ]
    assert codes == [401] * 4 + [429]


def exchange(address: tuple[str, int], sent: bytes, length: int = 65_536, source: str = "127.0.0.1") -> bytes:
    """What comes back before the connection is closed, at most so many bytes."""
    said = b""
    with socket.create_connection(address, timeout=10, source_address=(source, 0)) as connection:
        connection.sendall(sent)
        try:
            while len(said) < length and (more := connection.recv(length - len(said))):
                said += more
        except ConnectionResetError:
            # It was closed before all was read.
            pass
    return said


def test_trusted_proxies_begin_with_a_header_and_others_are_not_heard(make_server):
    proxied = {"FIELDLINE_HTTP_PROXY_PROTOCOL": "true", "FIELDLINE_MQTT_PROXY_PROTOCOL": "true"}
    guarded = {"FIELDLINE_ADDRESS_GUARD_ENABLED": "true", "FIELDLINE_ADDRESS_GUARD_MAX_WRONG_CREDENTIALS": 3}
    # The harness is not trusted itself, so that it may look in.
    env = proxied | guarded | {"FIELDLINE_HTTP_TRUSTED_PROXIES": "127.0.0.2"}
    server = make_server(env=env).start()
    device = server.rest().create_device()
    get = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    def through_proxy(address: tuple[str, int], sent: bytes, length: int = 65_536) -> bytes:
        return exchange(address, sent, length, source="127.0.0.2")

    for header in (v1("192.0.2.1"), v2("192.0.2.1"), LOCAL):
        assert through_proxy(server.http_address, header + get).startswith(b"HTTP/1.1 200")
    for header in (b"", b"PROXY TCP4 x y 1 2\r\n", SIGNATURE + b"\x31\x11\x00\x00"):
        assert through_proxy(server.http_address, header + get) == b""
    assert exchange(server.http_address, get).startswith(b"HTTP/1.1 200")
    assert not exchange(server.http_address, v1("192.0.2.1") + get).startswith(b"HTTP/1.1 200")

    def connack(header: bytes, token: str) -> bytes:
        return through_proxy(server.mqtt_address, header + wire.connect(username=token, client_id="c"), 4)

    for header in (v1("192.0.2.1"), v2("192.0.2.1"), LOCAL):
        assert connack(header, device.token) == b"\x20\x02\x00\x00"
    assert connack(b"", device.token) == b""
    # Who shows wrong credentials is turned away, and nobody else behind the same proxy.
    for _ in range(3):
        assert connack(v2("198.51.100.66"), "wrong")[:1] == b"\x20"
    assert connack(v2("198.51.100.66"), device.token) == b""
    assert connack(v1("192.0.2.1"), device.token) == b"\x20\x02\x00\x00"
