"""The group of the REST and WebSocket API: `make bench BENCH=api`. API_DEVICES is how many devices there are."""

from __future__ import annotations

import json
import os
import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable

from clients import Crowd, Live, Rest, harness, quantile
from lab import Failed, Lab, Server, number, say, table

DEVICES = int(os.environ.get("API_DEVICES") or 100_000)
IMPORTED = min(30_000, DEVICES)
SUBSCRIBERS = 1_000
PAGE = 10_000
POINTS = 10_000
BUCKETS = 100
# At most so many requests a row, if its seconds are not over before.
MOST = 2_000
WARM = 5
SIDE_BY_SIDE = 8
MARKS = {"raw": 53, "aggregated": 40, "latest": 11.5, "created": 23, "posts": 489}
TIMES = 20
COLUMNS = [
    {"type": "NAME"},
    {"type": "TYPE"},
    {"type": "SERVER_ATTRIBUTE", "key": "enabled"},
    {"type": "TIMESERIES", "key": "temperature"},
    {"type": "TIMESERIES", "key": "humidity"},
]


class Api:
    """What the rows are measured on, and what they have found."""

    def __init__(self, server: Server, seconds: float):
        self.server, self.seconds = server, seconds
        self.rest = Rest.administrator(server.http)
        self.timed: list[list] = []
        self.rates: list[list] = []

    def time(self, name: str, once: Callable[[], object], goal: str = "–") -> None:
        """Does something again and again, one after the other."""
        say(f"api: {name}")
        for _ in range(WARM):
            once()
        took, end = [], time.monotonic() + self.seconds
        while time.monotonic() < end and len(took) < MOST:
            began = time.perf_counter()
            once()
            took.append(1000 * (time.perf_counter() - began))
        self.timed.append([name, quantile(took, 0.5), quantile(took, 0.99), goal, f"{len(took):,}"])

    def rate(self, name: str, each: Callable[[Rest, int], object], goal: str, limit: float | None, what: str) -> None:
        """Does something on several connections at the same time."""
        say(f"api: {name}")
        done, failed, end = [0] * SIDE_BY_SIDE, [], time.monotonic() + self.seconds

        def work(place: int) -> None:
            try:
                rest = self.rest.again()
                while time.monotonic() < end:
                    each(rest, place)
                    done[place] += 1
            except (Failed, OSError) as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(place,)) for place in range(SIDE_BY_SIDE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise Failed(f"{name}: {failed[0]}")
        self.rates.append([name, sum(done) / self.seconds, goal, limit, what])


def bring_devices(api: Api) -> None:
    """Devices with values, by import: the first call is measured."""
    made = 0
    while made < DEVICES:
        count = min(IMPORTED, DEVICES - made)
        say(f"api: importing {count:,} devices")
        began = time.perf_counter()
        import_devices(api.rest, range(made, made + count), lambda n: n)
        if made == 0:
            took = time.perf_counter() - began
            api.rates.append(
                [f"import of {count:,} devices, a second (took {took:.1f} s)", count / took, "≥ 3,000", None, "–"]
            )
        made += count


def import_devices(rest: Rest, numbers: range, value: Callable[[int], int]) -> None:
    """Devices of these numbers, new ones or new values of old ones."""
    lines = [f"Device {n:06},meter,{str(n % 3 == 0).lower()},{value(n) % 997 / 10},{value(n) % 101}" for n in numbers]
    mapping = {"columns": COLUMNS, "delimiter": ",", "header": False, "update": True}
    answer = rest.post("/api/device/bulk_import", {"file": "\n".join(lines), "mapping": mapping})
    if answer["errors"]:
        raise Failed(f"the import has failed: {answer['errorsList'][:3]}")


def number_filter(key: str, operation: str, value: float) -> dict:
    """A condition on a latest value."""
    predicate = {"type": "NUMERIC", "operation": operation, "value": {"defaultValue": value}}
    return {"key": {"type": "TIME_SERIES", "key": key}, "valueType": "NUMERIC", "predicate": predicate}


def queries(api: Api) -> None:
    """Lists and queries over all devices."""
    rest, temperature = api.rest, {"type": "TIME_SERIES", "key": "temperature"}
    api.time("an empty answer, for what the client and HTTP cost", lambda: rest.send("GET", "/readyz"))
    path = "/api/tenant/devices?pageSize=100&page=0&sortProperty=name&sortOrder=ASC&textSearch=device%20"

    def listed() -> None:
        rest.send("GET", f"{path}{random.randrange(max(DEVICES // 100, 1)):04}")

    api.time(f"page of 100 of {DEVICES:,} devices, sorted, with text search", listed)
    enabled = {"type": "BOOLEAN", "operation": "EQUAL", "value": {"defaultValue": True}}
    flag = {"key": {"type": "SERVER_ATTRIBUTE", "key": "enabled"}, "valueType": "BOOLEAN", "predicate": enabled}
    query = {
        "entityFilter": {"type": "entityType", "entityType": "DEVICE"},
        "keyFilters": [number_filter("temperature", "GREATER", 20), number_filter("humidity", "LESS", 80), flag],
        "entityFields": [{"type": "ENTITY_FIELD", "key": "name"}],
        "latestValues": [temperature],
        "pageLink": {"pageSize": 100, "page": 0, "sortOrder": {"key": temperature, "direction": "DESC"}},
    }
    began = time.perf_counter()
    found = rest.post("/api/entitiesQuery/find", query)["totalElements"]
    say(f"api: the first query finds {found:,} in {time.perf_counter() - began:.2f} s")
    name = f"query of {DEVICES:,} devices: three conditions, sorted by a latest value, page of 100"
    api.time(name, lambda: rest.send("POST", "/api/entitiesQuery/find", query), "< 50")
    stop, writer = threading.Event(), rest.again()
    ids = [device["id"]["id"] for device in rest.get("/api/tenant/devices?pageSize=1000&page=0")["data"]]

    def write() -> None:
        while not stop.is_set():
            device = random.choice(ids)
            writer.send("POST", f"/api/plugins/telemetry/DEVICE/{device}/timeseries/ANY", {"temperature": 30})

    thread = threading.Thread(target=write)
    thread.start()
    try:
        api.time(
            "the same while values are stored", lambda: rest.send("POST", "/api/entitiesQuery/find", query), "< 50"
        )
    finally:
        stop.set()
        thread.join()


def history(api: Api, device: str) -> None:
    """Points of one series."""
    base, rest = f"/api/plugins/telemetry/DEVICE/{device}", api.rest
    start = int(time.time() * 1000) - POINTS * 1000
    for first in range(0, POINTS, 1000):
        points = [{"ts": start + n * 1000, "values": {"power": n % 977 / 10}} for n in range(first, first + 1000)]
        rest.post(f"{base}/timeseries/ANY", points)
    end = start + POINTS * 1000
    path = f"{base}/values/timeseries?keys=power&startTs={start}&endTs={end}&useStrictDataTypes=true&orderBy=ASC"
    raw = f"{path}&agg=NONE&limit={POINTS}"
    aggregated = f"{path}&agg=AVG&interval={POINTS * 1000 // BUCKETS}&limit={POINTS}"
    for wanted, count in ((raw, POINTS), (aggregated, BUCKETS)):
        got = len(rest.get(wanted)["power"])
        if got != count:
            raise Failed(f"{got} points in the place of {count}")
    goal = {name: f"≤ {number(mark / TIMES)}" for name, mark in MARKS.items()}
    api.time(f"{POINTS:,} raw points", lambda: rest.send("GET", raw), goal["raw"])
    api.time(f"{POINTS:,} points aggregated to {BUCKETS}", lambda: rest.send("GET", aggregated), goal["aggregated"])
    api.time("a latest value", lambda: rest.send("GET", f"{base}/values/timeseries?keys=power"), goal["latest"])


def two_way(api: Api) -> None:
    """Shared attributes and calls to devices over MQTT."""
    wire = harness("wire")
    host, _, port = api.server.listening["mqtt"].rpartition(":")

    def connected(name: str) -> tuple[str, object]:
        made = api.rest.post("/api/device", {"name": name, "type": "bench"})["id"]["id"]
        token = api.rest.get(f"/api/device/{made}/credentials")["credentialsId"]
        device = wire.Wire((host, int(port)))
        if device.connect(username=token) != 0:
            raise Failed("a device was refused")
        device.subscribe(("v1/devices/me/attributes", 1), ("v1/devices/me/rpc/request/+", 1))
        return made, device

    made, device = connected("Listening")
    path, value = f"/api/plugins/telemetry/DEVICE/{made}/SHARED_SCOPE", iter(range(1 << 40))

    def updated() -> None:
        now = next(value)
        api.rest.start("POST", path, {"setting": now})
        message = device.message()
        api.rest.finish()
        if json.loads(message.payload)["setting"] != now:
            raise Failed(f"another update came: {message.payload!r}")

    api.time("shared attribute, from the request to the device and the answer", updated)
    device.close()
    devices = [connected(f"Called {place}") for place in range(SIDE_BY_SIDE)]

    def call(rest: Rest, place: int) -> None:
        made, device = devices[place]
        rest.start("POST", f"/api/plugins/rpc/twoway/{made}", {"method": "get", "params": {}, "timeout": 10_000})
        message = device.message()
        request = message.topic.rpartition("/")[2]
        device.send(wire.publish(wire.V311, f"v1/devices/me/rpc/response/{request}", b'{"ok":true}', 0))
        rest.finish()

    api.time("round trip of an RPC to a device", lambda: call(api.rest, 0))
    api.rate(f"round trips of RPCs, {SIDE_BY_SIDE} devices, a second", call, "–", None, "–")
    for _, device in devices:
        device.close()


def subscribers(api: Api, device: str) -> None:
    """Many WebSockets on one busy device."""
    say(f"api: {SUBSCRIBERS:,} subscribers on one device")
    watch = {"type": "TIMESERIES", "cmdId": 1, "entityType": "DEVICE", "entityId": device, "keys": "sent"}
    crowd = Crowd([Live(api.rest, watch) for _ in range(SUBSCRIBERS)])
    try:
        crowd.count(time.monotonic() + 1)
        crowd.counted, crowd.seen, sent = 0, [], 0
        begun, cpu = time.monotonic(), api.server.cpu_s()
        while time.monotonic() < begun + api.seconds:
            api.rest.send("POST", f"/api/plugins/telemetry/DEVICE/{device}/timeseries/ANY", {"sent": time.time_ns() // 1000})
            sent += 1
            crowd.count(begun + sent / 20)
        crowd.count(time.monotonic() + 1)
        took = max(api.server.cpu_s() - cpu, 0.01)
    finally:
        crowd.close()
    if not crowd.seen:
        raise Failed("no subscriber was told anything")
    told = [(came, json.loads(data)["data"].get("sent", [])) for came, data in crowd.seen]
    late = [1000 * came - int(value) / 1000 for came, points in told for _, value in points]
    lost = f"{crowd.counted:,} of {sent * SUBSCRIBERS:,} messages"
    api.rates.append(
        [
            f"WebSocket updates a second and core, {SUBSCRIBERS:,} subscribers ({lost})",
            crowd.counted / took,
            "–",
            frames_a_core(),
            "writes of such a message into a socket",
        ]
    )
    api.timed.append(
        [
            f"from the request to one of {SUBSCRIBERS:,} subscribers",
            quantile(late, 0.5),
            quantile(late, 0.99),
            "–",
            f"{len(late):,}",
        ]
    )


def frames_a_core() -> float:
    """How many messages of that size one core can write into sockets that somebody empties."""
    listener = socket.create_server(("127.0.0.1", 0))
    writer = socket.create_connection(listener.getsockname())
    reader, _ = listener.accept()
    listener.close()

    def drain() -> None:
        while reader.recv(1 << 20):
            pass

    thread = threading.Thread(target=drain)
    thread.start()
    count, data, begun = 50_000, bytes(150), time.thread_time()
    for _ in range(count):
        writer.sendall(data)
    took = time.thread_time() - begun
    writer.close()
    thread.join()
    reader.close()
    return count / max(took, 1e-6)


def large_page(api: Api) -> None:
    """Many devices on one page of one WebSocket."""
    page, temperature = min(PAGE, DEVICES), {"type": "TIME_SERIES", "key": "temperature"}
    name = {"type": "ENTITY_FIELD", "key": "name"}
    query = {
        "entityFilter": {"type": "entityName", "entityType": "DEVICE", "entityNameFilter": "Device"},
        "entityFields": [name],
        "pageLink": {"pageSize": page, "page": 0, "sortOrder": {"key": name, "direction": "ASC"}},
    }
    say(f"api: {page:,} devices on one page")
    began = time.perf_counter()
    live = Live(api.rest, {"type": "ENTITY_DATA", "cmdId": 1, "query": query, "latestCmd": {"keys": [temperature]}})
    try:
        shown = {entity["entityId"]["id"] for entity in live.receive()["data"]["data"]}
        first = 1000 * (time.perf_counter() - began)
        began = time.perf_counter()
        thread = threading.Thread(target=import_devices, args=(api.rest.again(), range(page), lambda n: n + 500))
        thread.start()
        while shown:
            shown.difference_update(entity["entityId"]["id"] for entity in live.receive()["update"] or [])
        told = time.perf_counter() - began
        thread.join()
    finally:
        live.close()
    api.timed.append([f"{page:,} devices on one page of a WebSocket: the page", first, None, "–", "1"])
    api.rates.append(
        [
            f"the same: devices updated by import and told, a second (all after {told:.1f} s)",
            page / told,
            "–",
            None,
            "–",
        ]
    )


def commits_a_second(lab: Lab) -> float:
    """How often the disk takes a small write durably, one after the other."""
    with tempfile.TemporaryFile(dir=lab.folder) as file:
        end, count = time.monotonic() + 1, 0
        while time.monotonic() < end:
            file.write(bytes(4096))
            file.flush()
            os.fdatasync(file.fileno())
            count += 1
    return count


def people(api: Api, lab: Lab) -> None:
    """Devices that are created, and users who log in."""
    numbers = [iter(range(1 << 40)) for _ in range(SIDE_BY_SIDE)]

    def create(rest: Rest, place: int) -> None:
        rest.post("/api/device", {"name": f"Made {place} {next(numbers[place])}", "type": "bench"})

    goal = f"≥ {MARKS['created'] * TIMES}"
    api.rate("devices created a second", create, goal, commits_a_second(lab), "fdatasyncs, one after the other")

    def log_in(rest: Rest, _: int) -> None:
        rest.token = None
        rest.post("/api/auth/login", {"username": "tenant@thingsboard.org", "password": "tenant"})

    api.rate("log-ins a second", log_in, "–", None, "–")


def measure(lab: Lab) -> None:
    """(api) lists, queries, history, calls, WebSockets, imports and log-ins over 100,000 devices"""
    os.environ["FIELDLINE_API_LOGINS_PER_MINUTE"] = "1000000"
    with lab.server("api") as server:
        api = Api(server, min(lab.seconds, 5))
        bring_devices(api)
        server.settle()
        device = api.rest.post("/api/device", {"name": "Busy", "type": "bench"})["id"]["id"]
        queries(api)
        history(api, device)
        two_way(api)
        subscribers(api, device)
        large_page(api)
        people(api, lab)
        posts = ["--device-api", "HTTP", "--device-end", 500, "--users", 500, "--in-flight", 1]
        report = lab.load("api posts", server, *posts, "--payload", "ENERGY", "--limit", "fsync")
        goal = f"≥ {MARKS['posts'] * TIMES:,}"
        limit = "a bare handler that appends to the journal"
        api.rates.append(
            ["posts of 500 users a second", report["outcome"]["rate"], goal, report["limit"]["rate"], limit]
        )
    head = ["one after the other", "p50 ms", "p99 ms", "goal", "times"]
    table(f"api. Times over {DEVICES:,} devices, client included", head, api.timed)
    table("api. Rates", ["", "measured", "goal", "beside it", "what that is"], api.rates)
