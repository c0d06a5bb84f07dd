"""Who may call what: one row or more for each endpoint, for each role, on what is one's own and on what is not.

Columns: the system administrator, the tenant's administrator, a user of the customer that the things are assigned to, a
user of another customer of the same tenant, the administrator of another tenant. A row that is not public is 401 for
somebody who has not logged in.

    +  served
    -  refused with 403 or 404, shows nothing and changes nothing
    !  the same, or refused with 400: what was smuggled in is not one's own
    o  served, with what is one's own: it shows nothing of the tenant in question
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import access_table_people
import access_table_rules
from harness.people import PASSWORD, Tenancy, activated, create_tenancy
from harness.rest import NULL_ID, Rest, unique
from harness.server import SYSADMIN

ROLES = ("sysadmin", "tenant", "customer", "stranger", "other")


class World(access_table_rules.Things, access_table_people.Things):
    """A tenant with things worth stealing, and everybody who might want them."""

    def __init__(self, sysadmin: Rest):
        self.sysadmin = sysadmin
        self.home: Tenancy = create_tenancy(sysadmin)
        self.tenant, self.customer_user = self.home.admin, self.home.customer_user
        second = self.tenant.post("/api/customer", {"title": unique("second customer")}).json()
        self.stranger = activated(self.tenant, "CUSTOMER_USER", customer=second)
        self.other: Rest = create_tenancy(sysadmin).admin
        self.customer_id = self.home.customer["id"]["id"]
        self.tenant_id = self.home.tenant["id"]["id"]
        self.tenant_profile_id = self.home.profile["id"]["id"]
        self.device = self.make_device()
        self.profile = self.make_profile()
        self.token = self.tenant.credentials(self.device)["credentialsId"]
        self.make_all()
        self.make_people()
        self.callers = {
            "sysadmin": sysadmin,
            "tenant": self.tenant,
            "customer": self.customer_user,
            "stranger": self.stranger,
            "other": self.other,
        }

    # -- things, new ones for each call that may destroy them --

    def make_device(self) -> str:
        device = self.tenant.create_device(unique("treasure")).id
        self.tenant.post(f"/api/customer/{self.customer_id}/device/{device}")
        self.tenant.post(
            f"/api/plugins/telemetry/DEVICE/{device}/timeseries/ANY", {"ts": 1000, "values": {"secret": "treasure-1"}}
        )
        for scope in ("SERVER_SCOPE", "SHARED_SCOPE"):
            self.tenant.post(f"/api/plugins/telemetry/DEVICE/{device}/attributes/{scope}", {"secret": "treasure-2"})
        return device

    def make_profile(self) -> str:
        return self.tenant.post("/api/deviceProfile", device_profile()).json()["id"]["id"]

    def make_customer(self) -> str:
        return self.tenant.post("/api/customer", {"title": unique("treasure")}).json()["id"]["id"]

    def make_user(self) -> str:
        user = {
            "email": f"{unique('treasure')}@example.com",
            "authority": "CUSTOMER_USER",
            "customerId": self.home.customer["id"],
        }
        return self.tenant.post("/api/user", user, sendActivationMail="false").json()["id"]["id"]

    def make_tenant(self) -> str:
        return self.sysadmin.post("/api/tenant", {"title": unique("tenant")}).json()["id"]["id"]

    def make_tenant_profile(self) -> str:
        profile = {"name": unique("profile"), "profileData": {"configuration": {"type": "DEFAULT"}}}
        return self.sysadmin.post("/api/tenantProfile", profile).json()["id"]["id"]

    def logged_in_anew(self, role: str) -> Rest:
        """The role's user in a session of its own."""
        caller = self.callers[role]
        if role == "sysadmin":
            return Rest(caller.base, *SYSADMIN)
        return Rest(caller.base, caller.user["email"], PASSWORD)

    # -- what must be as it was --

    def snapshot(self) -> dict[str, Any]:
        """Everything that a refused call could have changed."""
        path = f"/api/plugins/telemetry/DEVICE/{self.device}"
        return {
            "device": self.tenant.get(f"/api/device/{self.device}").json(),
            "credentials": self.tenant.credentials(self.device),
            "points": self.tenant.points(self.device, "secret"),
            "keys": sorted(self.tenant.get(f"{path}/keys/timeseries").json()),
            "server": {
                k: v
                for k, v in self.tenant.attributes(self.device, "SERVER_SCOPE").items()
                if k in ("secret", "stolen")
            },
            "shared": self.tenant.attributes(self.device, "SHARED_SCOPE"),
            "profile": self.tenant.get(f"/api/deviceProfile/{self.profile}").json(),
            "customer": self.tenant.get(f"/api/customer/{self.customer_id}").json(),
            "user": self.tenant.get(f"/api/user/{self.customer_user.user['id']['id']}").json()["email"],
            "tenant": self.sysadmin.get(f"/api/tenant/{self.tenant_id}").json(),
            "tenant profile": self.sysadmin.get(f"/api/tenantProfile/{self.tenant_profile_id}").json(),
            **self.snapshot_of_people(),
        } | self.snapshot_of_all()

    def secrets(self) -> list[str]:
        """What must not be seen by those who may not."""
        return [
            self.device,
            self.token,
            self.customer_id,
            "treasure",
            self.home.customer["title"],
            self.home.tenant["title"],
            self.customer_user.user["email"],
            *self.secrets_of_all(),
            *self.secrets_of_people(),
        ]


