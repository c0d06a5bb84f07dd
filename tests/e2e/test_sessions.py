"""Sessions of people: they see their own, what ends them stays ended, refresh tokens count once, and strangers lock nobody out."""

import concurrent.futures
import time

import pytest
import requests

from harness.rest import Rest, unique
from harness.server import SYSADMIN, eventually

TENANT = ("tenant@thingsboard.org", "tenant")
SESSIONS = "/api/user/sessions"
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/17.2 Mobile/15E148 Safari/604.1"
)


class FromAddress(requests.adapters.HTTPAdapter):
    """Connections that come from another address of this machine."""

    def __init__(self, address: str):
        self.address = address
        super().__init__()

    def init_poolmanager(self, *args, **kwargs):
        super().init_poolmanager(*args, source_address=(self.address, 0), **kwargs)


def nobody(server, address: str = "127.0.0.1") -> Rest:
    rest = Rest(server.http)
    rest.session.mount("http://", FromAddress(address))
    return rest


def refresh(server, token: str, expect: int = 200) -> dict:
    return nobody(server).post("/api/auth/token", {"refreshToken": token}, expect=expect).json()


def is_signed_in(rest: Rest) -> bool:
    answer = rest.get("/api/auth/user", expect=None)
    assert answer.status_code in (200, 401), answer.text
    return answer.status_code == 200


def sign_outs(rest: Rest) -> list[dict]:
    return rest.get("/api/audit/logs", pageSize=100, page=0, actionTypes="LOGOUT").json()["data"]


@pytest.fixture
def server(make_server):
    return make_server().start()


def restart(server, *rests: Rest) -> None:
    server.kill()
    server.start()
    for rest in rests:
        rest.base = server.http


def test_what_was_signed_out_stays_so_after_a_crash(server):
    gone, stays = server.rest(*TENANT), server.rest(*TENANT)
    first = gone.refresh_token
    gone.use(refresh(server, first))
    gone.post("/api/auth/logout")
    restart(server, gone, stays)
    assert not is_signed_in(gone) and is_signed_in(stays)
    for token in (first, gone.refresh_token):
        assert refresh(server, token, 401)["errorCode"] == 11
    stays.use(refresh(server, stays.refresh_token))
    assert is_signed_in(stays)


def test_people_recognize_their_sessions_and_end_one(server):
    here, phone, sysadmin = server.rest(*TENANT), nobody(server, "127.0.0.9"), server.rest(*SYSADMIN)
    phone.session.headers["User-Agent"] = PHONE
    phone.login(*TENANT)
    answer = here.get(SESSIONS)
    for token in (here.token, here.refresh_token, phone.token, phone.refresh_token):
        assert token not in answer.text
    [own] = [session for session in answer.json() if session["current"]]
    [other] = [session for session in answer.json() if session["clientAddress"] == "127.0.0.9"]
    assert own["browser"].startswith("Python Requests") and own["clientAddress"] == "127.0.0.1"
    assert (other["browser"], other["os"], other["current"]) == ("Safari 17.2", "iOS", False)
    for session in (own, other):
        assert abs(session["createdTime"] - time.time() * 1_000) < 60_000
        assert session["lastUsedTime"] >= session["createdTime"]

    path = f"{SESSIONS}/{other['sessionId']}"
    assert other["sessionId"] not in sysadmin.get(SESSIONS).text
    sysadmin.delete(path, expect=404)
    nobody(server).delete(path, expect=401)
    assert is_signed_in(phone)
    here.delete(path)
    here.delete(path, expect=404)
    for _ in range(2):
        assert not is_signed_in(phone)
        assert refresh(server, phone.refresh_token, 401)["errorCode"] == 11
        assert other["sessionId"] not in here.get(SESSIONS).text
        restart(server, here, phone)
    # When and where a session was opened outlives restarts and new tokens.
    here.use(refresh(server, here.refresh_token))
    [later] = [session for session in here.get(SESSIONS).json() if session["current"]]
    assert {**later, "lastUsedTime": 0} == {**own, "lastUsedTime": 0}


