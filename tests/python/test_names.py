"""Names: one thing has one, on all surfaces, as the table in the documents has it."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path

import click
import pytest

import seglake
from seglake.cli.application import program as main
from seglake.lake.result import IngestArguments

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "names.md"
RUST = (ROOT / "rust" / "core" / "public-api.txt").read_text(encoding="utf-8").splitlines()
MODULES = (seglake, seglake.exceptions, seglake.incremental, seglake.parity, seglake.types)
# Budgets: they shrink, and never grow.
MOST_NAMES = 48
MOST_PARAMETERS = 14


def rows() -> list[list[str]]:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def named(column: int, pattern: str) -> set[str]:
    return {found for row in rows() for found in re.findall(pattern, row[column])}


def functions() -> Iterator[tuple[str, inspect.Signature]]:
    for module in MODULES:
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.isroutine(public):
                yield f"{module.__name__}.{name}", inspect.signature(public)
            elif inspect.isclass(public):
                yield from methods(f"{module.__name__}.{name}", public)


def methods(own: str, public: type) -> Iterator[tuple[str, inspect.Signature]]:
    """Its methods, and its constructor, unless that takes the fields of a result or an error."""
    if not (is_dataclass(public) or issubclass(public, tuple | BaseException)):
        yield own, inspect.signature(public)
    for name, method in vars(public).items():
        if inspect.isroutine(method) and not name.startswith("_"):
            yield f"{own}.{name}", inspect.signature(getattr(public, name))


def parameters(*, keyword_only: bool = False) -> Counter[str]:
    found = Counter(IngestArguments.__annotations__.keys())
    for _, signature in functions():
        given = signature.parameters.values()
        found.update(each.name for each in given if each.kind is each.KEYWORD_ONLY or not keyword_only)
    return found


def command_options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts if isinstance(parameter, click.Option) else ()
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below is not None
            yield from command_options(below)


def test_the_table_names_what_there_is() -> None:
    assert named(1, r"`(\w+)=`") - parameters().keys() == set()
    assert named(2, r"`(--[\w-]+)`") - set(command_options(main)) == set()


def test_what_several_functions_take_is_in_the_table() -> None:
    shared = {name for name, functions in parameters(keyword_only=True).items() if functions > 1}
    assert shared - named(1, r"`(\w+)=`") == set()


def test_the_table_names_what_the_crate_has() -> None:
    items = [re.split(": | = ", line)[0] for line in RUST]
    arguments = {name for line in RUST for name in re.findall(r"(\w+): [&\w]", line.partition("fn")[2])}
    for name in named(4, r"`([\w:]+)`"):
        assert name in arguments or any(item.endswith(f"::{name}") for item in items), name


def test_what_several_options_of_the_crate_set_is_in_the_table() -> None:
    setters = Counter(name for line in RUST for name in re.findall(r"Options::(\w+): fn\(self, .* -> Self$", line))
    shared = {name for name, structs in setters.items() if structs > 1}
    assert len(shared) > 5
    assert shared - named(4, r"Options::(\w+)`") == set()


def test_options_of_the_data_source_are_in_the_table_by_their_names() -> None:
    pytest.importorskip("pyspark")
    from seglake.spark.option_table import options_of

    known = {option.name for purpose in ("reading", "writing", "streaming") for option in options_of(purpose)}
    ours = named(3, r"`(\w+)`") - {"select", "where", "fs", "FAILFAST"}
    assert ours - known == set()


def test_what_python_calls_an_option_names_that_of_the_data_source() -> None:
    pytest.importorskip("pyspark")
    from seglake.spark.option_table import refuse_unknown

    for _, python, _, spark, _ in rows():
        expected = re.findall(r"`([\w.]+)`", spark)
        for name in re.findall(r"`(\w+)=`", python) if expected else []:
            try:
                refuse_unknown([name])
            except ValueError as error:
                assert any(each in str(error).partition("Did you mean ")[2] for each in expected), error


def test_the_help_of_the_data_source_names_its_options() -> None:
    pytest.importorskip("pyspark")
    import seglake.spark
    from seglake.spark.option_table import options_of

    known = {option.name for purpose in ("reading", "writing", "streaming") for option in options_of(purpose)}
    text = seglake.spark.__doc__ or ""
    named = {word for word in re.findall(r"`(\w+)`", text) if word != "_corrupt_record"}
    assert named - known == set()
    assert {"segmentFormat", "keyFile", "mode", "stateLocation"} <= named


def test_the_top_level_is_small() -> None:
    assert len(seglake.__all__) <= MOST_NAMES
    assert sorted(seglake.__all__) == seglake.__all__
    assert all(not name.startswith("_") or name == "__version__" for name in seglake.__all__)
    together = [name for module in MODULES for name in module.__all__]
    twice = {name for name, times in Counter(together).items() if times > 1}
    assert twice == {"DamageError", "FormatError", "SeglakeError", "WrongKeyError", "verify"}


@pytest.mark.parametrize(
    ("name", "signature"), list(functions()), ids=lambda each: each if isinstance(each, str) else ""
)
def test_functions_take_few_arguments(name: str, signature: inspect.Signature) -> None:
    given = signature.parameters.values()
    # Those of the ingest, which both of its functions have.
    shared = [name for each in given if each.kind is each.VAR_KEYWORD for name in IngestArguments.__annotations__]
    assert sum(each.kind is not each.VAR_KEYWORD for each in given) + len(shared) <= MOST_PARAMETERS, name


def test_the_ingest_on_spark_takes_few_arguments() -> None:
    pytest.importorskip("pyspark")
    import seglake.spark

    test_functions_take_few_arguments("seglake.spark.ingest", inspect.signature(seglake.spark.ingest))


def test_classes_are_shown_under_the_name_that_imports_them() -> None:
    for module in MODULES:
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.isclass(public):
                again = getattr(__import__(public.__module__, fromlist=["_"]), public.__name__)
                assert again is public, (public.__module__, name)
                assert public.__module__ in {each.__name__ for each in MODULES}
