"""The WebSocket API: values, entities and alarms as they change, as a dashboard follows them."""

import json
import time

import pytest
import requests

from harness.chains import SAVE, Chain
from harness.live import TELEMETRY, Live
from harness.paho_device import PahoDevice
from harness.people import create_tenancy
from harness.rest import unique
from harness.server import eventually

NAME = {"type": "ENTITY_FIELD", "key": "name"}
TEMPERATURE = {"type": "TIME_SERIES", "key": "temperature"}


@pytest.fixture(scope="module")
def home(sysadmin):
    return create_tenancy(sysadmin)


def telemetry(shared, device, values: dict) -> None:
    requests.post(f"{shared.http}/api/v1/{device.token}/telemetry", json=values, timeout=10).raise_for_status()


def watch(kind: str, device, cmd: int = 1, **more) -> dict:
    return {"type": kind, "cmdId": cmd, "entityType": "DEVICE", "entityId": device.id} | more


def data_query(kind: str, **page) -> dict:
    return {
        "entityFilter": {"type": "deviceType", "deviceTypes": [kind], "deviceNameFilter": ""},
        "entityFields": [NAME],
        "latestValues": [],
        "pageLink": {"pageSize": 100, "page": 0, "sortOrder": {"key": NAME, "direction": "ASC"}} | page,
    }


def test_a_socket_has_to_say_who_is_there(shared, home):
    live = Live(shared.http)
    started = time.monotonic()
    closed = live.closed(100)
    assert closed.code == 1008 and 8 < time.monotonic() - started
    live = Live(shared.http)
    live.commands(watch("TIMESERIES", home.admin.create_device()))
    assert live.closed().code == 1008
    live = Live(shared.http)
    live.send({"authCmd": {"token": "nonsense"}, "cmds": []})
    assert live.closed().code == 1007
    live = Live(shared.http)
    live.send("{")
    assert live.closed().code == 1007
    assert Live(shared.http, token="nonsense").closed().code == 1011
    live = Live(shared.http, TELEMETRY, home.admin.token)
    live.send({"tsSubCmds": [{"cmdId": 5, "entityType": "DEVICE", "entityId": home.admin.create_device().id}]})
    assert live.receive()["subscriptionId"] == 5


@pytest.mark.parametrize("older", [False, True])
def test_points_come_as_they_are_stored(shared, home, older):
    device = home.admin.create_device()
    telemetry(shared, device, {"ts": 1000, "values": {"temperature": 20, "other": 1}})
    latest = f"/api/plugins/telemetry/DEVICE/{device.id}/values/timeseries?keys=temperature"
    eventually(lambda: home.admin.get(latest).json().get("temperature", [{}])[0].get("value") == "20")
    command = watch("TIMESERIES", device, 7, keys="temperature", scope="LATEST_TELEMETRY")
    if older:
        live = Live(shared.http, TELEMETRY, home.admin.token)
        live.send({"tsSubCmds": [command]})
    else:
        live = Live.authenticated(home.admin, command)
    first = live.receive()
    assert (first["subscriptionId"], first["errorCode"], first["errorMsg"]) == (7, 0, None)
    assert first["data"] == {"temperature": [[1000, "20"]]} and first["latestValues"] == {"temperature": 1000}
    telemetry(shared, device, {"ts": 2000, "values": {"temperature": 21.5, "other": 2}})
    assert live.receive()["data"] == {"temperature": [[2000, "21.5"]]}
    # An older point is no news where the latest values are asked for.
    telemetry(shared, device, {"ts": 1500, "values": {"temperature": 1}})
    telemetry(shared, device, {"ts": 3000, "values": {"temperature": 22}})
    assert live.until(lambda message: True)["data"]["temperature"][-1] == [3000, "22"]
    if older:
        live.send({"tsSubCmds": [command | {"unsubscribe": True}]})
    else:
        live.commands(command | {"unsubscribe": True})
    live.send("nonsense")
    assert live.receive()["errorCode"] == 2
    telemetry(shared, device, {"ts": 4000, "values": {"temperature": 23}})
    assert live.silent()


