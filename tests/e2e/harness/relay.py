"""A relay to a server, which can be cut off as a network can."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """Forwards connections to a server until it is cut off, and again once it is mended."""

    def __init__(self, target: tuple[str, int] | None = None, listen: tuple[str, int] = ("127.0.0.1", 0)):
        self.target = target
        """Where the server is; set later for one that has to know the relay before it starts."""
        self.listener = socket.create_server(listen)
        self.host, self.port = self.listener.getsockname()
        self.is_cut = False
        self.lock = threading.Lock()
        self.sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where clients find the relay."""
        return f"{self.host}:{self.port}"

    def cut(self) -> None:
        """Breaks all connections, and those that are tried from now on."""
        with self.lock:
            self.is_cut = True
            for connection in self.sockets:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Forwards new connections again."""
        with self.lock:
            self.is_cut = False

    def close(self) -> None:
        """Ends the relay."""
        self.cut()
        self.listener.close()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            # A server that does not answer holds up nobody else.
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        try:
            server = None if self.is_cut else socket.create_connection(self.target)
        except OSError:
            server = None
        with self.lock:
            if server is None or self.is_cut:
                client.close()
                if server is not None:
                    server.close()
                return
            self.sockets |= {client, server}
        for ends in [(client, server), (server, client)]:
            threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.sockets.discard(source)
        source.close()
