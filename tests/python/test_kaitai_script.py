"""How the Kaitai Struct compiler is kept: what was changed, or came otherwise than pinned, is never run."""

from __future__ import annotations

import hashlib
import ssl
import sys
from pathlib import Path

import pytest

import kaitai

JARS = {"compiler-1.jar": b"the compiler", "library-2.jar": b"what it needs"}


@pytest.fixture
def deliveries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, bytes]]:
    """Stands in for the network: what is fetched, one delivery after the other."""
    pins = tmp_path / "requirements" / "pins.sha256"
    pins.parent.mkdir()
    pins.write_text("".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in JARS.items()))
    queue: list[dict[str, bytes]] = []

    def retrieve(folder: Path) -> None:
        (folder / "jars").mkdir()
        for name, data in queue.pop(0).items():
            (folder / "jars" / name).write_bytes(data)

    monkeypatch.setattr(kaitai, "ROOT", tmp_path)
    monkeypatch.setattr(kaitai, "PINS", pins)
    monkeypatch.setattr(kaitai, "_retrieve", retrieve)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return queue


def kept() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in kaitai.jar_folder().iterdir()}


def test_it_is_fetched_once(deliveries: list[dict[str, bytes]], tmp_path: Path) -> None:
    deliveries.append(JARS)
    assert not kaitai.is_fetched()
    kaitai.fetch()
    kaitai.fetch()
    assert kaitai.is_fetched()
    assert kept() == JARS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kaitai", "requirements"]


@pytest.mark.parametrize(
    ("delivered", "named"),
    [
        (
            {**JARS, "library-2.jar": b"something else"},
            f"{hashlib.sha256(b'something else').hexdigest()}  library-2.jar",
        ),
        ({**JARS, "another-3.jar": b""}, f"{hashlib.sha256().hexdigest()}  another-3.jar"),
        ({"compiler-1.jar": JARS["compiler-1.jar"]}, "library-2.jar is missing"),
    ],
    ids=["changed", "one more", "one less"],
)
def test_what_is_not_pinned_is_thrown_away(
    deliveries: list[dict[str, bytes]], tmp_path: Path, delivered: dict[str, bytes], named: str
) -> None:
    deliveries.append(delivered)
    with pytest.raises(kaitai.KaitaiError, match="what was fetched is not what") as caught:
        kaitai.fetch()
    assert [line.strip() for line in str(caught.value).splitlines()[1:-1]] == [named]
    assert [path.name for path in tmp_path.iterdir()] == ["requirements"]


def test_what_was_changed_since_is_not_run_and_fetched_anew(deliveries: list[dict[str, bytes]], tmp_path: Path) -> None:
    deliveries += [JARS, JARS]
    kaitai.fetch()
    (kaitai.jar_folder() / "compiler-1.jar").write_bytes(b"changed")
    with pytest.raises(kaitai.KaitaiError, match="or not as pinned: run `make kaitai`"):
        kaitai.compile_layouts([], "python", tmp_path)
    kaitai.fetch()
    assert kept() == JARS
    assert deliveries == []


def test_it_is_kept_in_a_virtual_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(kaitai.KaitaiError, match="not in a virtual environment"):
        kaitai.fetch()


def test_the_command_says_what_is_wrong(deliveries: list[dict[str, bytes]], capsys: pytest.CaptureFixture[str]) -> None:
    deliveries.append({})
    assert kaitai.main(["fetch"]) == 1
    assert "compiler-1.jar is missing" in capsys.readouterr().err


@pytest.mark.kaitai
@pytest.mark.oracle("requirements/kaitai.sha256")
def test_a_layout_that_does_not_compile_is_an_error(tmp_path: Path) -> None:
    layout = tmp_path / "wrong.ksy"
    layout.write_text("meta:\n  id: wrong\nseq:\n  - id: field\n    type: no_such_type\n")
    with pytest.raises(kaitai.KaitaiError, match="no_such_type"):
        kaitai.compile_layouts([layout], "python", tmp_path)


@pytest.mark.kaitai
def test_java_trusts_what_the_trust_store_names(tmp_path: Path) -> None:
    # Here, so that the tests can be collected, and deselected, where there is no Spark.
    import certifi
    import pyspark
    from py4j.java_gateway import JavaGateway

    certificates = ssl.create_default_context(cafile=certifi.where()).get_ca_certs(binary_form=True)
    path = tmp_path / "trusted.jks"
    path.write_bytes(kaitai._trust_store(certificates))
    (jar,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
    gateway = JavaGateway.launch_gateway(jarpath=str(jar), java_path=str(kaitai._java()), die_on_exit=True)
    try:
        store = gateway.jvm.java.security.KeyStore.getInstance("JKS")
        password = gateway.new_array(gateway.jvm.char, len("changeit"))
        for index, character in enumerate("changeit"):
            password[index] = character
        store.load(gateway.jvm.java.io.FileInputStream(str(path)), password)
        assert store.size() == len(certificates) > 100
        for number, certificate in enumerate(certificates):
            assert store.getCertificate(str(number)).getEncoded() == certificate
    finally:
        gateway.shutdown()