def test_history_and_aggregation_are_read(shared, home):
    device = home.admin.create_device()
    points = [{"ts": 1000 * n, "values": {"temperature": n}} for n in range(1, 11)]
    home.admin.post(f"/api/plugins/telemetry/DEVICE/{device.id}/timeseries/ANY", points)
    asked = {"keys": "temperature", "startTs": 0, "endTs": 20000, "limit": 3, "agg": "NONE"}
    live = Live.authenticated(home.admin, watch("TIMESERIES_HISTORY", device, **asked))
    assert [point[1] for point in live.receive()["data"]["temperature"]] == ["10", "9", "8"]
    live.commands(watch("TIMESERIES_HISTORY", device, 2, **asked | {"agg": "MAX", "interval": 10000}))
    assert [point[1] for point in live.receive()["data"]["temperature"]] == ["10", "9"]
    live.commands(watch("TIMESERIES", device, 3, keys="temperature", startTs=0, timeWindow=5000, limit=100))
    assert len(live.receive()["data"]["temperature"]) == 4
    home.admin.post(
        f"/api/plugins/telemetry/DEVICE/{device.id}/timeseries/ANY", {"ts": 11000, "values": {"temperature": 11}}
    )
    assert live.receive()["data"] == {"temperature": [[11000, "11"]]}


def test_attributes_come_and_go(shared, home):
    device = home.admin.create_device()
    path = f"/api/plugins/telemetry/DEVICE/{device.id}"
    home.admin.post(f"{path}/SERVER_SCOPE", {"model": "A"})
    live = Live.authenticated(
        home.admin,
        watch("ATTRIBUTES", device, 1, keys="model,color", scope="SERVER_SCOPE"),
        watch("ATTRIBUTES", device, 2),
    )
    assert live.receive()["data"]["model"][0][1] == "A"
    assert "model" in live.receive()["data"]
    home.admin.post(f"{path}/SHARED_SCOPE", {"color": "red"})
    update = live.until(lambda message: "color" in message["data"])
    assert update["subscriptionId"] == 2 and update["data"]["color"][0][1] == "red"
    home.admin.delete(f"{path}/SERVER_SCOPE?keys=model")
    gone = live.until(lambda message: message["subscriptionId"] == 1)
    assert gone["data"] == {"model": [[0, ""]]}


def test_entities_are_followed_with_their_values(shared, home):
    kind = unique("meter")
    devices = [home.admin.create_device(f"{kind}-{n}", type=kind) for n in range(3)]
    telemetry(shared, devices[0], {"ts": 1000, "values": {"temperature": 1}})
    path = f"/api/plugins/telemetry/DEVICE/{devices[0].id}/keys/timeseries"
    eventually(lambda: home.admin.get(path).json() == ["temperature"])
    query = {"type": "ENTITY_DATA", "cmdId": 1, "query": data_query(kind)}
    live = Live.authenticated(home.admin, query | {"latestCmd": {"keys": [TEMPERATURE]}})
    first = live.receive()
    assert first["cmdUpdateType"] == "ENTITY_DATA" and first["update"] is None and first["errorCode"] == 0
    assert first["data"]["totalElements"] == 3
    shown = [entity["latest"]["TIME_SERIES"]["temperature"]["value"] for entity in first["data"]["data"]]
    assert shown == ["1", "", ""]
    telemetry(shared, devices[2], {"ts": 2000, "values": {"temperature": 5, "other": 1}})
    update = live.receive()
    assert update["data"] is None
    assert update["update"] == [
        {
            "entityId": {"entityType": "DEVICE", "id": devices[2].id},
            "latest": {"TIME_SERIES": {"temperature": {"ts": 2000, "value": "5"}}},
            "timeseries": None,
            "aggLatest": None,
        }
    ]
    # The same command with other parts changes what is followed.
    now = int(time.time() * 1000)
    live.commands(
        {
            "type": "ENTITY_DATA",
            "cmdId": 1,
            "tsCmd": {"keys": ["temperature"], "startTs": 0, "timeWindow": now, "limit": 10, "agg": "NONE"},
        }
    )
    update = live.receive()["update"]
    assert [entity["timeseries"]["temperature"] for entity in update] == [
        [{"ts": 1000, "value": "1"}],
        [],
        [{"ts": 2000, "value": "5"}],
    ]
    telemetry(shared, devices[1], {"ts": now, "values": {"temperature": 7}})
    update = live.receive()["update"]
    assert [entity["timeseries"] for entity in update] == [{"temperature": [{"ts": now, "value": "7"}]}]
    live.commands({"type": "ENTITY_DATA_UNSUBSCRIBE", "cmdId": 1})
    live.commands(
        {
            "type": "ENTITY_DATA",
            "cmdId": 2,
            "query": data_query(kind),
            "aggHistoryCmd": {
                "keys": [{"id": 4, "key": "temperature", "agg": "SUM", "previousStartTs": 0, "previousEndTs": 500}],
                "startTs": 500,
                "endTs": 5000,
            },
        }
    )
    data = live.receive()["data"]["data"]
    assert data[0]["aggLatest"]["4"]["current"]["value"] == "1"
    assert data[0]["aggLatest"]["4"]["previous"] == {"ts": 0, "value": ""}
    telemetry(shared, devices[0], {"ts": now, "values": {"temperature": 8}})
    assert live.silent()


