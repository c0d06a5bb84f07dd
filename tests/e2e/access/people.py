"""Logging in, tenants, customers and users."""

from __future__ import annotations

from access.rows import PAGE, Call, on, page, row
from access.world import World
from harness.people import PASSWORD
from harness.rest import NULL_ID, unique

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
row(
    "POST /api/noauth/resetPasswordByEmail",
    "+ + + + +",
    lambda w, fresh: Call(body={"email": "nobody@example.com"}),
    public=True,
)
row("GET /api/noauth/resetPassword", "! ! ! ! !", lambda w, fresh: Call(query={"resetToken": "guess"}), public=True)
row(
    "POST /api/noauth/resetPassword",
    "! ! ! ! !",
    lambda w, fresh: Call(body={"resetToken": "guess", "password": PASSWORD}),
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

# The tests log in with it, and everybody is shown their own log-in.
row("GET /api/user/sessions", "+ + + + +", shows="Python Requests")
row("DELETE /api/user/sessions", "+ + + + +")
# `test_sessions` ends one's own.
row("DELETE /api/user/sessions/{sessionId}", "! ! ! ! !", lambda w, fresh: Call({"sessionId": NULL_ID}))

# -- tenants and their profiles --

TENANT = lambda make=None, **more: on("tenantId", lambda w: w.tenant_id, make, **more)
row("GET /api/tenant/{tenantId}", "+ + - - -", TENANT())
row("GET /api/tenant/info/{tenantId}", "+ + - - -", TENANT())
# Administrators may delete their own tenant, so everybody is asked about another one.
row("DELETE /api/tenant/{tenantId}", "+ - - - -", on("tenantId", World.make_tenant, World.make_tenant))
row("POST /api/tenant", "+ - - - -", lambda w, fresh: Call(body={"title": unique("tenant")}))
row(
    "POST /api/tenant",
    "+ - - - -",
    lambda w, fresh: Call(
        body=w.sysadmin.get(f"/api/tenant/{w.make_tenant() if fresh else w.tenant_id}").json() | {"city": "Elsewhere"}
    ),
)
row("GET /api/tenants", "+ - - - -", page(), shows="tenant_id")
row("GET /api/tenantInfos", "+ - - - -", page(), shows="tenant_id")
row("GET /api/tenants", "+ + - - o", lambda w, fresh: Call(query={"tenantIds": w.tenant_id}), shows="tenant_id")
row("GET /api/tenants/list", "+ + - - o", lambda w, fresh: Call(query={"tenantIds": w.tenant_id}), shows="tenant_id")

TENANT_PROFILE = lambda make=None, **more: on("tenantProfileId", lambda w: w.tenant_profile_id, make, **more)
row("GET /api/tenantProfile/{tenantProfileId}", "+ - - - -", TENANT_PROFILE())
row("GET /api/tenantProfileInfo/{tenantProfileId}", "+ - - - -", TENANT_PROFILE())
row("GET /api/tenantProfileInfo/default", "+ - - - -")
row("GET /api/tenantProfiles", "+ - - - -", page(), shows="tenant_profile_id")
row("GET /api/tenantProfileInfos", "+ - - - -", page(), shows="tenant_profile_id")
row(
    "POST /api/tenantProfile",
    "+ - - - -",
    lambda w, fresh: Call(body={"name": unique("profile"), "profileData": {"configuration": {"type": "DEFAULT"}}}),
)
row("POST /api/tenantProfile/{tenantProfileId}/default", "+ - - - -", TENANT_PROFILE(World.make_tenant_profile))
row(
    "GET /api/tenantProfiles/list",
    "+ - - - -",
    lambda w, fresh: Call(query={"ids": w.tenant_profile_id}),
    shows="tenant_profile_id",
)
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
row("GET /api/customers", "- + - - o", page(), shows="customer_id")
row(
    "GET /api/customers/list",
    "- + - - o",
    lambda w, fresh: Call(query={"customerIds": w.customer_id}),
    shows="customer_id",
)
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
row(
    "POST /api/user/sendActivationMail",
    "! ! - - !",
    lambda w, fresh: Call(query={"email": w.customer_user.user["email"]}),
)
row("GET /api/user/tokenAccessEnabled", "+ + - - +")
row("GET /api/user/{userId}/token", "- + - - -", USER())
row("POST /api/user/{userId}/userCredentialsEnabled", "- + - - -", USER(query={"userCredentialsEnabled": "true"}))
row("GET /api/users", "- + + o o", page(), shows="customer_user_id")
row("GET /api/users/info", "- + + o o", page(), shows="customer_user_id")
row(
    "GET /api/users/list",
    "- + + o o",
    lambda w, fresh: Call(query={"userIds": w.customer_user.user["id"]["id"]}),
    shows="customer_user_id",
)
row("GET /api/tenant/{tenantId}/users", "+ - - - -", TENANT(query=PAGE), shows="tenant_user_id")
row("GET /api/customer/{customerId}/users", "- + - - -", CUSTOMER(query=PAGE), shows="customer_user_id")
