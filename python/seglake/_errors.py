"""What goes wrong, as exceptions with fields."""

from __future__ import annotations

from collections.abc import Sequence


class SeglakeError(Exception):
    """The base of everything that only this library raises. A bug in it raises this class itself: please report it."""


class FormatError(SeglakeError, ValueError):
    """The bytes are not of the format asked for, or no format could be told from them."""


class LimitError(SeglakeError):
    """A reader's own limit was met: the data may be sound. `option` names the argument that raises the limit."""

    def __init__(self, message: str, *, option: str) -> None:
        super().__init__(message)
        self.option = option

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args[0], {"option": self.option}))


class ColumnsError(SeglakeError, ValueError):
    """A conversion would lose columns of its source, or lacks some that the new format needs.

    `lost` are the names of the former, with fields of structures as `clock.seq`: `drop` gives them up. `missing` are
    those of the latter: `set` gives values for them.
    """

    def __init__(self, message: str, *, lost: Sequence[str], missing: Sequence[str]) -> None:
        super().__init__(message)
        self.lost: list[str] = list(lost)
        self.missing: list[str] = list(missing)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args[0], {"lost": self.lost, "missing": self.missing}))


class DamageError(SeglakeError):
    """The file is damaged.

    `path` is the file (None for a buffer), `byte_offset` the absolute offset of the damage, `cause` the
    ledger's word for it, `expected` and `actual` what should have been there and what was.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None,
        byte_offset: int,
        cause: str,
        expected: str,
        actual: str,
    ) -> None:
        super().__init__(message)
        self.path = path
        self.byte_offset = byte_offset
        self.cause = cause
        self.expected = expected
        self.actual = actual

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args[0], dict(self.__dict__)))


class WrongKeyError(DamageError):
    """No record checks but the structure is sound: the key is probably not the one it was written with."""


class DamageWarning(UserWarning):
    """Damage was skipped while reading; the reader's `report` says what and where."""


def _rebuild(kind: type[SeglakeError], message: str, fields: dict[str, object]) -> SeglakeError:
    return kind(message, **fields)  # pyright: ignore[reportArgumentType, reportCallIssue]