def test_values_that_come_while_aggregates_are_read_count_once(shared, home):
    kind = unique("meter")
    device = home.admin.create_device(type=kind)
    day = 86_400_000
    start = int(time.time() * 1000) - day
    window = {"keys": ["temperature"], "startTs": start, "interval": 2 * day}
    command = {
        "type": "ENTITY_DATA",
        "cmdId": 1,
        "query": data_query(kind),
        "historyCmd": window | {"endTs": start + 2 * day, "agg": "SUM"},
        "tsCmd": window | {"timeWindow": 2 * day, "agg": "COUNT"},
    }

    def values(live: Live) -> list[float]:
        message = live.receive()
        entities = message["update"] if message["data"] is None else message["data"]["data"]
        points = [point for entity in entities for point in (entity["timeseries"] or {}).get("temperature", [])]
        return [float(point["value"]) for point in points]

    followers = []
    with PahoDevice(shared.mqtt_address, username=device.token) as sender:
        sender.connect()
        # Values are on their way all the time that a follower begins.
        for _ in range(25):
            for _ in range(40):
                sender.send("v1/devices/me/telemetry", json.dumps({"temperature": 2}), qos=1)
            live = Live.authenticated(home.admin, command)
            total, count = sum(values(live)), sum(values(live))
            assert total == 2 * count
            followers.append((live, count))
        sender.send("v1/devices/me/telemetry", json.dumps({"temperature": 5}), qos=1)
        for live, count in followers:
            while (came := values(live))[-1:] != [5]:
                count += len(came)
            assert count + len(came) == 25 * 40 + 1


