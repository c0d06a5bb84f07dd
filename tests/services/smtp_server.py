"""A mail server that keeps what it is given: smtp_server.py DIRECTORY

It writes its ports into DIRECTORY/ports when it is ready: one that offers STARTTLS, one encrypted from the beginning.
Both want the user "alice" with the password "alice-secret". Each mail becomes two files in DIRECTORY/mails:
NUMBER.eml, and NUMBER.json with the envelope and whether the connection was encrypted.
"""

import asyncio
import json
import pathlib
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


class Handler:
    def __init__(self, directory):
        self.directory = directory
        self.count = 0

    async def handle_DATA(self, server, session, envelope):
        number = self.count
        self.count += 1
        facts = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "encrypted": session.ssl is not None or server.transport.get_extra_info("sslcontext") is not None,
        }
        (self.directory / f"{number}.eml").write_bytes(envelope.original_content)
        temporary = self.directory / f"{number}.part"
        temporary.write_text(json.dumps(facts))
        temporary.rename(self.directory / f"{number}.json")
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    known = isinstance(data, LoginPassword) and (data.login, data.password) == (b"alice", b"alice-secret")
    return AuthResult(success=known, handled=False)


async def main(directory):
    mails = directory / "mails"
    mails.mkdir()
    handler = Handler(mails)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem", directory / "server.key")
    common = {"authenticator": authenticate, "auth_required": True, "auth_require_tls": False}

    loop = asyncio.get_running_loop()
    clear = await loop.create_server(lambda: SMTP(handler, tls_context=context, **common), "127.0.0.1", 0)
    encrypted = await loop.create_server(lambda: SMTP(handler, **common), "127.0.0.1", 0, ssl=context)
    ports = [server.sockets[0].getsockname()[1] for server in (clear, encrypted)]
    temporary = directory / "ports.part"
    temporary.write_text(f"{ports[0]} {ports[1]}\n")
    temporary.rename(directory / "ports")
    await asyncio.Event().wait()


asyncio.run(main(pathlib.Path(sys.argv[1])))
