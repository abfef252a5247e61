"""`seglake ingest` up to where Spark would start: arguments, and what is missing."""

import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_process import seglake

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ingest runs on Linux and macOS")
needs_pyspark = pytest.mark.skipif(find_spec("pyspark") is None, reason="without pyspark only that is told")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected SRC... DST, found one argument: "),
        (["lake", "--conf", "spark.driver.memory"], "expected KEY=VALUE"),
        (["lake", "--conf", "=4g"], "expected KEY=VALUE"),
        (["lake", "--target-file-size", "0"], "at least one byte"),
        (["lake", "--target-file-size", "many"], "expected a number of bytes"),
        (["lake", "--key-file", "absent"], "absent"),
        (["lake", "--engine", "hadoop"], "'auto', 'local', 'spark'"),
        (["lake", "--engine", "local", "--master", "local[2]"], "--master and --conf are for Spark"),
        (["lake", "--engine", "local", "--conf", "spark.app.name=x"], "--master and --conf are for Spark"),
        (["lake", "--engine", "spark", "--threads", "2"], "--threads is for --engine local"),
        (["lake", "--master", "local[2]", "--threads", "2"], "--threads is for --engine local"),
        (["lake", "--threads", "0"], "--threads"),
        (["lake", "--engine", "spark", "--follow", "--threads", "2"], "--threads is for --engine local"),
        (["lake", "--follow", "--final"], "leave one out"),
        pytest.param(["lake", "--format", "parchment"], "parchment", marks=needs_pyspark),
        pytest.param([""], "expected a folder: a path", marks=needs_pyspark),
        pytest.param(["missing.active", "lake"], "missing.active", marks=needs_pyspark),
    ],
)
def test_what_is_wrong_with_an_argument_is_said_before_spark_starts(
    arguments: list[str], said: str, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # With a Java that fails, whatever is told instead of that was found before Spark started.
    done = seglake(
        "ingest", vectors / "active" / "typical.bin", *arguments, env={"JAVA_HOME": "/nonexistent", "PATH": ""}
    )
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "Java" not in done.err
    assert "Traceback" not in done.err


def test_no_sources_is_a_usage_error() -> None:
    done = seglake("ingest", "lake")
    assert done.status == 2
    assert "expected SRC... DST, found one argument: lake" in done.err
    done = seglake("ingest", "--compact", "logs", "lake")
    assert (done.status, done.err.splitlines()[0]) == (2, "seglake: --compact takes no SRC, only DST")


@needs_pyspark
def test_a_java_that_does_not_start_is_told_with_what_is_needed(vectors: Path, tmp_path: Path) -> None:
    arguments = (vectors / "active" / "typical.bin", tmp_path / "lake", "--engine", "spark")
    done = seglake("ingest", *arguments, env={"JAVA_HOME": "/nonexistent"})
    assert (done.status, done.out) == (2, "")
    [said] = [line for line in done.err.splitlines() if line.startswith("seglake: ")]
    assert "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number." in said
    assert "Spark 4 needs Java 17 or newer" in said
    assert said.endswith("JAVA_HOME names its folder: now it is /nonexistent")
    assert "Traceback" not in done.err


@pytest.mark.parametrize(("engine", "install"), [("spark", "'seglake[spark]'"), ("local", "'seglake[lake]'")])
def test_missing_packages_are_told_with_what_to_install(
    vectors: Path, tmp_path: Path, engine: str, install: str
) -> None:
    """In an environment that has what the command line needs, and nothing of Spark's."""
    import click

    import seglake as library

    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    [site] = bare.glob("lib/python*/site-packages")
    for package in (click, library):
        assert package.__file__ is not None
        folder = Path(package.__file__).parent
        (site / folder.name).symlink_to(folder, target_is_directory=True)
    done = seglake(
        "ingest",
        vectors / "active" / "typical.bin",
        tmp_path / "lake",
        "--engine",
        engine,
        python=bare / "bin" / "python",
    )
    assert (done.status, done.out) == (2, "")
    assert f"pip install {install}" in done.err
    assert "Traceback" not in done.err