def test_alarms_and_counts_are_followed(shared, home):
    kind = unique("meter")
    device = home.admin.create_device(f"{kind}-a", type=kind)
    filtered = data_query(kind)["entityFilter"]
    page = {"pageSize": 10, "page": 0, "timeWindow": 86_400_000}
    alarms = {"entityFilter": filtered, "pageLink": page, "entityFields": [NAME], "latestValues": []}
    originator = {"entityType": "DEVICE", "id": device.id}
    live = Live.authenticated(
        home.admin,
        {"type": "ALARM_DATA", "cmdId": 1, "query": alarms},
        {"type": "ALARM_COUNT", "cmdId": 2, "query": {"entityFilter": filtered, "statusList": ["ACTIVE"]}},
        {"type": "ALARM_STATUS", "cmdId": 3, "originatorId": originator},
        {"type": "ENTITY_COUNT", "cmdId": 4, "query": {"entityFilter": filtered}},
    )
    first = {message["cmdId"]: message for message in (live.receive() for _ in range(4))}
    assert first[1]["data"]["data"] == [] and first[1]["cmdUpdateType"] == "ALARM_DATA"
    assert (first[2]["count"], first[2]["cmdUpdateType"]) == (0, "ALARM_COUNT_DATA")
    assert (first[3]["active"], first[3]["cmdUpdateType"]) == (False, "ALARM_STATUS")
    assert (first[4]["count"], first[4]["cmdUpdateType"]) == (1, "COUNT_DATA")
    alarm = {"type": "Hot", "originator": originator, "severity": "MAJOR"}
    alarm = home.admin.post("/api/alarm", alarm).json()
    raised = {message["cmdId"]: message for message in (live.receive() for _ in range(3))}
    assert raised[1]["data"]["data"][0]["type"] == "Hot" and raised[1]["totalEntities"] == 1
    assert raised[1]["data"]["data"][0]["latest"]["ENTITY_FIELD"]["name"]["value"] == device.name
    assert raised[2]["count"] == 1 and raised[3]["active"] is True
    home.admin.post(f"/api/alarm/{alarm['id']['id']}/ack")
    acked = live.receive()
    assert acked["cmdId"] == 1 and acked["data"] is None and acked["update"][0]["acknowledged"] is True
    live.commands(*({"type": f"ALARM_{kind}_UNSUBSCRIBE", "cmdId": n} for n, kind in ((1, "DATA"), (2, "COUNT"))))
    home.admin.post(f"/api/alarm/{alarm['id']['id']}/clear")
    assert live.receive()["active"] is False
    assert live.silent()


def test_an_alarm_tells_nothing_of_entities_that_may_not_be_seen(shared, home):
    device = home.admin.create_device()
    originator = {"entityType": "DEVICE", "id": device.id}
    home.admin.post(f"/api/customer/{home.customer['id']['id']}/device/{device.id}")
    foreign = home.admin.post("/api/asset", {"name": unique("plant"), "type": unique("plant")}).json()
    relation = {"from": foreign["id"], "to": originator, "type": "Contains", "typeGroup": "COMMON"}
    home.admin.post("/api/relation", relation)
    alarm = {"type": "Hot", "originator": originator, "severity": "MAJOR", "propagate": True}
    home.admin.post("/api/alarm", alarm)
    query = {
        "entityFilter": {"type": "entityType", "entityType": "ASSET"},
        "pageLink": {"pageSize": 10, "page": 0, "timeWindow": 86_400_000, "searchPropagatedAlarms": True},
        "entityFields": [],
        "latestValues": [{"type": "SERVER_ATTRIBUTE", "key": "secret"}],
    }
    followers = [
        Live.authenticated(who, {"type": "ALARM_DATA", "cmdId": 1, "query": query})
        for who in (home.customer_user, home.admin)
    ]
    for live in followers:
        live.receive()
    path = f"/api/plugins/telemetry/ASSET/{foreign['id']['id']}/attributes/SERVER_SCOPE"
    home.admin.post(path, {"secret": "treasure"})
    # Who may see the entity is told at once.
    assert "treasure" in json.dumps(followers[1].receive())
    assert followers[0].silent(0.5)


