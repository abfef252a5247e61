"""Fetches the Kaitai Struct compiler, and compiles the layouts of docs/formats with it.

    .venv/bin/python scripts/kaitai.py fetch
    .venv/bin/python scripts/kaitai.py compile --target java --outdir build/kaitai

The compiler is a Java program. Apache Ivy, which PySpark brings along, fetches it and what it needs from its own
default repository; every file is held against requirements/kaitai.sha256 before it is run. All of it stays in the
virtual environment that this script is run with.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import ssl
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from java import JavaNotFoundError, java_home

ROOT: Final = Path(__file__).resolve().parents[1]
LAYOUTS: Final = ROOT / "docs" / "formats"
PINS: Final = ROOT / "requirements" / "kaitai.sha256"
COMPILER: Final = ("io.kaitai", "kaitai-struct-compiler_2.13", "0.11")
"""Organisation, name and version. Another version needs other lines in `PINS`; a refused download prints them."""

_FETCH_TIMEOUT_S: Final = 600
_COMPILE_TIMEOUT_S: Final = 300


class KaitaiError(Exception):
    """The compiler cannot be had or does not run. The message says why and what to do."""


def jar_folder() -> Path:
    """Returns the folder that the compiler's files are kept in, within the virtual environment.

    Raises:
        KaitaiError: this Python is not that of a virtual environment.
    """
    if sys.prefix == sys.base_prefix:
        raise KaitaiError(f"{sys.executable} is not in a virtual environment: run `make kaitai`, or .venv/bin/python")
    return Path(sys.prefix, "kaitai")


def pinned() -> dict[str, str]:
    """Returns the SHA-256, in hex, of each file that the compiler consists of, by the file's name."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def is_fetched() -> bool:
    """Returns whether the compiler is there, each of its files as it has to be."""
    return _digests(jar_folder()) == pinned()


def fetch() -> None:
    """Sees to it that the compiler is there: fetches it where it is not.

    Raises:
        KaitaiError: there is no Java, no Ivy or no network, or what came is not what is pinned.
    """
    if is_fetched():
        return
    folder = jar_folder()
    with tempfile.TemporaryDirectory(prefix=".kaitai-", dir=folder.parent) as temporary:
        jars = Path(temporary, "jars")
        _retrieve(Path(temporary))
        _check(_digests(jars))
        shutil.rmtree(folder, ignore_errors=True)
        jars.rename(folder)


def compile_layouts(layouts: Iterable[Path], target: str, outdir: Path, options: Sequence[str] = ()) -> str:
    """Compiles layouts to parsers and returns what the compiler had to say, such as warnings: nothing, if all is well.

    Args:
        layouts: `.ksy` files.
        target: the language, by the compiler's name for it: `python`, `java`, `rust`, `cpp_stl`, `go`...
        outdir: the folder that the sources are written to.
        options: further options of the compiler.

    Raises:
        KaitaiError: the compiler is not there or was changed, there is no Java, or a layout does not compile.
    """
    folder = jar_folder()
    if not is_fetched():
        raise KaitaiError(f"the Kaitai Struct compiler is not in {folder}, or not as pinned: run `make kaitai`")
    command = [
        *(str(_java()), "-cp", str(folder / "*"), "io.kaitai.struct.JavaMain"),
        *("--target", target, "--outdir", str(outdir)),
        *options,
        *map(str, sorted(layouts)),
    ]
    return _run(command, _COMPILE_TIMEOUT_S, ROOT)


def _digests(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of each file in a folder, by its name; nothing where there is no such folder."""
    if not folder.is_dir():
        return {}
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def _check(found: Mapping[str, str]) -> None:
    """Raises unless the files are those that are pinned."""
    expected = pinned()
    if found == expected:
        return
    wrong = [f"  {digest}  {name}" for name, digest in found.items() if expected.get(name) != digest]
    absent = [f"  {name} is missing" for name in expected.keys() - found.keys()]
    raise KaitaiError(
        f"what was fetched is not what {PINS.relative_to(ROOT)} says, and was thrown away:\n"
        + "\n".join(wrong + sorted(absent))
        + "\nIf the version was changed on purpose, write what is right into that file; otherwise do not go on."
    )


def _retrieve(folder: Path) -> None:
    """Lets Ivy put the compiler and what it needs into `jars` of the folder."""
    options = [f"-Divy.default.ivy.user.dir={folder / 'ivy'}"]  # else it leaves a folder in the user's home
    if os.environ.get(ssl.get_default_verify_paths().openssl_cafile_env):
        store = folder / "trusted.jks"
        store.write_bytes(_trust_store(ssl.create_default_context().get_ca_certs(binary_form=True)))
        options += [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]
    # Relative names: Ivy would take brackets in the folder's name for a part of the pattern.
    ivy = [
        *("-warn", "-cache", "cache", "-confs", "default", "-dependency", *COMPILER),
        *("-retrieve", "jars/[artifact]-[revision].[ext]"),
    ]
    _run([str(_java()), *options, "-cp", str(_ivy()), "org.apache.ivy.Main", *ivy], _FETCH_TIMEOUT_S, folder)


def _trust_store(certificates: Iterable[bytes]) -> bytes:
    """Returns a Java key store that trusts these certificates (X.509, DER).

    Java has its own list of authorities and ignores `SSL_CERT_FILE`, where a company's own may be named.
    """
    entries = list(certificates)
    store = bytearray(struct.pack(">III", 0xFEEDFEED, 2, len(entries)))
    for number, certificate in enumerate(entries):
        alias = str(number).encode("ascii")
        store += struct.pack(f">IH{len(alias)}sQ", 2, len(alias), alias, 0)
        store += struct.pack(">H5sI", 5, b"X.509", len(certificate)) + certificate
    # What Java would compare if it were given the password.
    return bytes(store) + hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + store).digest()


def _ivy() -> Path:
    """Returns the Ivy that PySpark brings along."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise KaitaiError("PySpark, whose Ivy fetches the compiler, is not installed: run `make kaitai`")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise KaitaiError(f"the PySpark in {Path(spec.origin).parent} has no jars/ivy-*.jar: reinstall it")
    return found[-1]


def _java() -> Path:
    """Returns the `java` that Spark is started with."""
    try:
        return java_home() / "bin" / "java"
    except JavaNotFoundError as error:
        raise KaitaiError(str(error)) from error


def _run(command: Sequence[str], timeout_s: float, folder: Path) -> str:
    """Runs a command in a folder and returns what it printed."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KaitaiError(f"{command[0]} does not run: {error}") from error
    if done.returncode != 0:
        raise KaitaiError(f"{' '.join(command)}\nexit status {done.returncode}, it printed:\n{done.stdout.strip()}")
    return done.stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="fetch the compiler, where it is not there yet")
    compiling = commands.add_parser("compile", help="compile all layouts of docs/formats")
    compiling.add_argument("--target", default="python", help="the language (default: %(default)s)")
    compiling.add_argument("--outdir", type=Path, default=ROOT / "build" / "kaitai", help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        if options.command == "fetch":
            fetch()
        else:
            said = compile_layouts(LAYOUTS.glob("*.ksy"), options.target, options.outdir.resolve())
            print(f"{said}\n" if said else "", f"compiled to {options.outdir}", sep="")
    except KaitaiError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
