"""Accounts of people: mails with links, resets of passwords, lock-out, settings; on a server of the test's own."""

import os
import re

import pytest
import requests

from harness.chains import Chain
from harness.mail_provider import CLIENT, MailProvider
from harness.mailbox import Mailbox
from harness.message_centre import MessageCentre
from harness.rest import Rest, unique
from harness.server import SYSADMIN, eventually


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


def test_mails_go_out_by_an_account_whose_use_was_allowed_once(server):
    sysadmin, stranger = server.rest(*SYSADMIN), Rest(server.http)
    with MailProvider("iot@example.org") as provider:
        path = sysadmin.get("/api/admin/mail/oauth2/loginProcessingUrl").json()
        settings = provider.settings(f"{server.http}{path}")
        sysadmin.post("/api/admin/settings", settings)
        answer = sysadmin.post("/api/admin/settings/testMail", settings, expect=400)
        assert "Refresh token was not generated" in answer.json()["message"]
        url = sysadmin.get("/api/admin/mail/oauth2/authorize", prevUri="/settings").json()
        back = provider.allow(url)
        # The browser comes without a token.
        page = requests.get(back, allow_redirects=False, timeout=10)
        assert (page.status_code, page.headers["Location"]) == (303, "/settings")
        assert requests.get(back, allow_redirects=False, timeout=10).status_code == 400
        shown = sysadmin.get("/api/admin/settings/mail").json()
        assert shown["jsonValue"]["tokenGenerated"] is True
        assert "refreshToken" not in shown["jsonValue"] and "clientSecret" not in shown["jsonValue"]
        sysadmin.post("/api/admin/settings/testMail", shown)
        provider.mailbox.next(SYSADMIN[0])
        # The next mail needs no other token, and one after a restart takes the refresh token that came with the last one.
        sysadmin.post("/api/admin/settings", {"key": "general", "jsonValue": {"baseUrl": server.http}})
        stranger.post("/api/noauth/resetPasswordByEmail", {"email": "tenant@thingsboard.org"})
        provider.mailbox.next("tenant@thingsboard.org")
        assert provider.bought == 2
        server.stop()
        server.start()
        sysadmin = server.rest(*SYSADMIN)
        sysadmin.post("/api/admin/settings/testMail", sysadmin.get("/api/admin/settings/mail").json())
        provider.mailbox.next(SYSADMIN[0])
        assert provider.bought == 3
        for secret in (CLIENT[1], provider.access_token, provider.refresh_token, "a code"):
            assert secret not in server.log()


def test_text_messages_go_out_by_the_provider_of_the_settings(server):
    sysadmin, tenant = server.rest(*SYSADMIN), server.rest()
    with MessageCentre("fieldline", "secret") as centre:
        request = {"providerConfiguration": centre.provider(password="guess"), "numberTo": "+4912345", "message": "hi"}
        answer = sysadmin.post("/api/admin/settings/testSms", request, expect=400)
        assert "Unable to send SMS" in answer.json()["message"] and "guess" not in answer.text
        sysadmin.post("/api/admin/settings", {"key": "sms", "jsonValue": centre.provider()}, expect=400)
        saved = sysadmin.post("/api/admin/settings", {"key": "sms", "jsonValue": centre.provider(password="secret")})
        assert "secret" not in saved.text
        # Without the password, which was not shown.
        request["providerConfiguration"] = sysadmin.get("/api/admin/settings/sms").json()["jsonValue"]
        sysadmin.post("/api/admin/settings/testSms", request)
        assert centre.next() == ("4912345", "hi")

        def kept() -> list[str]:
            logs = sysadmin.get("/api/audit/logs", pageSize=10, page=0, actionTypes="SMS_SENT").json()
            return sorted(log["actionStatus"] for log in logs["data"])

        eventually(lambda: kept() == ["FAILURE", "SUCCESS"])

        device = tenant.create_device()
        sms = {
            "numbersToTemplate": "+4967890",
            "smsMessageTemplate": "It is $[temperature] degrees",
            "useSystemSmsSettings": True,
        }
        only = {"messageTypes": ["POST_TELEMETRY_REQUEST"]}
        chain = Chain()
        chain.line((("filter.TbMsgTypeFilterNode", only), "True"), (("sms.TbSendSmsNode", sms), "Success"))
        chain.save(tenant, root=True)
        requests.post(f"{server.http}/api/v1/{device.token}/telemetry", json={"temperature": 71}, timeout=10)
        assert centre.next() == ("4967890", "It is 71 degrees")


def test_the_machine_tells_how_busy_it_is(sysadmin, shared):
    [this] = sysadmin.get("/api/admin/systemInfo").json()["systemData"]
    assert this["serviceType"] == "MONOLITH" and 1 <= this["cpuCount"] <= os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    disk = os.statvfs(shared.data_dir)
    assert 0 < this["totalMemory"] <= memory and this["totalDiscSpace"] == disk.f_blocks * disk.f_frsize
    for part in ("cpuUsage", "memoryUsage", "discUsage"):
        assert 0 <= this[part] <= 100, part


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
