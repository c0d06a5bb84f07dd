"""The tenant that the table is about, and everybody who might want what it has."""

from __future__ import annotations

from typing import Any

from access.things import Things, device_profile, hide
from harness.people import PASSWORD, Tenancy, activated, create_tenancy
from harness.rest import Rest, unique
from harness.server import SYSADMIN


class World(Things):
    """A tenant with things worth stealing, and everybody who might want them."""

    def __init__(self, sysadmin: Rest):
        self.sysadmin = sysadmin
        self.home: Tenancy = create_tenancy(sysadmin)
        self.tenant, self.customer_user = self.home.admin, self.home.customer_user
        second = self.tenant.post("/api/customer", {"title": unique("second customer")}).json()
        self.stranger = activated(self.tenant, "CUSTOMER_USER", customer=second)
        second_tenant: Tenancy = create_tenancy(sysadmin)
        self.other = second_tenant.admin
        self.customer_id = self.home.customer["id"]["id"]
        self.tenant_id = self.home.tenant["id"]["id"]
        self.tenant_profile_id = self.home.profile["id"]["id"]
        self.tenant_user_id = self.tenant.user["id"]["id"]
        self.customer_user_id = self.customer_user.user["id"]["id"]
        self.other_tenant_id = second_tenant.tenant["id"]["id"]
        self.other_customer_id = second_tenant.customer["id"]["id"]
        self.other_customer_user_id = second_tenant.customer_user.user["id"]["id"]
        self.device = self.make_device()
        self.profile = self.make_profile()
        profiled = {"entityType": "DEVICE_PROFILE", "id": self.profile}
        hide(self.tenant, "DEVICE", self.make_device(deviceProfileId=profiled, type=None))
        hide(self.tenant, "CUSTOMER", self.customer_id)
        hide(sysadmin, "TENANT", self.tenant_id)
        self.token = self.tenant.credentials(self.device)["credentialsId"]
        self.make_all()
        self.callers = {
            "sysadmin": sysadmin,
            "tenant": self.tenant,
            "customer": self.customer_user,
            "stranger": self.stranger,
            "other": self.other,
        }

    # -- things, new ones for each call that may destroy them --

    def make_device(self, **fields) -> str:
        device = self.tenant.create_device(unique("treasure"), **fields).id
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
        ]

    def foreign(self) -> list[str]:
        """What nobody of the tenant may see."""
        return ["foreign", *(value for name, value in vars(self).items() if name.startswith("other_"))]
