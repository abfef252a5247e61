"""The part of the S3 protocol that clients in tests speak, in memory. Whatever else they ask for is answered with 501.

`test_s3_server.py` compares it with moto, which knows all of S3, and takes several times as long for an answer.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

REGION = "eu-central-1"
# The least bytes of a part that is not the last.
_PART_BYTES = 5 << 20
_XMLNS = "http://s3.amazonaws.com/doc/2006-03-01/"
_KEPT = ("content-type", "content-encoding", "x-amz-meta-")


class Asked(NamedTuple):
    """A request: `path` as it is, decoded, and headers by their names in lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    """What is answered. Without a body, `length` is the length of the one that HEAD tells of."""

    status: HTTPStatus
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    length: int | None = None


class _Refused(Exception):
    """An answer with an error."""

    def __init__(self, status: HTTPStatus, code: str, message: str = "as S3 does") -> None:
        text = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        self.answer = Answer(status, {"Content-Type": "application/xml"}, _declared(text))


def _declared(text: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()


def _xml(name: str, content: str) -> Answer:
    text = f'<{name} xmlns="{_XMLNS}">{content}</{name}>'
    return Answer(HTTPStatus.OK, {"Content-Type": "application/xml"}, _declared(text))


def _text(name: str, value: object) -> str:
    """An element. Of a line's end a reader would else make another one."""
    return f"<{name}>{escape(str(value), {chr(13): '&#13;', chr(10): '&#10;'})}</{name}>"


@dataclass
class _Object:
    content: bytes
    headers: dict[str, str]
    etag: str
    modified: int = field(default_factory=lambda: int(time.time()))

    def described(self) -> dict[str, str]:
        own = {"ETag": self.etag, "Last-Modified": formatdate(self.modified, usegmt=True), "Accept-Ranges": "bytes"}
        return {"Content-Type": "binary/octet-stream"} | self.headers | own

    def iso(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.modified))


@dataclass
class _Upload:
    key: str
    headers: dict[str, str]
    parts: dict[int, _Object] = field(default_factory=dict[int, _Object])


@dataclass
class _Bucket:
    objects: dict[str, _Object] = field(default_factory=dict[str, _Object])
    uploads: dict[str, _Upload] = field(default_factory=dict[str, _Upload])


