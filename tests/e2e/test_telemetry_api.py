"""The telemetry controller: latest, ranges, aggregation, deletion and time-to-live, as in the reference's §7."""

import statistics

import pytest
import requests

from harness.people import create_tenancy
from harness.rest import now_ms, telemetry
from harness.server import eventually

BASE = 1_700_000_000_000
SECOND = 1000
DAY = 86_400_000


@pytest.fixture
def filled(tenant, device):
    """A device with a hundred points a second apart: number n at n seconds, a decimal half of it, a text."""
    rows = [{"ts": BASE + n * SECOND, "values": {"n": n, "half": n / 2, "text": f"t{n:03}"}} for n in range(100)]
    tenant.post(telemetry(device.id, "timeseries/ANY"), rows)
    return device


def read(tenant, device, **params):
    query = {"keys": "n", "startTs": BASE, "endTs": BASE + 100 * SECOND, "useStrictDataTypes": "true"} | params
    return tenant.get(telemetry(device.id, "values/timeseries"), **query).json()


def test_values_are_strings_unless_strict_types_are_asked_for(tenant, filled):
    tenant.post(
        telemetry(filled.id, "timeseries/ANY"), {"ts": BASE, "values": {"flag": True, "json": {"a": [1, None]}, "n": 0}}
    )
    plain = tenant.get(telemetry(filled.id, "values/timeseries"), keys="flag,half,text,json").json()
    assert {key: points[0]["value"] for key, points in plain.items()} == {
        "flag": "true", "half": "49.5", "text": "t099", "json": '{"a":[1,null]}',
    }  # fmt: skip
    assert tenant.latest(filled.id, "flag", "half", "text", "json") == {
        "flag": True, "half": 49.5, "text": "t099", "json": {"a": [1, None]},
    }  # fmt: skip


def test_a_latest_key_that_does_not_exist_is_null_and_all_keys_are_those_that_do(tenant, filled):
    missing = tenant.get(telemetry(filled.id, "values/timeseries"), keys="missing").json()["missing"]
    assert missing[0]["value"] is None and abs(missing[0]["ts"] - now_ms()) < 30_000
    assert set(tenant.latest(filled.id)) == {"n", "half", "text"}
    assert sorted(tenant.get(telemetry(filled.id, "keys/timeseries")).json()) == ["half", "n", "text"]


def test_a_range_holds_its_start_and_not_its_end(tenant, filled):
    found = read(tenant, filled, startTs=BASE + 10 * SECOND, endTs=BASE + 13 * SECOND, orderBy="ASC")
    assert [point["value"] for point in found["n"]] == [10, 11, 12]


def test_a_range_is_newest_first_and_a_hundred_long_by_default(tenant, filled):
    tenant.post(telemetry(filled.id, "timeseries/ANY"), {"ts": BASE - 1, "values": {"n": -1}})
    assert [p["value"] for p in read(tenant, filled, startTs=BASE - 1)["n"]] == list(range(99, -1, -1))
    assert [p["value"] for p in read(tenant, filled, limit=3)["n"]] == [99, 98, 97]
    assert [p["value"] for p in read(tenant, filled, limit=3, orderBy="ASC")["n"]] == [0, 1, 2]


def test_several_keys_each_have_their_limit_and_keys_without_data_are_absent(tenant, filled):
    found = read(tenant, filled, keys="n,text,missing", limit=2)
    assert {key: len(points) for key, points in found.items()} == {"n": 2, "text": 2}


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("MIN", lambda values: min(values)),
        ("MAX", lambda values: max(values)),
        ("SUM", lambda values: sum(values)),
        ("AVG", lambda values: statistics.fmean(values)),
        ("COUNT", lambda values: len(values)),
    ],
)
def test_aggregation_makes_one_point_a_bucket_at_its_middle(tenant, filled, aggregation, expected):
    found = read(tenant, filled, agg=aggregation, interval=30 * SECOND, limit=1, orderBy="DESC")["n"]
    # Buckets of 30 s from the start; the last one is cut off at the end of the range, 10 s wide.
    buckets = [range(0, 30), range(30, 60), range(60, 90), range(90, 100)]
    middles = [15, 45, 75, 95]
    assert found == [{"ts": BASE + m * SECOND, "value": expected(b)} for m, b in zip(middles, buckets, strict=True)]