def test_bad_commands_are_told_so(shared, home):
    device = home.admin.create_device()
    foreign = shared.rest().create_device()
    live = Live.authenticated(home.admin)
    cases = [
        (watch("TIMESERIES", device, -1), 2, "Cmd id is negative value!"),
        ({"type": "TIMESERIES", "cmdId": 1, "entityType": "DEVICE", "entityId": ""}, 2, "Device id is empty!"),
        ({"type": "ENTITY_DATA", "cmdId": 1}, 2, "Query is empty!"),
        ({"type": "ENTITY_COUNT", "cmdId": 1}, 2, "Query is empty!"),
        ({"type": "ALARM_DATA", "cmdId": 1}, 2, "Query is empty!"),
        (watch("TIMESERIES", foreign), 3, "Unauthorized"),
        (watch("ATTRIBUTES", foreign), 3, "Unauthorized"),
        (watch("TIMESERIES_HISTORY", foreign, keys="a", startTs=0, endTs=9), 3, "Unauthorized"),
        ({"type": "ALARM_STATUS", "cmdId": 1, "originatorId": {"entityType": "DEVICE", "id": foreign.id}}, 3, None),
        ({"type": "ENTITY_DATA", "cmdId": 1, "query": data_query("x", pageSize=0)}, 2, None),
        ({"type": "NONSENSE", "cmdId": 1}, 2, "Failed to parse the payload"),
    ]
    for command, code, text in cases:
        live.commands(command)
        answer = live.receive()
        assert (answer["errorCode"], answer["errorMsg"]) == (code, text or answer["errorMsg"]), command
    live.send("x" * 40_000)
    with pytest.raises(Exception):  # noqa: B017 — closed, or reset while it was being sent
        live.receive()


def test_nobody_sees_what_is_not_theirs(shared, home, sysadmin):
    kind = unique("meter")
    device = home.admin.create_device(f"{kind}-a", type=kind)
    stranger = create_tenancy(sysadmin).admin
    follow = {"type": "ENTITY_DATA", "cmdId": 1, "query": data_query(kind), "latestCmd": {"keys": [TEMPERATURE]}}
    for who in (stranger, home.customer_user, sysadmin):
        live = Live.authenticated(who, follow)
        assert live.receive()["data"]["totalElements"] == 0
        live.commands(watch("TIMESERIES", device, 2), watch("ATTRIBUTES", device, 3))
        assert [live.receive()["errorCode"] for _ in range(2)] == [3, 3]
        telemetry(shared, device, {"temperature": 1})
        assert live.silent(0.5)
        live.close()


def test_a_tenants_profile_limits_sockets_and_commands(shared, sysadmin):
    home = create_tenancy(sysadmin)
    profile = home.profile
    profile["profileData"]["configuration"] |= {
        "maxWsSessionsPerTenant": 2,
        "maxWsSubscriptionsPerTenant": 3,
        "maxWsSessionsPerCustomer": 1,
    }
    profile = sysadmin.post("/api/tenantProfile", profile).json()
    device = home.admin.create_device()
    first, second = (Live.authenticated(home.admin, watch("TIMESERIES", device)) for _ in range(2))
    for live in (first, second):
        live.receive()
    closed = Live.authenticated(home.admin).closed()
    assert (closed.code, closed.reason) == (1008, "Max tenant sessions limit reached!")
    second.commands(watch("TIMESERIES", device, 2), watch("TIMESERIES", device, 3))
    assert second.closed().reason == "Max tenant subscriptions limit reached!"

    def another() -> bool:
        live = Live.authenticated(home.customer_user)
        live.send("?")
        try:
            return live.receive()["errorCode"] == 2
        except Exception:  # noqa: BLE001 — the socket that was closed may still count
            return False

    eventually(another)
    first.close()
    limits = {"maxWsSessionsPerCustomer": 0, "maxWsSubscriptionsPerTenant": 0, "maxWsSubscriptionsPerRegularUser": 1}
    profile["profileData"]["configuration"] |= limits
    sysadmin.post("/api/tenantProfile", profile)
    notices = ({"type": "NOTIFICATIONS_COUNT", "cmdId": n} for n in (1, 2))
    closed = Live.authenticated(home.customer_user, *notices).closed()
    assert closed.reason == "Max regular user subscriptions limit reached!"


def test_a_user_who_logs_out_or_is_deleted_is_told_nothing_more(shared, home):
    user = {"email": f"{unique('u')}@example.com", "authority": "TENANT_ADMIN"}
    device = home.admin.create_device()
    saved = home.admin.post("/api/user", user, sendActivationMail="false").json()
    link = home.admin.get(f"/api/user/{saved['id']['id']}/activationLink").text
    body = {"activateToken": link.split("activateToken=")[1], "password": "secret99"}
    token = requests.post(f"{shared.http}/api/noauth/activate", json=body, timeout=10).json()["token"]
    live = Live(shared.http, token=token)
    live.commands(watch("TIMESERIES", device))
    live.receive()
    home.admin.delete(f"/api/user/{saved['id']['id']}")
    assert live.closed(5).code == 1000


