"""Devices, their profiles, and what they send."""

from __future__ import annotations

from access.people import CUSTOMER
from access.rows import PAGE, Call, call, device_id, on, page, row, with_id
from access.things import device_profile
from access.world import World
from harness.rest import NULL_ID, unique

# -- devices --

row("POST /api/device", "- + - - o", lambda w, fresh: Call(body={"name": unique("device")}))
row("POST /api/device", "- + + - -", device_id(with_id("device", label="stolen")))
row(
    "POST /api/device",
    "- + - - !",
    lambda w, fresh: Call(body={"name": unique("device"), "customerId": w.home.customer["id"]}),
)
row(
    "POST /api/device",
    "- + - - !",
    lambda w, fresh: Call(
        body={"name": unique("device"), "deviceProfileId": {"entityType": "DEVICE_PROFILE", "id": w.profile}}
    ),
)
row(
    "POST /api/device-with-credentials",
    "- + - - o",
    lambda w, fresh: Call(
        body={
            "device": {"name": unique("device")},
            "credentials": {"credentialsType": "ACCESS_TOKEN", "credentialsId": unique("token")},
        }
    ),
)
row(
    "POST /api/device-with-credentials",
    "! ! ! ! !",
    lambda w, fresh: Call(
        body={
            "device": {"name": unique("device")},
            "credentials": {"credentialsType": "ACCESS_TOKEN", "credentialsId": w.token},
        }
    ),
)
row("GET /api/device/{deviceId}", "- + + - -", device_id())
row("GET /api/device/info/{deviceId}", "- + + - -", device_id())
row("DELETE /api/device/{deviceId}", "- + - - -", device_id())
row("GET /api/device/{deviceId}/credentials", "- + + - -", device_id())
row(
    "POST /api/device/credentials",
    "- + - - -",
    device_id(lambda w, target: w.tenant.credentials(target) | {"credentialsId": unique("stolen")}),
)
row("GET /api/tenant/devices", "- + - - o", page(), shows="device")
row(
    "GET /api/tenant/device",
    "- + - - -",
    lambda w, fresh: Call(query={"deviceName": w.tenant.get(f"/api/device/{w.device}").json()["name"]}),
)
row(
    "GET /api/tenant/devices",
    "- + - - -",
    lambda w, fresh: Call(query={"deviceName": w.tenant.get(f"/api/device/{w.device}").json()["name"]}),
    shows="device",
)
row("GET /api/tenant/deviceInfos", "- + - - o", page(), shows="device")
row("GET /api/customer/{customerId}/devices", "- + + - -", CUSTOMER(query=PAGE), shows="device")
row("GET /api/customer/{customerId}/deviceInfos", "- + + - -", CUSTOMER(query=PAGE), shows="device")
row("GET /api/devices", "- + + o o", lambda w, fresh: Call(query={"deviceIds": w.device}), shows="device")
row("GET /api/device/types", "- + + + +", shows="default")
row(
    "POST /api/customer/{customerId}/device/{deviceId}",
    "- + - - -",
    lambda w, fresh: Call({"customerId": w.customer_id, "deviceId": w.make_device() if fresh else w.device}),
)
row("POST /api/customer/public/device/{deviceId}", "- + - - -", device_id())
row("DELETE /api/customer/device/{deviceId}", "- + - - -", device_id())
row(
    "POST /api/tenant/{tenantId}/device/{deviceId}",
    "- + - - -",
    # What is given away goes to a third tenant, so that nobody finds it among what the other one has.
    lambda w, fresh: Call(
        {
            "tenantId": w.make_tenant() if fresh else w.other_tenant_id,
            "deviceId": w.make_device() if fresh else w.device,
        }
    ),
)

PROFILE = lambda make=None, **more: on("deviceProfileId", lambda w: w.profile, make, **more)
row("GET /api/deviceProfile/{deviceProfileId}", "- + - - -", PROFILE())
row("GET /api/deviceProfileInfo/{deviceProfileId}", "- + + + -", PROFILE())
row("GET /api/deviceProfileInfo/default", "- + + + o")
row("DELETE /api/deviceProfile/{deviceProfileId}", "- + - - -", PROFILE(World.make_profile))
row("POST /api/deviceProfile", "- + - - o", lambda w, fresh: Call(body=device_profile(name=unique("profile"))))
row(
    "POST /api/deviceProfile",
    "- + - - -",
    PROFILE(World.make_profile, body=with_id("deviceProfile", description="stolen")),
)
row("POST /api/deviceProfile/{deviceProfileId}/default", "- + - - -", PROFILE(World.make_profile))
row("GET /api/deviceProfiles", "- + - - o", page(), shows="profile")
row("GET /api/deviceProfileInfos", "- + + + o", page(), shows="profile")
row(
    "GET /api/deviceProfileInfos/list",
    "- + - - o",
    lambda w, fresh: Call(query={"deviceProfileIds": w.profile}),
    shows="profile",
)
row("GET /api/deviceProfile/names", "- + + + o", shows="profile")
row(
    "GET /api/deviceProfile/devices/keys/timeseries",
    "- + - - -",
    lambda w, fresh: Call(query={"deviceProfileId": w.profile}),
    shows="secret",
)
row(
    "GET /api/deviceProfile/devices/keys/attributes",
    "- + - - -",
    lambda w, fresh: Call(query={"deviceProfileId": w.profile}),
    shows="secret",
)

# -- telemetry --