def test_empty_buckets_are_left_out_and_text_counts_and_compares(tenant, filled):
    found = read(
        tenant,
        filled,
        keys="text",
        startTs=BASE - 60 * SECOND,
        agg="MAX",
        interval=60 * SECOND,
        endTs=BASE + 60 * SECOND,
    )
    assert [point["value"] for point in found["text"]] == ["t059"]
    assert read(tenant, filled, keys="text", agg="COUNT", interval=100 * SECOND)["text"][0]["value"] == 100
    assert read(tenant, filled, keys="text", agg="AVG", interval=100 * SECOND) == {}


def test_calendar_intervals_follow_the_time_zone(tenant, device):
    # Noon UTC of each day of 2024.
    first = 1_704_110_400_000
    tenant.post(
        telemetry(device.id, "timeseries/ANY"), [{"ts": first + d * DAY, "values": {"one": 1}} for d in range(366)]
    )
    start, end = 1_704_067_200_000, 1_704_067_200_000 + 366 * DAY

    def sums(kind: str, zone: str = "UTC") -> list:
        found = read(tenant, device, keys="one", startTs=start, endTs=end, agg="SUM", intervalType=kind, timeZone=zone)
        return [point["value"] for point in found["one"]]

    assert sums("MONTH") == [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    assert sums("QUARTER") == [91, 91, 92, 92]
    # 2024 begins on a Monday: whole ISO weeks, and one day less before the first Sunday.
    assert sums("WEEK_ISO")[:2] == [7, 7] and sums("WEEK")[:2] == [6, 7]
    assert sum(sums("MONTH", "America/New_York")) == 366


@pytest.mark.parametrize(
    "params",
    [
        {"endTs": ""}, {"startTs": "soon"}, {"agg": "MEDIAN", "interval": 1000}, {"orderBy": "SIDEWAYS"}, {"limit": "many"},
        {"agg": "AVG", "interval": 1000, "endTs": BASE + 701 * SECOND}, {"intervalType": "CENTURY", "agg": "AVG"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_arguments_are_answered_with_400_and_a_text(tenant, filled, params):
    query = {"keys": "n", "startTs": BASE, "endTs": BASE + 100 * SECOND} | params
    answer = tenant.get(telemetry(filled.id, "values/timeseries"), expect=400, **query)
    assert answer.text


def test_seven_hundred_buckets_are_allowed(tenant, filled):
    found = read(tenant, filled, agg="COUNT", interval=1000, startTs=BASE, endTs=BASE + 700 * SECOND)
    assert len(found["n"]) == 100


def test_a_range_is_deleted_from_its_start_to_before_its_end(tenant, filled):
    tenant.delete(
        telemetry(filled.id, "timeseries/delete"), keys="n", startTs=BASE + 10 * SECOND, endTs=BASE + 90 * SECOND
    )
    left = [point["value"] for point in read(tenant, filled, orderBy="ASC")["n"]]
    assert left == [*range(10), *range(90, 100)]
    assert len(read(tenant, filled, keys="half")["half"]) == 100
    assert tenant.latest(filled.id, "n") == {"n": 99}


def test_deleting_the_newest_points_deletes_or_rewrites_the_latest_value(tenant, filled):
    where = {"startTs": BASE + 50 * SECOND, "endTs": BASE + 100 * SECOND}
    tenant.delete(telemetry(filled.id, "timeseries/delete"), keys="n", **where)
    assert tenant.latest(filled.id, "n") == {"n": None}
    tenant.delete(telemetry(filled.id, "timeseries/delete"), keys="half", rewriteLatestIfDeleted="true", **where)
    assert tenant.latest(filled.id, "half") == {"half": 24.5}
    tenant.delete(telemetry(filled.id, "timeseries/delete"), keys="text", deleteLatest="false", **where)
    assert tenant.latest(filled.id, "text") == {"text": "t099"}


def test_keys_are_deleted_whole_and_can_be_written_again(tenant, filled):
    tenant.delete(telemetry(filled.id, "timeseries/delete"), keys="n,half", deleteAllDataForKeys="true")
    assert tenant.get(telemetry(filled.id, "keys/timeseries")).json() == ["text"]
    assert read(tenant, filled, keys="n,half") == {}
    tenant.post(telemetry(filled.id, "timeseries/ANY"), {"ts": BASE, "values": {"n": 7}})
    assert read(tenant, filled)["n"] == [{"ts": BASE, "value": 7}]


@pytest.mark.parametrize("params", [{}, {"startTs": BASE}, {"endTs": BASE}], ids=str)
def test_a_deletion_needs_a_range_or_all(tenant, filled, params):
    tenant.delete(telemetry(filled.id, "timeseries/delete"), keys="n", expect=400, **params)
    assert len(read(tenant, filled)["n"]) == 100


def test_a_point_at_a_time_that_has_one_replaces_it(tenant, shared, filled):
    tenant.post(telemetry(filled.id, "timeseries/ANY"), {"ts": BASE + 99 * SECOND, "values": {"n": "now text"}})
    assert tenant.latest(filled.id, "n") == {"n": "now text"}
    body = f'{{"ts":{BASE + 5 * SECOND},"values":{{"n":555}}}}'
    assert requests.post(f"{shared.http}/api/v1/{filled.token}/telemetry", data=body, timeout=10).status_code == 200
    eventually(lambda: 555 in tenant.values(filled.id, "n"))
    assert len(tenant.points(filled.id, "n")) == 100


def test_points_are_gone_after_their_time_to_live(tenant, device):
    tenant.post(telemetry(device.id, "timeseries/ANY/2"), {"short": 1})
    tenant.post(telemetry(device.id, "timeseries/ANY/3600"), {"long": 1})
    assert tenant.values(device.id, "short") == [1]
    eventually(lambda: tenant.values(device.id, "short") == [])
    assert tenant.latest(device.id, "short") == {"short": None}
    assert tenant.values(device.id, "long") == [1]


def test_the_tenant_profile_sets_the_time_to_live_of_what_devices_send(shared, sysadmin):
    tenancy = create_tenancy(sysadmin, defaultStorageTtlDays=1)
    device = tenancy.admin.create_device()
    for days in (2, 0):
        body = f'{{"ts":{now_ms() - days * DAY - 1000},"values":{{"age":{days}}}}}'
        assert requests.post(f"{shared.http}/api/v1/{device.token}/telemetry", data=body, timeout=10).status_code == 200
    eventually(lambda: tenancy.admin.values(device.id, "age"))
    assert tenancy.admin.values(device.id, "age") == [0]


def test_a_deleted_device_takes_its_data_with_it(tenant, filled):
    tenant.delete(f"/api/device/{filled.id}")
    answer = tenant.get(telemetry(filled.id, "values/timeseries"), expect=404, keys="n")
    assert "n" not in answer.text or "t099" not in answer.text


def test_attributes_of_every_scope_are_saved_read_and_deleted(tenant, device):
    values = {"int": 1, "float": 2.5, "text": "x", "flag": True, "json": {"a": [1]}}
    for scope in ("SERVER_SCOPE", "SHARED_SCOPE"):
        tenant.post(telemetry(device.id, scope), values)
        stored = tenant.attributes(device.id, scope)
        assert {key: stored[key] for key in values} == values
        tenant.delete(telemetry(device.id, scope), keys="int,text")
        assert set(tenant.attributes(device.id, scope)) - {"active"} == {"float", "flag", "json"}
    assert set(tenant.get(telemetry(device.id, "keys/attributes/SHARED_SCOPE")).json()) == {"float", "flag", "json"}
    tenant.post(telemetry(device.id, "CLIENT_SCOPE"), values, expect=400)
