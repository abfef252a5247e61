"""A server of the S3 protocol on loopback, which counts requests, and fails or dawdles as it is told to."""

from __future__ import annotations

import http.client
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import quote, unquote

import pyarrow.fs
from s3_server import REGION, S3, Answer, Asked

ACCESS_KEY = "AKIAQ7EXAMPLE42"
SECRET_KEY = "kX9-not-to-be-shown/anywhere"
BUCKET = "logs"


@dataclass
class Request:
    """What was asked for, and how many bytes went out."""

    method: str
    path: str
    query: str
    range: str | None
    sent: int = 0


# What is done with a request instead of answering it, or before: see `Faults`.
Fault = Callable[[Request], "str | None"]


@dataclass
class ObjectStore:
    """A running server. Set `fault` to a function that names what happens to a request.

    `503` and `403` are answered as such, `cut` sends half of the body, `reset` hangs up, `lost` does what is asked and
    hangs up, `slow` waits a little; None is as ever.
    """

    host: str
    port: int
    requests: list[Request] = field(default_factory=list[Request])
    fault: Fault | None = None
    delay: float = 0.2

    @property
    def endpoint(self) -> str:
        return f"{self.host}:{self.port}"

    def filesystem(self, **settings: Any) -> pyarrow.fs.S3FileSystem:
        """A client of the store."""
        arguments: dict[str, Any] = {
            "access_key": ACCESS_KEY,
            "secret_key": SECRET_KEY,
            "endpoint_override": self.endpoint,
            "scheme": "http",
            "region": REGION,
        }
        return pyarrow.fs.S3FileSystem(**(arguments | settings))

    def options(self) -> dict[str, str]:
        """The same for Spark."""
        return {
            "fs.access_key": ACCESS_KEY,
            "fs.secret_key": SECRET_KEY,
            "fs.endpoint_override": self.endpoint,
            "fs.scheme": "http",
            "fs.region": REGION,
        }

    def put(self, key: str, content: bytes, bucket: str = BUCKET) -> str:
        """Stores an object; returns its URI."""
        connection = http.client.HTTPConnection(self.host, self.port)
        # A request as a client would sign it, as far as this server looks.
        sign = {"Authorization": f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20240101/{REGION}/s3/aws4_request"}
        connection.request("PUT", f"/{bucket}/{quote(key)}", content, sign)
        assert connection.getresponse().status == 200
        connection.close()
        return f"s3://{bucket}/{key}"

    @contextmanager
    def counting(self) -> Generator[list[Request]]:
        """The requests that are made in the block."""
        before = len(self.requests)
        made: list[Request] = []
        yield made
        made.extend(self.requests[before:])


class _Handler(BaseHTTPRequestHandler):
    """Answers one request for each connection, so that no client makes one again because an old connection ended."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def _answer(self) -> None:
        self.close_connection = True
        path, _, query = self.path.partition("?")
        store = self.server.store
        request = Request(self.command, unquote(path), query, self.headers.get("Range"))
        store.requests.append(request)
        fault = store.fault(request) if store.fault is not None else None
        if f"Credential={ACCESS_KEY}/" not in self.headers.get("Authorization", ""):
            fault = "403"
        if fault == "slow":
            time.sleep(store.delay)
        elif fault == "reset":
            self._hang_up()
            return
        body = self._body()
        if fault in ("403", "503"):
            answer = Answer({"403": HTTPStatus.FORBIDDEN, "503": HTTPStatus.SERVICE_UNAVAILABLE}[fault])
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = self.server.s3.answer(Asked(self.command, request.path, query, headers, body))
        if fault == "lost":
            self._hang_up()
            return
        self._send(answer, request, is_cut=fault == "cut")

    def handle_expect_100(self) -> bool:
        super().handle_expect_100()
        self.wfile.flush()
        return True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer

    def _send(self, answer: Answer, request: Request, *, is_cut: bool) -> None:
        self.send_response(answer.status)
        length = len(answer.body) if answer.length is None else answer.length
        for name, value in {**answer.headers, "Content-Length": str(length), "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        content = b"" if self.command == "HEAD" else answer.body
        content = content[: len(content) // 2] if is_cut else content
        request.sent += len(content)
        self.wfile.write(content)
        self.wfile.flush()
        if is_cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces: list[bytes] = []
        while length := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(length))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        self.s3 = S3(BUCKET)
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store = ObjectStore("127.0.0.1", self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone is no error: those of tests are killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def object_store() -> Generator[ObjectStore]:
    """Runs a server with an empty bucket until the end of the block."""
    server = _Server()
    # It looks so often whether it is to end, in seconds.
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
