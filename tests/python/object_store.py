"""A server of the S3 protocol on loopback, which counts requests, and fails or dawdles as it is told to."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pyarrow.fs
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

ACCESS_KEY = "AKIAQ7EXAMPLE42"
SECRET_KEY = "kX9-not-to-be-shown/anywhere"
REGION = "eu-central-1"
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

    `503` and `403` are answered as such, `cut` sends half of the body, `short` sends half of it as if it were all,
    `reset` hangs up, `lost` does what is asked and hangs up, `slow` waits a little; None is as ever.
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

    def storage_options(self, **settings: Any) -> dict[str, Any]:
        """What reaches the store by URIs."""
        return {
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SECRET_KEY,
            "endpoint": f"http://{self.endpoint}",
            "allow_http": "true",
            "region": REGION,
        } | settings

    def options(self) -> dict[str, str]:
        """The same for Spark."""
        return {f"fs.{name}": value for name, value in self.storage_options().items()}

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


class _Application:
    """Moto behind what counts and fails."""

    def __init__(self) -> None:
        self.store = ObjectStore("", 0)
        # Without what finds out which service a request is for: that takes as long as its answer.
        self._moto: Any = create_backend_app("s3")

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(
            environ["REQUEST_METHOD"],
            environ["PATH_INFO"],
            environ.get("QUERY_STRING", ""),
            environ.get("HTTP_RANGE"),
        )
        self.store.requests.append(request)
        fault = self.store.fault(request) if self.store.fault is not None else None
        if f"Credential={ACCESS_KEY}/" not in environ.get("HTTP_AUTHORIZATION", ""):
            fault = "403"
        if fault == "slow":
            time.sleep(self.store.delay)
        elif fault == "reset":
            hang_up(environ)
        elif fault in ("403", "503"):
            words = {"403": "403 Forbidden", "503": "503 Slow Down"}[fault]
            start_response(words, [("Content-Length", "0")])
            return []
        if fault == "lost":
            list(self._moto(environ, lambda *_: None))
            hang_up(environ)
        if fault == "short":
            return self._short(environ, start_response)
        body: Iterable[bytes] = self._moto(environ, start_response)
        return self._sent(body, request, environ if fault == "cut" else None)

    def _short(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        answered: list[Any] = []
        body = b"".join(self._moto(environ, lambda *arguments: answered.extend(arguments)))
        half = body[: len(body) // 2]
        headers = [each for each in answered[1] if each[0].lower() != "content-length"]
        start_response(answered[0], [*headers, ("Content-Length", str(len(half)))])
        return [half]

    def _sent(self, body: Iterable[bytes], request: Request, cut: dict[str, Any] | None) -> Iterator[bytes]:
        for piece in body:
            part = piece if cut is None else piece[: len(piece) // 2]
            request.sent += len(part)
            yield part
            if cut is not None:
                hang_up(cut)


def hang_up(environ: dict[str, Any]) -> None:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError("as told")


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


@contextmanager
def object_store() -> Generator[ObjectStore]:
    """Runs a server with an empty bucket until the end of the block."""
    application = _Application()
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=_Quiet)
    application.store = store = ObjectStore("127.0.0.1", server.server_port)
    # It looks so often whether it is to end, in seconds.
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        store.filesystem(allow_bucket_creation=True).create_dir(BUCKET)
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
