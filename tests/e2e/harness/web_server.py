"""An HTTP server that answers as a test says, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit


class WebRequest(NamedTuple):
    """A request of somebody."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: str


class WebServer:
    """Answers each request with a status and JSON, or a text."""

    def __init__(self, answer: Callable[[WebRequest], tuple[int, object]]):
        self.answer = answer
        self.requests: list[WebRequest] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def serve(self) -> None:
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = WebRequest(
                    self.command, url.path, dict(parse_qsl(url.query, keep_blank_values=True)), headers, body
                )
                server.requests.append(request)
                status, content = server.answer(request)
                content = content if isinstance(content, str) else json.dumps(content)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content.encode())))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content.encode())

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = serve

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> WebServer:
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()