def test_all_other_sessions_of_a_user_end_at_once(server):
    here, sysadmin = server.rest(*TENANT), server.rest(*SYSADMIN)
    others = [server.rest(*TENANT) for _ in range(3)]
    here.use(refresh(server, here.refresh_token))
    here.delete(SESSIONS)
    for _ in range(2):
        for other in others:
            assert not is_signed_in(other)
            refresh(server, other.refresh_token, 401)
        assert is_signed_in(here) and is_signed_in(sysadmin)
        assert [session["current"] for session in here.get(SESSIONS).json()] == [True]
        restart(server, here, sysadmin, *others)
    here.use(refresh(server, here.refresh_token))
    # A log-out leaves the list, and a new password ends the rest.
    away, gone = server.rest(*TENANT), server.rest(*TENANT)
    gone.post("/api/auth/logout")
    assert len(here.get(SESSIONS).json()) == 2
    passwords = {"currentPassword": TENANT[1], "newPassword": "another one"}
    here.use(here.post("/api/auth/changePassword", passwords).json())
    assert not is_signed_in(away)
    assert [session["current"] for session in here.get(SESSIONS).json()] == [True]


def test_a_refresh_token_that_is_used_again_ends_its_session(server):
    thief, owner, other = server.rest(*TENANT), server.rest(*TENANT), server.rest(*TENANT)
    stolen = owner.refresh_token
    for _ in range(20):
        owner.use(refresh(server, owner.refresh_token))
    restart(server, thief, owner, other)
    assert is_signed_in(owner)
    refresh(server, stolen, 401)
    eventually(lambda: any("used again" in entry["actionFailureDetails"] for entry in sign_outs(other)))
    for _ in range(2):
        assert not is_signed_in(owner)
        refresh(server, owner.refresh_token, 401)
        restart(server, owner, other)
    assert is_signed_in(other), "the user's other session"


def test_tabs_and_threads_that_refresh_at_the_same_time_all_go_on(server):
    rest = server.rest(*TENANT)
    for _ in range(3):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            pairs = list(pool.map(lambda _: refresh(server, rest.refresh_token), range(16)))
        for pair in pairs:
            tab = Rest(server.http)
            tab.use(pair)
            assert is_signed_in(tab)
        # Whichever of the answers is kept, it buys the next one.
        rest.use(pairs[-1])
    restart(server, rest)
    rest.use(refresh(server, rest.refresh_token))


def guess(server, address: str, username: str) -> None:
    stranger = nobody(server, address)
    for number in range(12):
        body = {"username": username, "password": f"guess {number}"}
        stranger.post("/api/auth/login", body, expect=401)


def test_strangers_lock_no_administrator_out(make_server):
    server = make_server(env={"FIELDLINE_API_MAX_FAILED_LOGINS": "10"}).start()
    nobody(server, "127.0.0.1").login(*SYSADMIN)
    # What is known of the administrator's home is not lost with the process.
    restart(server)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        addresses = [f"127.0.{network}.9" for network in range(1, 16)]
        list(pool.map(lambda address: guess(server, address, SYSADMIN[0]), addresses))
    # Those who guess are locked out themselves, right as they may be at last, and so is whoever is near them.
    for address in ("127.0.1.9", "127.0.1.10"):
        answer = nobody(server, address).post(
            "/api/auth/login", {"username": SYSADMIN[0], "password": SYSADMIN[1]}, expect=401
        )
        assert "locked" in answer.json()["message"]
    home = nobody(server, "127.0.0.1")
    home.login(*SYSADMIN)
    assert home.get("/api/auth/user").json()["authority"] == "SYS_ADMIN"
    # Where nobody has guessed from, there is a try.
    nobody(server, "127.1.0.1").login(*SYSADMIN)


def test_strangers_disable_nobody_where_wrong_passwords_do(server):
    sysadmin = server.rest(*SYSADMIN)
    settings = sysadmin.get("/api/admin/securitySettings").json()
    sysadmin.post("/api/admin/securitySettings", settings | {"maxFailedLoginAttempts": 3})
    nobody(server, "127.0.0.1").login(*TENANT)
    guess(server, "127.0.7.7", TENANT[0])
    nobody(server, "127.0.0.1").login(*TENANT)
    # At home it is the user who does not know the password.
    guess(server, "127.0.0.1", TENANT[0])
    body = {"username": TENANT[0], "password": TENANT[1]}
    answer = nobody(server, "127.2.0.1").post("/api/auth/login", body, expect=401)
    assert "not active" in answer.json()["message"]


def test_one_address_that_logs_in_all_the_time_leaves_others_their_turn(server):
    crowd = nobody(server, "127.0.9.1")
    name = unique("nobody")

    def knock(number: int) -> int:
        body = {"username": f"{name}-{number}@example.org", "password": "guess"}
        return crowd.post("/api/auth/login", body, expect=None).status_code

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        knocks = [pool.submit(knock, number) for number in range(250)]
        for _ in range(3):
            nobody(server, "127.0.0.1").login(*TENANT)
        answers = {knock.result() for knock in knocks}
    assert answers <= {401, 429, 503}