def test_a_slow_client_gets_the_newest_values_and_costs_little(shared, home):
    device = home.admin.create_device()
    live = Live.authenticated(home.admin, watch("TIMESERIES", device, keys="text"))
    live.receive()
    # Nobody reads while megabytes are stored: more than what waits in the sockets.
    path = f"/api/plugins/telemetry/DEVICE/{device.id}/timeseries/ANY"
    filler = "x" * 50_000
    for number in range(1, 401):
        home.admin.post(path, {"ts": number, "values": {"text": f"{number} {filler}"}})
    received, last = 0, ""
    while not last.startswith("400 "):
        values = live.receive()["data"]["text"]
        received += len(values)
        last = values[-1][1]
    assert 0 < received < 400


def test_a_chain_may_show_points_that_it_does_not_store(shared, sysadmin):
    home = create_tenancy(sysadmin)
    class_name, configuration = SAVE
    shown = (class_name, configuration | {"processingSettings": {"type": "WEBSOCKETS_ONLY"}})
    chain = Chain()
    chain.node(shown, configurationVersion=1)
    chain.save(home.admin, root=True)
    device = home.admin.create_device()
    live = Live.authenticated(home.admin, watch("TIMESERIES", device))
    live.receive()
    telemetry(shared, device, {"ts": 1000, "values": {"temperature": 20}})
    assert live.receive()["data"] == {"temperature": [[1000, "20"]]}
    assert home.admin.get(f"/api/plugins/telemetry/DEVICE/{device.id}/keys/timeseries").json() == []


def test_what_may_not_be_seen_any_more_is_told_no_more(shared, home):
    kind = unique("meter")
    device = home.admin.create_device(f"{kind}-a", type=kind)
    assigned = f"/api/customer/{home.customer['id']['id']}/device/{device.id}"
    home.admin.post(assigned, None)
    originator = {"entityType": "DEVICE", "id": device.id}
    follow = {"type": "ENTITY_DATA", "cmdId": 3, "query": data_query(kind), "latestCmd": {"keys": [TEMPERATURE]}}
    live = Live.authenticated(
        home.customer_user,
        watch("TIMESERIES", device, 1),
        watch("ATTRIBUTES", device, 2, scope="SHARED_SCOPE"),
        follow,
        {"type": "ALARM_STATUS", "cmdId": 4, "originatorId": originator},
    )
    assert all(live.receive()["errorCode"] == 0 for _ in range(4))
    telemetry(shared, device, {"temperature": 1})
    told = [live.receive() for _ in range(2)]
    assert {message.get("cmdId", message.get("subscriptionId")) for message in told} == {1, 3}
    home.admin.delete(f"/api/customer/device/{device.id}")
    ended = {message["cmdId"]: message["errorCode"] for message in (live.receive() for _ in range(3))}
    assert ended == {1: 3, 2: 3, 4: 3}
    telemetry(shared, device, {"temperature": 2})
    home.admin.post(f"/api/plugins/telemetry/DEVICE/{device.id}/SHARED_SCOPE", {"limit": 1})
    home.admin.post("/api/alarm", {"type": "Hot", "originator": originator, "severity": "MAJOR"})
    assert live.silent()
    # The one who may see it is told still.
    other = Live.authenticated(home.admin, watch("TIMESERIES", device))
    other.receive()
    telemetry(shared, device, {"temperature": 3})
    assert other.receive()["data"]["temperature"][0][1] == "3"


