"""Tenants, customers and users that a test makes."""

from __future__ import annotations

from dataclasses import dataclass

from .rest import Rest, unique

PASSWORD = "a long password"


def activated(admin: Rest, authority: str, *, tenant: dict | None = None, customer: dict | None = None) -> Rest:
    """A new user who has followed the activation link and logged in."""
    user = {"email": f"{unique('user')}@example.com", "authority": authority, "firstName": "Test", "lastName": "User"}
    user |= {"tenantId": tenant["id"]} if tenant else {}
    user |= {"customerId": customer["id"]} if customer else {}
    saved = admin.post("/api/user", user, sendActivationMail="false").json()
    link = admin.get(f"/api/user/{saved['id']['id']}/activationLink").text
    token = link.strip('"').split("activateToken=")[1]
    activated_user = Rest(admin.base)
    pair = activated_user.post(
        "/api/noauth/activate", {"activateToken": token, "password": PASSWORD}, sendActivationMail="false"
    ).json()
    activated_user.use(pair)
    activated_user.user = saved
    return activated_user


@dataclass
class Tenancy:
    """A tenant with an administrator, and a customer with a user."""

    profile: dict
    tenant: dict
    admin: Rest
    customer: dict
    customer_user: Rest


def create_tenancy(sysadmin: Rest, **configuration) -> Tenancy:
    """A tenant of its own with everything in it; the keywords go into its tenant profile."""
    profile = sysadmin.post(
        "/api/tenantProfile",
        {
            "name": unique("tenant profile"),
            "profileData": {"configuration": {"type": "DEFAULT"} | configuration, "queueConfiguration": None},
        },
    ).json()
    tenant = sysadmin.post("/api/tenant", {"title": unique("tenant"), "tenantProfileId": profile["id"]}).json()
    admin = activated(sysadmin, "TENANT_ADMIN", tenant=tenant)
    customer = admin.post("/api/customer", {"title": unique("customer")}).json()
    customer_user = activated(admin, "CUSTOMER_USER", customer=customer)
    return Tenancy(profile, tenant, admin, customer, customer_user)
