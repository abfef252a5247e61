"""The server of object stores answers as moto, which others made: requests one by one, and drawn at random."""

from __future__ import annotations

import hashlib
import random
import re
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from moto.backends import get_backend
from moto.server import create_backend_app
from s3_server import S3, Answer, Asked

# What tells an answer from another one. Times are those of now, and the number of an upload is a new one each time.
HEADERS = {"content-range", "content-type", "etag", "x-amz-bucket-region", "x-amz-meta-a"}
SIGNED = "AWS4-HMAC-SHA256 Credential=AKIAQ7EXAMPLE42/20240101/eu-central-1/s3/aws4_request"
KEYS = ["a", "a/b", "a/b/c", "a/d", "b c", "größe/x", "日本", "a+b", "a%20b", "z/", "z/y", "<&>"]


class Pair:
    """Both servers, which are asked the same."""

    def __init__(self) -> None:
        get_backend("s3").reset()
        self.own = S3()
        self.moto: Any = create_backend_app("s3").test_client()
        self.uploads: list[tuple[str, str, str]] = []
        self.etags: list[str] = []

    def ask(self, method: str, path: str, query: str = "", body: bytes = b"", **headers: str) -> Answer:
        """Asks both, and returns what they answer."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        own = self.own.answer(Asked(method, path, query, given, body))
        there = self.moto.open(
            f"{quote(path)}?{query}", method=method, data=body, headers={"Authorization": SIGNED, **given}
        )
        asked = f"{method} {path}?{query} {given}"
        assert own.status == there.status_code, (asked, own, there.data)
        found = {name.lower(): value for name, value in there.headers.items() if name.lower() in HEADERS}
        said = {name.lower(): value for name, value in own.headers.items() if name.lower() in HEADERS}
        is_text = own.headers.get("Content-Type") == "application/xml" and method != "HEAD"
        if is_text:
            assert plain(own.body) == plain(there.data), asked
        elif method != "HEAD":
            assert own.body == there.data, asked
        else:
            assert own.status != HTTPStatus.OK or own.length in (None, int(there.headers["content-length"])), asked
        if own.status < HTTPStatus.BAD_REQUEST and not is_text:
            assert said == {name: value for name, value in found.items() if name in said}, asked
            assert found.keys() - said.keys() <= {"content-type"}, asked
        return own

    def begin(self, key: str) -> int:
        """Begins an upload; returns its place in `uploads`."""
        own = self.own.answer(Asked("POST", f"/logs/{key}", "uploads=", {}, b""))
        there = self.moto.post(f"/logs/{quote(key)}?uploads", headers={"Authorization": SIGNED})
        assert (own.status, plain(own.body)) == (there.status_code, plain(there.data))
        ours, theirs = (re.findall(rb"<UploadId>(.*)</UploadId>", body)[0].decode() for body in (own.body, there.data))
        self.uploads.append((key, ours, theirs))
        return len(self.uploads) - 1

    def on_upload(self, number: int, method: str, more: str = "", body: bytes = b"", **headers: str) -> None:
        """Asks for something of an upload, of which each server has a number of its own."""
        key, ours, theirs = self.uploads[number]
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        own = self.own.answer(Asked(method, f"/logs/{key}", f"{more}uploadId={ours}", given, body))
        there = self.moto.open(
            f"/logs/{quote(key)}?{more}uploadId={theirs}",
            method=method,
            data=body,
            headers={"Authorization": SIGNED, **given},
        )
        assert own.status == there.status_code, (method, more, own, there.data)
        assert own.headers.get("ETag") == there.headers.get("etag")
        if own.body:
            assert plain(own.body) == plain(there.data)


def plain(body: bytes) -> Any:
    """What is said in XML that clients of tests look at."""
    root = ElementTree.fromstring(body)
    name = root.tag.rpartition("}")[2]

    def texts(element: ElementTree.Element, path: str) -> list[str | None]:
        return [found.text for found in element.iterfind(path)]

    if name == "Error":
        return name, texts(root, "{*}Code") or texts(root, "Code")
    if name == "ListBucketResult":
        objects = [
            (
                texts(each, "{*}Key"),
                texts(each, "{*}Size"),
                texts(each, "{*}ETag"),
                len(each.findtext("{*}LastModified", "")),
            )
            for each in root.iterfind("{*}Contents")
        ]
        counted = [texts(root, f"{{*}}{each}") for each in ("Name", "KeyCount", "MaxKeys", "IsTruncated")]
        return name, objects, texts(root, "{*}CommonPrefixes/{*}Prefix"), counted
    if name == "DeleteResult":
        return name, sorted(map(str, texts(root, "{*}Deleted/{*}Key")))
    return name, texts(root, "{*}ETag"), texts(root, "{*}Key") if name != "CopyObjectResult" else None


@pytest.fixture
def pair() -> Pair:
    made = Pair()
    location = (
        b"<CreateBucketConfiguration><LocationConstraint>eu-central-1</LocationConstraint></CreateBucketConfiguration>"
    )
    made.ask("HEAD", "/logs")
    made.ask("PUT", "/logs", body=location)
    made.ask("HEAD", "/logs")
    return made


def test_requests_one_by_one(pair: Pair) -> None:
    pair.ask("GET", "/none", "list-type=2")
    pair.ask("PUT", "/none/a", body=b"x")
    pair.ask("PUT", "/logs/a", body=b"0123456789", **{"content-type": "application/x-directory", "x-amz-meta-a": "b"})
    for method in ("GET", "HEAD"):
        pair.ask(method, "/logs/a")
        pair.ask(method, "/logs/none")
    for wanted in ("0-3", "3-", "-4", "-20", "5-100", "10-12", "9-9", "12-"):
        pair.ask("GET", "/logs/a", range=f"bytes={wanted}")
    pair.ask("PUT", "/logs/b", **{"x-amz-copy-source": "/logs/a"})
    pair.ask("GET", "/logs/b")
    pair.ask("PUT", "/logs/c", **{"x-amz-copy-source": "logs/none"})
    pair.ask("DELETE", "/logs/b")
    pair.ask("DELETE", "/logs/b")
    pair.ask("GET", "/logs/b")
    chunked = {"content-encoding": "aws-chunked", "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}
    body = b"5\r\nhello\r\n3\r\nxyz\r\n0\r\nx-amz-checksum-crc64nvme:AAAAAAAAAAA=\r\n\r\n"
    pair.ask("PUT", "/logs/pieces", body=body, **chunked, **{"x-amz-decoded-content-length": "8"})
    assert pair.ask("GET", "/logs/pieces").body == b"helloxyz"


def test_conditions(pair: Pair) -> None:
    for headers in ({"if-none-match": "*"}, {"if-none-match": "*"}):
        pair.ask("PUT", "/logs/a", body=b"1", **headers)
    etag = pair.ask("HEAD", "/logs/a").headers["ETag"]
    pair.ask("PUT", "/logs/a", body=b"2", **{"if-match": '"0000"'})
    pair.ask("PUT", "/logs/a", body=b"2", **{"if-match": etag})
    pair.ask("PUT", "/logs/a", body=b"3", **{"if-match": etag})
    assert pair.ask("GET", "/logs/a").body == b"2"
    pair.ask("PUT", "/logs/none", body=b"3", **{"if-match": etag})
    pair.ask("GET", "/logs/a", **{"if-match": etag})


def test_uploads_in_parts(pair: Pair) -> None:
    large = random.Random(1).randbytes(5 << 20)
    number = pair.begin("größe/x")
    pair.on_upload(number, "PUT", "partNumber=1&", large)
    pair.on_upload(number, "PUT", "partNumber=2&", b"the end")

    def parts(*own: tuple[int, bytes]) -> bytes:
        said = "".join(
            f"<Part><PartNumber>{at}</PartNumber><ETag>{hashlib.md5(content).hexdigest()}</ETag></Part>"
            for at, content in own
        )
        return f"<CompleteMultipartUpload>{said}</CompleteMultipartUpload>".encode()

    pair.ask("GET", "/logs/größe/x")
    pair.on_upload(number, "POST", body=parts((1, large), (2, b"another")))
    pair.on_upload(number, "POST", body=parts((1, large), (2, b"the end")))
    assert pair.ask("GET", "/logs/größe/x").body == large + b"the end"
    small = pair.begin("s")
    pair.on_upload(small, "PUT", "partNumber=1&", b"one")
    pair.on_upload(small, "PUT", "partNumber=2&", b"two")
    pair.on_upload(small, "POST", body=parts((1, b"one"), (2, b"two")))
    pair.on_upload(small, "DELETE")
    pair.ask("GET", "/logs/s")
    # Of an upload that is gone moto itself fails.
    for method in ("PUT", "POST", "DELETE"):
        gone = f"partNumber=1&uploadId={pair.uploads[small][1]}"
        assert pair.own.answer(Asked(method, "/logs/s", gone, {}, b"")).status == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("seed", range(4))
def test_requests_at_random(pair: Pair, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(60):
        key, other = f"/logs/{draw.choice(KEYS)}", f"/logs/{draw.choice(KEYS)}"
        match draw.randrange(7):
            case 0 | 1:
                pair.ask("PUT", key, body=draw.randbytes(draw.randrange(30)))
            case 2:
                pair.ask("PUT", key, **{"x-amz-copy-source": quote(other)})
            case 3:
                pair.ask("DELETE", key)
            case 4:
                pair.ask(draw.choice(["GET", "HEAD"]), key)
            case 5:
                named = "".join(f"<Object><Key>{quote_xml(each)}</Key></Object>" for each in draw.sample(KEYS, 2))
                pair.ask("POST", "/logs", "delete=", f"<Delete>{named}</Delete>".encode())
            case _:
                prefix = draw.choice(["", "a", "a/", "a/b", "z/", "none"])
                asked = f"list-type=2&prefix={prefix}&max-keys={draw.choice([1, 2, 1000])}"
                asked += draw.choice(["", "&delimiter=/", "&start-after=a/b"])
                pair.ask("GET", "/logs", asked)


def quote_xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_lists_in_pieces() -> None:
    """Where each begins moto and this one say in their own words, so it is not compared."""
    own = S3("logs")
    for key in KEYS:
        assert own.answer(Asked("PUT", f"/logs/{key}", "", {}, b"x")).status == HTTPStatus.OK
    for delimiter in ("", "&delimiter=/"):
        found: list[Any] = []
        token = ""
        while True:
            body = own.answer(Asked("GET", "/logs", f"list-type=2&max-keys=2{delimiter}{token}", {}, b"")).body
            _, objects, prefixes, _ = plain(body)
            found += [key for (key,), *_ in objects] + prefixes
            more = ElementTree.fromstring(body).findtext("{*}NextContinuationToken")
            if more is None:
                break
            token = f"&continuation-token={quote(more)}"
        _, objects, prefixes, _ = plain(own.answer(Asked("GET", "/logs", f"list-type=2{delimiter}", {}, b"")).body)
        assert sorted(found) == sorted([key for (key,), *_ in objects] + prefixes)
        assert len(found) == len(set(found))


@pytest.mark.parametrize(
    "query", ["acl=", "list-type=2&encoding-type=url", "versions=", "list-type=2&fetch-owner=true"]
)
def test_what_is_not_known_is_refused(query: str) -> None:
    assert S3("logs").answer(Asked("GET", "/logs", query, {}, b"")).status == HTTPStatus.NOT_IMPLEMENTED