def device_profile(**fields) -> dict:
    return {
        "name": unique("treasure"),
        "type": "DEFAULT",
        "transportType": "DEFAULT",
        "provisionType": "DISABLED",
        "profileData": {
            "configuration": {"type": "DEFAULT"},
            "transportConfiguration": {"type": "DEFAULT"},
            "provisionConfiguration": {"type": "DISABLED"},
            "alarms": None,
        },
    } | fields


@dataclass
class Call:
    """One request of a row."""

    path: dict[str, str] = None
    query: dict[str, Any] = None
    body: Any = None


@dataclass
class Row:
    """Expectations for one use of an endpoint."""

    endpoint: str
    """Method and path."""
    expected: dict[str, str]
    """By role."""
    call: Callable[[World, bool], Call]
    """Makes the request; the flag asks for things of its own, because the call will be served and may destroy them."""
    public: bool = False
    ends_session: bool = False
    """Each role logs in anew for the call."""
    status: int = 200


TABLE: list[Row] = []


def row(endpoint: str, columns: str, call: Callable[[World, bool], Call] | None = None, **more) -> None:
    TABLE.append(
        Row(endpoint, dict(zip(ROLES, columns.split(), strict=True)), call or (lambda w, fresh: Call()), **more)
    )


PAGE = {"pageSize": 100, "page": 0}


def page(**query):
    return lambda w, fresh: Call(query=PAGE | query)


def device_id(body=None, query=None, **path):
    """A call on a device."""

    def make(w: World, fresh: bool) -> Call:
        target = w.make_device() if fresh else w.device
        given = {"deviceId": target, "entityType": "DEVICE", "entityId": target} | path
        return Call(given, query, body(w, target) if callable(body) else body)

    return make


def on(
    name: str, fixed: Callable[[World], str], make: Callable[[World], str] | None = None, body=None, query=None, **path
):
    """A call on one thing, whose id goes into the path under this name."""

    def call(w: World, fresh: bool) -> Call:
        target = make(w) if fresh and make else fixed(w)
        return Call(
            {name: target} | path, query(w) if callable(query) else query, body(w, target) if callable(body) else body
        )

    return call


def with_id(kind: str, **fields):
    """A body that names an existing thing of the tenant, with changes."""

    def body(w: World, target: str) -> dict:
        return w.tenant.get(f"/api/{kind}/{target}").json() | fields

    return body


# -- without logging in --

LOGIN = lambda w, fresh: Call(body={"username": w.tenant.user["email"], "password": PASSWORD})
row("POST /api/auth/login", "+ + + + +", LOGIN, public=True)
row(
    "POST /api/auth/token",
    "+ + + + +",
    lambda w, fresh: Call(body={"refreshToken": w.tenant.refresh_token}),
    public=True,
)
row("GET /api/noauth/userPasswordPolicy", "+ + + + +", public=True)
row("GET /api/noauth/activate", "! ! ! ! !", lambda w, fresh: Call(query={"activateToken": "guess"}), public=True)
row(
    "POST /api/noauth/activate",
    "! ! ! ! !",
    lambda w, fresh: Call(body={"activateToken": "guess", "password": PASSWORD}),
    public=True,
)

row(
    "POST /api/auth/login/public",
    "! ! ! ! !",
    lambda w, fresh: Call(body={"publicId": w.customer_id}),
    public=True,
)

# -- oneself --

row("GET /api/auth/user", "+ + + + +")
row("POST /api/auth/logout", "+ + + + +", ends_session=True)
row(
    "POST /api/auth/changePassword",
    "! ! ! ! !",
    lambda w, fresh: Call(body={"currentPassword": "guess", "newPassword": PASSWORD}),
)

