"""A mail server that keeps what it is sent."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
import time
from email.message import EmailMessage


class Mailbox:
    """Speaks as much SMTP as a client needs to hand over a mail."""

    def __init__(self):
        mailbox = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                self.answer("220 mail.example.org")
                for line in iter(self.rfile.readline, b""):
                    command = line.strip().upper().split(b" ")[0]
                    if command == b"QUIT":
                        self.answer("221 bye")
                        return
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