def test_a_key_opens_a_socket(shared, home):
    key = {"userId": home.admin.user["id"], "description": "socket", "enabled": True, "expirationTime": 0}
    value = home.admin.post("/api/apiKey", key).json()["value"]
    live = Live(shared.http)
    live.send({"authCmd": {"cmdId": 0, "apiKey": value}, "cmds": [watch("TIMESERIES", home.admin.create_device())]})
    assert live.receive()["errorCode"] == 0
    live = Live(shared.http)
    live.send({"authCmd": {"apiKey": "tb_nonsense", "token": home.admin.token}, "cmds": []})
    assert live.closed().code == 1007


def test_there_are_no_notifications(shared, home):
    count = {"totalUnreadCount": 0, "sequenceNumber": 1, "errorCode": 0, "errorMsg": None}
    inbox = count | {"cmdId": 2, "notifications": [], "update": None, "cmdUpdateType": "NOTIFICATIONS"}
    count |= {"cmdId": 1, "cmdUpdateType": "NOTIFICATIONS_COUNT"}
    commands = [
        {"type": "NOTIFICATIONS_COUNT", "cmdId": 1},
        {"type": "NOTIFICATIONS", "cmdId": 2, "limit": 6, "types": []},
        {"type": "MARK_NOTIFICATIONS_AS_READ", "cmdId": 3, "notifications": [home.admin.user["id"]["id"]]},
        {"type": "MARK_ALL_NOTIFICATIONS_AS_READ", "cmdId": 4},
        {"type": "NOTIFICATIONS_UNSUBSCRIBE", "cmdId": 2},
    ]
    live = Live.authenticated(home.admin, *commands)
    assert [live.receive(), live.receive()] == [count, inbox]
    live.commands({"type": "MARK_NOTIFICATIONS_AS_READ", "cmdId": 5, "notifications": ["x"]})
    assert live.receive()["errorCode"] == 2
    older = Live(shared.http, "/api/ws/plugins/notifications", home.admin.token)
    older.send({"unreadCountSubCmd": {"cmdId": 1}, "unreadSubCmd": {"cmdId": 2, "limit": 6}})
    assert [older.receive(), older.receive()] == [count, inbox]


def test_alarms_are_told_with_values_as_they_change(shared, home):
    kind = unique("meter")
    devices = [home.admin.create_device(f"{kind}-{n}", type=kind) for n in range(2)]
    for value, device in enumerate(devices):
        body = {"ts": 1000, "values": {"temperature": value}}
        home.admin.post(f"/api/plugins/telemetry/DEVICE/{device.id}/timeseries/ANY", body)
        originator = {"entityType": "DEVICE", "id": device.id}
        home.admin.post("/api/alarm", {"type": "Hot", "originator": originator, "severity": "MAJOR"})
    query = {
        "entityFilter": data_query(kind)["entityFilter"],
        "entityFields": [NAME],
        "latestValues": [TEMPERATURE],
        "pageLink": {"pageSize": 10, "page": 0, "sortOrder": {"key": TEMPERATURE, "direction": "DESC"}},
    }
    live = Live.authenticated(home.admin, {"type": "ALARM_DATA", "cmdId": 1, "query": query})
    alarms = live.receive()["data"]["data"]
    assert [alarm["latest"]["TIME_SERIES"]["temperature"]["value"] for alarm in alarms] == ["1", "0"]
    telemetry(shared, devices[0], {"ts": 2000, "values": {"temperature": 7, "other": 1}})
    update = live.receive()
    assert update["data"] is None and update["cmdUpdateType"] == "ALARM_DATA"
    [alarm] = update["update"]
    assert alarm["originatorName"] == f"{kind}-0" and alarm["type"] == "Hot"
    assert alarm["latest"]["TIME_SERIES"] == {"temperature": {"ts": 2000, "value": "7"}}
    assert alarm["latest"]["ENTITY_FIELD"]["name"]["value"] == f"{kind}-0"
    live.commands({"type": "ALARM_DATA_UNSUBSCRIBE", "cmdId": 1})
    telemetry(shared, devices[0], {"ts": 3000, "values": {"temperature": 8}})
    assert live.silent(0.5)