# -- tenants and their profiles --

TENANT = lambda make=None, **more: on("tenantId", lambda w: w.tenant_id, make, **more)
row("GET /api/tenant/{tenantId}", "+ + - - -", TENANT())
row("GET /api/tenant/info/{tenantId}", "+ + - - -", TENANT())
row("DELETE /api/tenant/{tenantId}", "+ - - - -", TENANT(World.make_tenant))
row("POST /api/tenant", "+ - - - -", lambda w, fresh: Call(body={"title": unique("tenant")}))
row(
    "POST /api/tenant",
    "+ - - - -",
    lambda w, fresh: Call(
        body=w.sysadmin.get(f"/api/tenant/{w.make_tenant() if fresh else w.tenant_id}").json() | {"city": "Elsewhere"}
    ),
)
row("GET /api/tenants", "+ - - - -", page())
row("GET /api/tenantInfos", "+ - - - -", page())
row("GET /api/tenants", "+ + - - o", lambda w, fresh: Call(query={"tenantIds": w.tenant_id}))
row("GET /api/tenants/list", "+ + - - o", lambda w, fresh: Call(query={"tenantIds": w.tenant_id}))

TENANT_PROFILE = lambda make=None, **more: on("tenantProfileId", lambda w: w.tenant_profile_id, make, **more)
row("GET /api/tenantProfile/{tenantProfileId}", "+ - - - -", TENANT_PROFILE())
row("GET /api/tenantProfileInfo/{tenantProfileId}", "+ - - - -", TENANT_PROFILE())
row("GET /api/tenantProfileInfo/default", "+ - - - -")
row("GET /api/tenantProfiles", "+ - - - -", page())
row("GET /api/tenantProfileInfos", "+ - - - -", page())
row(
    "POST /api/tenantProfile",
    "+ - - - -",
    lambda w, fresh: Call(body={"name": unique("profile"), "profileData": {"configuration": {"type": "DEFAULT"}}}),
)
row("POST /api/tenantProfile/{tenantProfileId}/default", "+ - - - -", TENANT_PROFILE(World.make_tenant_profile))
row("GET /api/tenantProfiles/list", "+ - - - -", lambda w, fresh: Call(query={"ids": w.tenant_profile_id}))
row("DELETE /api/tenantProfile/{tenantProfileId}", "+ - - - -", TENANT_PROFILE(World.make_tenant_profile))

# -- customers --

CUSTOMER = lambda make=None, **more: on("customerId", lambda w: w.customer_id, make, **more)
row("GET /api/customer/{customerId}", "- + + - -", CUSTOMER())
row("GET /api/customer/{customerId}/shortInfo", "- + + - -", CUSTOMER())
row("GET /api/customer/{customerId}/title", "- + + - -", CUSTOMER())
row("POST /api/customer", "- + - - o", lambda w, fresh: Call(body={"title": unique("customer")}))
row(
    "POST /api/customer",
    "- + - - -",
    lambda w, fresh: Call(
        body=w.tenant.get(f"/api/customer/{w.make_customer() if fresh else w.customer_id}").json()
        | {"city": "Elsewhere"}
    ),
)
row("DELETE /api/customer/{customerId}", "- + - - -", CUSTOMER(World.make_customer))
row("GET /api/customers", "- + - - o", page())
row("GET /api/customers/list", "- + - - o", lambda w, fresh: Call(query={"customerIds": w.customer_id}))
row("GET /api/tenant/customers", "- + - - -", lambda w, fresh: Call(query={"customerTitle": w.home.customer["title"]}))

# -- users --

