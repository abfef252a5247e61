"""The docstrings of the API: everything public has one, and all examples in them are run."""

import ast
import doctest
import inspect
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

import seglake
from seglake.lake.result import IngestArguments

STUB = Path(seglake.__file__).with_name("_native.pyi")
MODULES = [seglake, seglake.exceptions, seglake.incremental, seglake.parity, seglake.types]
PURE = [
    seglake.export,
    seglake.ingest,
    seglake.scan,
    seglake.Scan,
    *(own for module in MODULES for own in vars(module).values() if inspect.isclass(own)),
    seglake.oplog.System,
]
START = datetime(2024, 6, 15, 5, tzinfo=UTC)


class Documented(NamedTuple):
    """Something public with a docstring: its name, its docstring, and whether it needs an example of its own."""

    name: str
    text: str | None
    needs_example: bool


def of_the_stub() -> Iterator[Documented]:
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        yield Documented(node.name, ast.get_docstring(node), needs_example=True)
        seen: set[str] = set()
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            # Of overloads the first has the text; what magic methods do is in Python's own documentation.
            if isinstance(member, ast.FunctionDef) and member.name not in seen and not member.name.startswith("_"):
                seen.add(member.name)
                yield Documented(f"{node.name}.{member.name}", ast.get_docstring(member), needs_example=True)


def of_modules() -> Iterator[Documented]:
    for own in {id(own): own for own in PURE}.values():
        is_error = inspect.isclass(own) and issubclass(own, BaseException)
        yield Documented(own.__qualname__, own.__doc__, needs_example=not is_error)
        members = vars(own).items() if inspect.isclass(own) and not hasattr(own, "_fields") else ()
        for name, member in members:
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                yield Documented(f"{own.__qualname__}.{name}", member.__doc__, needs_example=inspect.isfunction(member))


# Classes of the extension are in both.
DOCUMENTED = list({one.name: one for one in (*of_modules(), *of_the_stub())}.values())


def write_orders(path: Path, later: timedelta = timedelta()) -> None:
    """Writes a segment; a later one is no copy."""
    with seglake.create(path, format="active") as orders:
        for hour, type in enumerate(["created", "paid", "shipped"]):
            at = START + timedelta(hours=hour) + later
            orders.write(uuid=seglake.uuid6(at), type=f"order.{type}", value=b'{"order": 1}')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples read."""
    folder = tmp_path_factory.mktemp("docstrings")
    write_orders(folder / "orders.active")
    seglake.seal(folder / "orders.active", folder / "orders.sealed")
    with seglake.create(folder / "orders.tenant", format="tenant") as orders:
        for tenant in ("acme", "acme", "globex"):
            orders.write(partition=0, tenant=tenant, value=b'{"order": 1}')
    with seglake.create(folder / "orders.chunks", format="chunked", options={"chunk_records": 2}) as orders:
        for hour in range(3):
            orders.write(timestamp=START + timedelta(hours=hour), value=b'{"order": 1}')
    with seglake.create(folder / "orders.oplog", format="oplog") as orders:
        fields = {"version": 1, "checkpointer": 1, "clock": [{"key": bytes(32), "length": 5}], "abi": 0, "batch": 0}
        for _ in range(3):
            orders.write({**fields, "value": b'{"order": 1}'})
    with seglake.create(folder / "autobase.oplog", format="oplog", options={"dialect": "autobase"}) as orders:
        orders.write(version=2, clock=[], batch=0, optimistic=False, value=b"v")
    with seglake.SegmentLog(folder / "log") as log:
        log.write_batch([("order.created", b"1"), ("order.paid", b"2")])
        log.roll()
        log.write("order.shipped", b"3")
    whole = (folder / "orders.active").read_bytes()
    (folder / "damaged.active").write_bytes(whole[:60] + b"?" + whole[61:])
    logs = folder / "logs"
    logs.mkdir()
    write_orders(logs / "june.active")
    write_orders(logs / "july.active", timedelta(microseconds=1))
    return folder


@pytest.fixture
def there(folder: Path, tmp_path: Path) -> Iterator[None]:
    """Each example finds the same files in the present folder, and may write new ones."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    before = Path.cwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)


@pytest.mark.parametrize("one", DOCUMENTED, ids=lambda one: one.name)
def test_what_is_public_is_documented(one: Documented) -> None:
    assert one.text, "it has no docstring"
    first = one.text.strip().split("\n\n")[0]
    assert first.rstrip().endswith((".", ":")), first
    assert ">>> " in one.text or not one.needs_example, "it has no example"


def test_the_ingest_documents_the_arguments_that_its_signature_gathers() -> None:
    described = re.findall(r"^        (\w+): ", seglake.ingest.__doc__ or "", re.MULTILINE)
    assert sorted(IngestArguments.__annotations__.keys() - set(described)) == []


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(
    "one", [one for one in DOCUMENTED if one.text and ">>> " in one.text], ids=lambda one: one.name
)
def test_examples_are_right(one: Documented) -> None:
    example = doctest.DocTestParser().get_doctest(one.text or "", {"seglake": seglake}, one.name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(example, out=said.append)
    assert not runner.summarize(verbose=False).failed, "".join(said)