T = "/api/plugins/telemetry"
RANGE = {"keys": "secret", "startTs": 0, "endTs": 5000}
ANY = {"anything": "ANY", "scope": "ANY", "ttl": "60"}
SERVER = {"scope": "SERVER_SCOPE"}
row(f"GET {T}/{{entityType}}/{{entityId}}/keys/timeseries", "- + + - -", device_id(), shows="secret")
row(f"GET {T}/{{entityType}}/{{entityId}}/keys/attributes", "- + + - -", device_id(), shows="secret")
row(f"GET {T}/{{entityType}}/{{entityId}}/keys/attributes/{{scope}}", "- + + - -", device_id(**SERVER), shows="secret")
row(f"GET {T}/{{entityType}}/{{entityId}}/values/attributes", "- + + - -", device_id(), shows="secret")
row(
    f"GET {T}/{{entityType}}/{{entityId}}/values/attributes/{{scope}}", "- + + - -", device_id(**SERVER), shows="secret"
)
row(f"GET {T}/{{entityType}}/{{entityId}}/values/timeseries", "- + + - -", device_id(), shows="secret")
row(f"GET {T}/{{entityType}}/{{entityId}}/values/timeseries", "- + + - -", device_id(query=RANGE), shows="secret")
row(
    f"GET {T}/{{entityType}}/{{entityId}}/values/timeseries/history",
    "- + + - -",
    device_id(query=RANGE),
    shows="secret",
)
row(f"POST {T}/{{deviceId}}/{{scope}}", "- + + - -", device_id({"stolen": 1}, **SERVER))
row(f"POST {T}/{{entityType}}/{{entityId}}/{{scope}}", "- + + - -", device_id({"stolen": 1}, **SERVER))
row(f"POST {T}/{{entityType}}/{{entityId}}/attributes/{{scope}}", "- + + - -", device_id({"stolen": 1}, **SERVER))
row(f"POST {T}/{{entityType}}/{{entityId}}/timeseries/{{scope}}", "- + + - -", device_id({"stolen": 1}, **ANY))
row(f"POST {T}/{{entityType}}/{{entityId}}/timeseries/{{scope}}/{{ttl}}", "- + + - -", device_id({"stolen": 1}, **ANY))
# What would be a scope of this name, as the path is also that of the deletion.
row(f"POST {T}/{{entityType}}/{{entityId}}/timeseries/delete", "- + + - -", device_id({"stolen": 1}))
row(
    f"DELETE {T}/{{entityType}}/{{entityId}}/timeseries/delete",
    "- + + - -",
    device_id(query={"keys": "secret", "deleteAllDataForKeys": "true"}),
)
row(f"DELETE {T}/{{deviceId}}/{{scope}}", "- + + - -", device_id(query={"keys": "secret"}, **SERVER))
row(f"DELETE {T}/{{entityType}}/{{entityId}}/{{scope}}", "- + + - -", device_id(query={"keys": "secret"}, **SERVER))
# The wall stands for every kind of entity.
row(
    f"GET {T}/{{entityType}}/{{entityId}}/values/attributes",
    "- + + - -",
    lambda w, fresh: Call({"entityType": "CUSTOMER", "entityId": w.customer_id}),
    shows="secret",
)
row(
    f"POST {T}/{{entityType}}/{{entityId}}/attributes/{{scope}}",
    "- + - - -",
    lambda w, fresh: Call(
        {"entityType": "CUSTOMER", "entityId": w.customer_id, "scope": "SERVER_SCOPE"}, body={"note": 1}
    ),
)
row(
    f"GET {T}/{{entityType}}/{{entityId}}/values/attributes",
    "+ + - - -",
    lambda w, fresh: Call({"entityType": "TENANT", "entityId": w.tenant_id}),
    shows="secret",
)
row(
    f"GET {T}/{{entityType}}/{{entityId}}/values/attributes",
    "- - - - -",
    lambda w, fresh: Call({"entityType": "DEVICE", "entityId": NULL_ID}),
    shows="secret",
)

# -- calls to devices --

CALL = {"method": "treasure", "params": {}, "persistent": True}
for prefix in ("/api/rpc", "/api/plugins/rpc"):
    for kind in ("oneway", "twoway"):
        row(f"POST {prefix}/{kind}/{{deviceId}}", "- + + - -", device_id(CALL))
PERSISTENT = on("rpcId", World.make_call, World.make_call)
row("GET /api/rpc/persistent/{rpcId}", "- + + - -", PERSISTENT)
row("DELETE /api/rpc/persistent/{rpcId}", "- + - - -", PERSISTENT)


def calls_of_device(w: World, fresh: bool) -> Call:
    w.make_call()
    return Call({"deviceId": w.device}, PAGE)


row("GET /api/rpc/persistent/device/{deviceId}", "- + + - -", calls_of_device, shows="treasure")

# -- claiming --


def name_of(device_of_call):
    return call(
        deviceName=lambda w, fresh: w.tenant.get(f"/api/device/{device_of_call(w, fresh)}").json()["name"], body={}
    )


CLAIM = "/api/customer/device/{deviceName}/claim"
# The customer has it already, and nobody has told a secret.
row(f"POST {CLAIM}", "- - ! ! -", name_of(lambda w, fresh: w.device))
row(f"DELETE {CLAIM}", "- + + - -", name_of(lambda w, fresh: w.make_device() if fresh else w.device))

# -- their sessions --

row("GET /api/device/{deviceId}/sessions", "- + - - -", device_id(), shows="")
row("DELETE /api/device/{deviceId}/sessions", "- + - - -", device_id())
row(
    "DELETE /api/device/{deviceId}/sessions/{sessionId}",
    "- + - - -",
    lambda w, fresh: Call({"deviceId": w.device, "sessionId": NULL_ID}),
    status=404,
)
row("GET /api/deviceSessions/count", "- + - - o", shows="")