USER = lambda make=None, **more: on("userId", lambda w: w.customer_user.user["id"]["id"], make, **more)
row("GET /api/user/{userId}", "- + + - -", USER())
row("DELETE /api/user/{userId}", "- + - - -", USER(World.make_user))
row(
    "POST /api/user",
    "! + - - !",
    lambda w, fresh: Call(
        query={"sendActivationMail": "false"},
        body={
            "email": f"{unique('user')}@example.com",
            "authority": "CUSTOMER_USER",
            "customerId": w.home.customer["id"],
            "tenantId": w.home.tenant["id"],
        },
    ),
)
row("GET /api/user/{userId}/activationLink", "- + - - -", on("userId", World.make_user, World.make_user))
row("GET /api/user/{userId}/activationLinkInfo", "- + - - -", on("userId", World.make_user, World.make_user))
row("GET /api/user/tokenAccessEnabled", "+ + - - +")
row("GET /api/user/{userId}/token", "- + - - -", USER())
row("POST /api/user/{userId}/userCredentialsEnabled", "- + - - -", USER(query={"userCredentialsEnabled": "true"}))
row("GET /api/users", "- + + o o", page())
row("GET /api/users/info", "- + + o o", page())
row("GET /api/users/list", "- + + o o", lambda w, fresh: Call(query={"userIds": w.customer_user.user["id"]["id"]}))
row("GET /api/tenant/{tenantId}/users", "+ - - - -", TENANT(query=PAGE))
row("GET /api/customer/{customerId}/users", "- + - - -", CUSTOMER(query=PAGE))

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
row("GET /api/tenant/devices", "- + - - o", page())
row(
    "GET /api/tenant/device",
    "- + - - -",
    lambda w, fresh: Call(query={"deviceName": w.tenant.get(f"/api/device/{w.device}").json()["name"]}),
)
row(
    "GET /api/tenant/devices",
    "- + - - -",
    lambda w, fresh: Call(query={"deviceName": w.tenant.get(f"/api/device/{w.device}").json()["name"]}),
)
row("GET /api/tenant/deviceInfos", "- + - - o", page())
row("GET /api/customer/{customerId}/devices", "- + + - -", CUSTOMER(query=PAGE))
row("GET /api/customer/{customerId}/deviceInfos", "- + + - -", CUSTOMER(query=PAGE))
row("GET /api/devices", "- + + o o", lambda w, fresh: Call(query={"deviceIds": w.device}))
row("GET /api/device/types", "- + + + +")
row(
    "POST /api/customer/{customerId}/device/{deviceId}",
    "- + - - -",
    lambda w, fresh: Call({"customerId": w.customer_id, "deviceId": w.make_device() if fresh else w.device}),
)
row("POST /api/customer/public/device/{deviceId}", "- + - - -", device_id())
row("DELETE /api/customer/device/{deviceId}", "- + - - -", device_id())

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
row("GET /api/deviceProfiles", "- + - - o", page())
row("GET /api/deviceProfileInfos", "- + + + o", page())
row("GET /api/deviceProfileInfos/list", "- + - - o", lambda w, fresh: Call(query={"deviceProfileIds": w.profile}))
row("GET /api/deviceProfile/names", "- + + + o")
row(
    "GET /api/deviceProfile/devices/keys/timeseries",
    "- + - - -",
    lambda w, fresh: Call(query={"deviceProfileId": w.profile}),
)
row(
    "GET /api/deviceProfile/devices/keys/attributes",
    "- + - - -",
    lambda w, fresh: Call(query={"deviceProfileId": w.profile}),
)

# -- telemetry --

T = "/api/plugins/telemetry"
RANGE = {"keys": "secret", "startTs": 0, "endTs": 5000}
ANY = {"anything": "ANY", "scope": "ANY", "ttl": "60"}
SERVER = {"scope": "SERVER_SCOPE"}
row(f"GET {T}/{{entityType}}/{{entityId}}/keys/timeseries", "- + + - -", device_id())
row(f"GET {T}/{{entityType}}/{{entityId}}/keys/attributes", "- + + - -", device_id())
row(f"GET {T}/{{entityType}}/{{entityId}}/keys/attributes/{{scope}}", "- + + - -", device_id(**SERVER))
row(f"GET {T}/{{entityType}}/{{entityId}}/values/attributes", "- + + - -", device_id())
row(f"GET {T}/{{entityType}}/{{entityId}}/values/attributes/{{scope}}", "- + + - -", device_id(**SERVER))
row(f"GET {T}/{{entityType}}/{{entityId}}/values/timeseries", "- + + - -", device_id())
row(f"GET {T}/{{entityType}}/{{entityId}}/values/timeseries", "- + + - -", device_id(query=RANGE))
row(f"GET {T}/{{entityType}}/{{entityId}}/values/timeseries/history", "- + + - -", device_id(query=RANGE))
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
)
row(
    f"GET {T}/{{entityType}}/{{entityId}}/values/attributes",
    "- - - - -",
    lambda w, fresh: Call({"entityType": "DEVICE", "entityId": NULL_ID}),
)

# -- everything else --

for endpoint, columns, parts in access_table_people.PUBLIC:
    row(endpoint, columns, lambda w, fresh, parts=parts: Call(**parts(w, fresh)), public=True)
for endpoint, columns, parts in access_table_rules.ROWS + access_table_people.ROWS:
    row(endpoint, columns, lambda w, fresh, parts=parts: Call(**parts(w, fresh)))
