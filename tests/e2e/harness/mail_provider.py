"""A provider of mail accounts by OAuth 2: people allow access, tokens are bought, and its mail server takes them alone."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import requests

from harness.mailbox import Mailbox

CLIENT = ("fieldline", "the client's secret")


class MailProvider:
    """Each refresh token is good for one access token and the next refresh token."""

    def __init__(self, account: str):
        self.account = account
        self.code = self.refresh_token = self.access_token = None
        self.bought = 0
        self.mailbox = Mailbox(xoauth2=lambda: (self.account, self.access_token))
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = {name: value for name, [value] in parse_qs(urlsplit(self.path).query).items()}
                assert (asked["client_id"], asked["response_type"]) == (CLIENT[0], "code"), asked
                assert (asked["access_type"], asked["scope"]) == ("offline", "mail offline"), asked
                provider.code = "a code"
                answer = urlencode({"code": provider.code, "state": asked["state"]})
                self.send_response(302)
                self.send_header("Location", f"{asked['redirect_uri']}?{answer}")
                self.end_headers()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                asked = {name: value for name, [value] in parse_qs(body).items()}
                status, answer = provider.sell(asked)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def sell(self, asked: dict) -> tuple[int, dict]:
        """Answers at the address where tokens are bought."""
        if (asked.get("client_id"), asked.get("client_secret")) != CLIENT:
            return 401, {"error": "invalid_client"}
        if asked["grant_type"] == "authorization_code":
            shown, expected, self.code = asked["code"], self.code, None
        else:
            shown, expected = asked["refresh_token"], self.refresh_token
        if expected is None or shown != expected:
            return 400, {"error": "invalid_grant", "error_description": "that is none of mine"}
        self.bought += 1
        self.access_token, self.refresh_token = f"access {self.bought}", f"refresh {self.bought}"
        return 200, {
            "access_token": self.access_token,
            "refresh_token": self.refresh_token,
            "token_type": "Bearer",
            "expires_in": 3600,
        }

    def settings(self, redirect: str) -> dict:
        """Settings of the installation that name this provider and its mail server."""
        settings = self.mailbox.settings()
        settings["jsonValue"] |= {
            "username": self.account,
            "enableOauth2": True,
            "providerId": "CUSTOM",
            "clientId": CLIENT[0],
            "clientSecret": CLIENT[1],
            "authUri": f"{self.url}/authorize?access_type=offline",
            "tokenUri": f"{self.url}/token",
            "redirectUri": redirect,
            "scope": ["mail", "offline"],
        }
        return settings

    def allow(self, url: str) -> str:
        """What a person does who allows access: where the provider sends the browser back to."""
        answer = requests.get(url, allow_redirects=False, timeout=10)
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"]

    def __enter__(self) -> MailProvider:
        return self

    def __exit__(self, *_) -> None:
        self.mailbox.__exit__()
        self.server.shutdown()
        self.server.server_close()
