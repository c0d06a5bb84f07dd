"""Accounts of people: mails with links, resets of passwords, lock-out, settings; on a server of the test's own."""

import re

import pytest
import requests

from harness.chains import Chain
from harness.mailbox import Mailbox
from harness.rest import Rest, unique
from harness.server import SYSADMIN


@pytest.fixture
def server(make_server):
    return make_server().start()


@pytest.fixture
def mailbox():
    with Mailbox() as box:
        yield box


def link(text: str, name: str) -> str:
    [found] = re.findall(rf"http://\S+{name}=(\S+)", text)
    return found


def test_users_activate_and_reset_by_links_that_are_mailed(server, mailbox):
    sysadmin, tenant, stranger = server.rest(*SYSADMIN), server.rest(), Rest(server.http)
    sysadmin.post("/api/admin/settings", mailbox.settings())
    sysadmin.post("/api/admin/settings/testMail", mailbox.settings())
    mailbox.next(SYSADMIN[0])
    address = f"{unique('new')}@example.org"
    tenant.post("/api/user", {"email": address, "authority": "TENANT_ADMIN"})
    token = link(mailbox.next(address), "activateToken")
    page = requests.get(
        f"{server.http}/api/noauth/activate", params={"activateToken": token}, allow_redirects=False, timeout=10
    )
    assert page.status_code == 303 and token in page.headers["Location"]
    user = Rest(server.http)
    user.use(stranger.post("/api/noauth/activate", {"activateToken": token, "password": "the first one"}).json())
    assert user.get("/api/auth/user").json()["email"] == address
    mailbox.next(address)

    sysadmin.post("/api/admin/settings", {"key": "general", "jsonValue": {"baseUrl": server.http}})
    stranger.post("/api/noauth/resetPasswordByEmail", {"email": address})
    stranger.post("/api/noauth/resetPasswordByEmail", {"email": "nobody@example.org"})
    token = link(mailbox.next(address), "resetToken")
    stranger.post("/api/noauth/resetPassword", {"resetToken": token, "password": "the second one"})
    mailbox.next(address)
    stranger.post("/api/auth/login", {"username": address, "password": "the first one"}, expect=401)
    stranger.login(address, "the second one")
    assert "the second one" not in server.log() and token not in server.log()


def test_a_rule_chain_sends_mail_through_the_servers_settings(server, mailbox):
    sysadmin, tenant = server.rest(*SYSADMIN), server.rest()
    sysadmin.post("/api/admin/settings", mailbox.settings())
    device = tenant.create_device()
    chain = Chain()
    template = {
        "fromTemplate": "",
        "toTemplate": "ops@example.org",
        "ccTemplate": None,
        "bccTemplate": None,
        "subjectTemplate": "Hot",
        "mailBodyType": "false",
        "isHtmlTemplate": "false",
        "bodyTemplate": "It is $[temperature] degrees",
    }
    chain.line(
        (("mail.TbMsgToEmailNode", template), "Success"),
        (("mail.TbSendEmailNode", {"useSystemSmtpSettings": True}), "Success"),
    )
    chain.save(tenant, root=True)
    requests.post(f"{server.http}/api/v1/{device.token}/telemetry", json={"temperature": 71}, timeout=10)
    # The chain hears of more than the telemetry.
    while (text := mailbox.next("ops@example.org").strip()) != "It is 71 degrees":
        assert text == "It is $[temperature] degrees"


def test_rules_for_passwords_and_lock_out_outlive_a_restart(server):
    sysadmin, stranger = server.rest(*SYSADMIN), Rest(server.http)
    settings = sysadmin.get("/api/admin/securitySettings").json()
    settings["passwordPolicy"] |= {"minimumLength": 12, "minimumUppercaseLetters": 1}
    settings["maxFailedLoginAttempts"] = 1
    sysadmin.post("/api/admin/securitySettings", settings)
    jwt = sysadmin.get("/api/admin/jwtSettings").json()
    assert "tokenSigningKey" not in jwt
    key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OQ=="
    sysadmin.use(sysadmin.post("/api/admin/jwtSettings", jwt | {"tokenSigningKey": key}).json())
    sysadmin.post("/api/user/settings", {"theme": "dark"})
    server.stop()
    server.start()
    sysadmin.base = stranger.base = server.http
    assert sysadmin.get("/api/user/settings").json() == {"theme": "dark"}, "the token counts, so the key was kept"
    assert stranger.get("/api/noauth/userPasswordPolicy").json()["minimumLength"] == 12
    wrong = {"username": "customer@thingsboard.org", "password": "wrong"}
    for _ in range(2):
        stranger.post("/api/auth/login", wrong, expect=401)
    answer = stranger.post("/api/auth/login", wrong | {"password": "customer"}, expect=401)
    assert "not active" in answer.json()["message"]
    assert key not in server.log()
