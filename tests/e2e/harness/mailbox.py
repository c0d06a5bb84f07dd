"""A mail server that keeps what it is sent."""

from __future__ import annotations

import base64
import email
import email.policy
import socketserver
import threading
import time
from collections.abc import Callable
from email.message import EmailMessage


class Mailbox:
    """Speaks as much SMTP as a client needs to hand over a mail.

    With ``xoauth2`` it takes mails of that user with that access token alone.
    """

    def __init__(self, xoauth2: Callable[[], tuple[str, str]] | None = None):
        mailbox = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                self.answer("220 mail.example.org")
                trusted = xoauth2 is None
                for line in iter(self.rfile.readline, b""):
                    command = line.strip().upper().split(b" ")[0]
                    if command == b"QUIT":
                        self.answer("221 bye")
                        return
                    if command == b"EHLO" and xoauth2:
                        self.answer("250-mail.example.org")
                        self.answer("250 AUTH XOAUTH2")
                        continue
                    if command == b"AUTH":
                        user, token = xoauth2()
                        shown = base64.b64decode(line.split()[-1]).decode()
                        trusted = shown == f"user={user}\1auth=Bearer {token}\1\1"
                        self.answer("235 welcome" if trusted else "535 no")
                        continue
                    if not trusted and command == b"MAIL":
                        self.answer("530 who are you")
                        continue
                    if command != b"DATA":
                        self.answer("250 fine")
                        continue
                    self.answer("354 go on")
                    lines = []
                    for text in iter(self.rfile.readline, b".\r\n"):
                        lines.append(text.removeprefix(b"."))
                    with mailbox.lock:
                        mailbox.mails.append(email.message_from_bytes(b"".join(lines), policy=email.policy.default))
                    self.answer("250 taken")

            def answer(self, text: str) -> None:
                self.wfile.write(text.encode() + b"\r\n")

        self.lock = threading.Lock()
        self.mails: list[EmailMessage] = []
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def settings(self) -> dict:
        """Settings of the installation that name this server."""
        return {
            "key": "mail",
            "jsonValue": {
                "mailFrom": "iot@example.org",
                "smtpProtocol": "smtp",
                "smtpHost": "127.0.0.1",
                "smtpPort": str(self.server.server_address[1]),
                "timeout": "10000",
                "enableTls": False,
            },
        }

    def next(self, to: str, within: float = 10) -> str:
        """Waits for a mail to somebody, takes it out, and returns its text."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            with self.lock:
                for mail in self.mails:
                    if mail["To"] == to:
                        self.mails.remove(mail)
                        return mail.get_content()
            time.sleep(0.02)
        raise AssertionError(f"no mail to {to}, but to {[mail['To'] for mail in self.mails]}")

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()