class S3:
    """Buckets in memory. All answers come one after the other, so each is of one moment."""

    def __init__(self, *buckets: str) -> None:
        self._buckets = {name: _Bucket() for name in buckets}
        self._lock = threading.Lock()

    def answer(self, asked: Asked) -> Answer:
        """Does what is asked for."""
        bucket, _, key = asked.path.removeprefix("/").partition("/")
        query = dict(parse_qsl(asked.query, keep_blank_values=True))
        known = _OF_KEYS if key else _OF_BUCKETS
        kind = next((name for name in query if name in _KINDS), "")
        answers = known.get((asked.method, kind))
        with self._lock:
            try:
                if not bucket or answers is None or set(query) - _KINDS - _PARAMETERS:
                    raise _Refused(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", f"{asked.method} {asked.query}")
                if (asked.method, key, kind) == ("PUT", "", ""):
                    return self._create(bucket)
                if bucket not in self._buckets:
                    raise _Refused(HTTPStatus.NOT_FOUND, "NoSuchBucket")
                return answers(self, self._buckets[bucket], key or bucket, query, asked)
            except _Refused as refused:
                return refused.answer

    def _create(self, name: str) -> Answer:
        if name in self._buckets:
            raise _Refused(HTTPStatus.CONFLICT, "BucketAlreadyOwnedByYou")
        self._buckets[name] = _Bucket()
        return Answer(HTTPStatus.OK, {"Location": f"/{name}"})

    def _head_bucket(self, bucket: _Bucket, name: str, query: dict[str, str], asked: Asked) -> Answer:
        return Answer(HTTPStatus.OK, {"x-amz-bucket-region": REGION})

    def _list(self, bucket: _Bucket, name: str, query: dict[str, str], asked: Asked) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        token, most = query.get("continuation-token", ""), int(query.get("max-keys", 1000))
        found: list[tuple[str, _Object | None]] = []
        is_more = False
        for own, entry in _entries(bucket, prefix, delimiter, query.get("start-after", "")):
            if own.encode() <= token.encode():
                continue
            if len(found) == most:
                is_more = True
                break
            found.append((own, entry))
        said = [_text("Name", name), _text("Prefix", prefix), *([_text("Delimiter", delimiter)] if delimiter else [])]
        said += [_text("KeyCount", len(found)), _text("MaxKeys", most), _text("IsTruncated", str(is_more).lower())]
        if is_more and found:
            said.append(_text("NextContinuationToken", found[-1][0]))
        for own, entry in found:
            if entry is None:
                said.append(f"<CommonPrefixes>{_text('Prefix', own)}</CommonPrefixes>")
                continue
            about = {"Key": own, "LastModified": entry.iso(), "ETag": entry.etag, "Size": len(entry.content)}
            told = "".join(_text(each, value) for each, value in (about | {"StorageClass": "STANDARD"}).items())
            said.append(f"<Contents>{told}</Contents>")
        return _xml("ListBucketResult", "".join(said))

    def _delete_many(self, bucket: _Bucket, name: str, query: dict[str, str], asked: Asked) -> Answer:
        keys = [key.text or "" for key in _parsed(asked.body).iterfind(".//{*}Object/{*}Key")]
        for key in keys:
            bucket.objects.pop(key, None)
        return _xml("DeleteResult", "".join(f"<Deleted>{_text('Key', key)}</Deleted>" for key in keys))

    def _get(self, bucket: _Bucket, key: str, query: dict[str, str], asked: Asked) -> Answer:
        found = _existing(bucket, key)
        if not _matches(asked.headers.get("if-match", "*"), found):
            raise _Refused(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed")
        own, size = found.described(), len(found.content)
        if asked.method == "HEAD":
            return Answer(HTTPStatus.OK, own, length=size)
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", asked.headers.get("range", ""))
        if wanted is None:
            return Answer(HTTPStatus.OK, own, found.content)
        first, last = wanted.groups()
        start = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if start >= end:
            raise _Refused(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "InvalidRange")
        own["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        return Answer(HTTPStatus.PARTIAL_CONTENT, own, found.content[start:end])

    def _put(self, bucket: _Bucket, key: str, query: dict[str, str], asked: Asked) -> Answer:
        _check_conditions(bucket, key, asked)
        source = asked.headers.get("x-amz-copy-source")
        if source is None:
            bucket.objects[key] = stored = _stored(_decoded(asked), asked)
            return Answer(HTTPStatus.OK, {"ETag": stored.etag})
        there, _, name = unquote(source).removeprefix("/").partition("/")
        if there not in self._buckets:
            raise _Refused(HTTPStatus.NOT_FOUND, "NoSuchBucket")
        copied = _existing(self._buckets[there], name)
        if copied is bucket.objects.get(key):
            raise _Refused(HTTPStatus.BAD_REQUEST, "InvalidRequest", "a copy onto itself that changes nothing")
        bucket.objects[key] = stored = _Object(copied.content, copied.headers, copied.etag)
        return _xml("CopyObjectResult", _text("ETag", stored.etag) + _text("LastModified", stored.iso()))

    def _delete(self, bucket: _Bucket, key: str, query: dict[str, str], asked: Asked) -> Answer:
        bucket.objects.pop(key, None)
        return Answer(HTTPStatus.NO_CONTENT)

    def _begin(self, bucket: _Bucket, key: str, query: dict[str, str], asked: Asked) -> Answer:
        number = uuid.uuid4().hex
        bucket.uploads[number] = _Upload(key, _kept(asked))
        return _xml("InitiateMultipartUploadResult", _text("Key", key) + _text("UploadId", number))

    def _put_part(self, bucket: _Bucket, key: str, query: dict[str, str], asked: Asked) -> Answer:
        if "x-amz-copy-source" in asked.headers:
            raise _Refused(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", "a part that is copied")
        part = _stored(_decoded(asked), asked)
        _upload(bucket, key, query).parts[int(query["partNumber"])] = part
        return Answer(HTTPStatus.OK, {"ETag": part.etag})

    def _complete(self, bucket: _Bucket, key: str, query: dict[str, str], asked: Asked) -> Answer:
        upload = _upload(bucket, key, query)
        _check_conditions(bucket, key, asked)
        named = [
            (int(part.findtext("{*}PartNumber", "")), part.findtext("{*}ETag", "").strip('"'))
            for part in _parsed(asked.body).iterfind(".//{*}Part")
        ]
        parts = [upload.parts.get(number) for number, _ in named]
        if not parts or [part and part.etag.strip('"') for part in parts] != [etag for _, etag in named]:
            raise _Refused(HTTPStatus.BAD_REQUEST, "InvalidPart")
        if named != sorted(named):
            raise _Refused(HTTPStatus.BAD_REQUEST, "InvalidPartOrder")
        contents = [part.content for part in parts if part is not None]
        if any(len(content) < _PART_BYTES for content in contents[:-1]):
            raise _Refused(HTTPStatus.BAD_REQUEST, "EntityTooSmall")
        digest = hashlib.md5(b"".join(hashlib.md5(content).digest() for content in contents)).hexdigest()
        etag = f'"{digest}-{len(contents)}"'
        bucket.objects[key] = _Object(b"".join(contents), upload.headers, etag)
        del bucket.uploads[query["uploadId"]]
        return _xml("CompleteMultipartUploadResult", _text("Key", key) + _text("ETag", etag))

    def _abort(self, bucket: _Bucket, key: str, query: dict[str, str], asked: Asked) -> Answer:
        _upload(bucket, key, query)
        del bucket.uploads[query["uploadId"]]
        return Answer(HTTPStatus.NO_CONTENT)


# What a parameter makes of a request, and parameters that say more about it.
_KINDS = {"list-type", "delete", "uploads", "uploadId"}
_PARAMETERS = {"prefix", "delimiter", "max-keys", "continuation-token", "start-after", "partNumber"}
_OF_BUCKETS: dict[tuple[str, str], Any] = {
    ("PUT", ""): S3._create,  # pyright: ignore[reportPrivateUsage]
    ("HEAD", ""): S3._head_bucket,  # pyright: ignore[reportPrivateUsage]
    ("GET", "list-type"): S3._list,  # pyright: ignore[reportPrivateUsage]
    ("POST", "delete"): S3._delete_many,  # pyright: ignore[reportPrivateUsage]
}
_OF_KEYS: dict[tuple[str, str], Any] = {
    ("HEAD", ""): S3._get,  # pyright: ignore[reportPrivateUsage]
    ("GET", ""): S3._get,  # pyright: ignore[reportPrivateUsage]
    ("PUT", ""): S3._put,  # pyright: ignore[reportPrivateUsage]
    ("DELETE", ""): S3._delete,  # pyright: ignore[reportPrivateUsage]
    ("POST", "uploads"): S3._begin,  # pyright: ignore[reportPrivateUsage]
    ("PUT", "uploadId"): S3._put_part,  # pyright: ignore[reportPrivateUsage]
    ("POST", "uploadId"): S3._complete,  # pyright: ignore[reportPrivateUsage]
    ("DELETE", "uploadId"): S3._abort,  # pyright: ignore[reportPrivateUsage]
}


def _entries(bucket: _Bucket, prefix: str, delimiter: str, after: str) -> Iterator[tuple[str, _Object | None]]:
    """Yields keys and common prefixes in their order, which is that of their bytes."""
    last = None
    for key in sorted((key for key in bucket.objects if key.startswith(prefix)), key=str.encode):
        if key.encode() <= after.encode():
            continue
        head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        common = f"{prefix}{head}{found}" if found else None
        if common is None:
            yield key, bucket.objects[key]
        elif common != last:
            yield common, None
        last = common


def _existing(bucket: _Bucket, key: str) -> _Object:
    if key not in bucket.objects:
        raise _Refused(HTTPStatus.NOT_FOUND, "NoSuchKey")
    return bucket.objects[key]


def _upload(bucket: _Bucket, key: str, query: dict[str, str]) -> _Upload:
    upload = bucket.uploads.get(query["uploadId"])
    if upload is None or upload.key != key:
        raise _Refused(HTTPStatus.NOT_FOUND, "NoSuchUpload")
    return upload


def _matches(condition: str, found: _Object | None) -> bool:
    return found is not None and (condition == "*" or condition.strip('"') == found.etag.strip('"'))


def _check_conditions(bucket: _Bucket, key: str, asked: Asked) -> None:
    found = bucket.objects.get(key)
    match, none_match = asked.headers.get("if-match"), asked.headers.get("if-none-match")
    if match is not None and found is None:
        raise _Refused(HTTPStatus.NOT_FOUND, "NoSuchKey")
    if (match is not None and not _matches(match, found)) or (none_match is not None and _matches(none_match, found)):
        raise _Refused(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed")


def _kept(asked: Asked) -> dict[str, str]:
    """The headers that come back with an object."""
    kept = {name: value for name, value in asked.headers.items() if name.startswith(_KEPT)}
    if kept.get("content-encoding") == "aws-chunked":
        del kept["content-encoding"]
    return kept


def _stored(content: bytes, asked: Asked) -> _Object:
    return _Object(content, _kept(asked), f'"{hashlib.md5(content).hexdigest()}"')


def _decoded(asked: Asked) -> bytes:
    """The content of a body, of which a client may send pieces with their lengths, and checksums after them."""
    if "aws-chunked" not in asked.headers.get("content-encoding", ""):
        return asked.body
    pieces: list[bytes] = []
    at = 0
    while True:
        line_end = asked.body.index(b"\r\n", at)
        length = int(asked.body[at:line_end].partition(b";")[0], 16)
        if not length:
            break
        at = line_end + 2
        pieces.append(asked.body[at : at + length])
        at += length + 2
    content = b"".join(pieces)
    if len(content) != int(asked.headers["x-amz-decoded-content-length"]):
        raise _Refused(HTTPStatus.BAD_REQUEST, "IncompleteBody")
    return content


def _parsed(body: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise _Refused(HTTPStatus.BAD_REQUEST, "MalformedXML") from None
