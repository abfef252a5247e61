#!/bin/sh
# Pins the development environment: the newest versions that pyproject.toml allows, for every platform and Python.
set -eu
cd "$(dirname "$0")/.."

"${PYTHON:-python3}" -m pip install --quiet --upgrade uv
compile() {
    "${PYTHON:-python3}" -m uv pip compile --quiet --upgrade --universal --python-version 3.11 \
        --no-annotate --custom-compile-command "make lock" "$@"
}
compile pyproject.toml --extra dev --output-file requirements/dev.txt
compile --group pyproject.toml:java --constraint requirements/dev.txt --output-file requirements/java.txt
compile --group pyproject.toml:audit --constraint requirements/dev.txt --output-file requirements/audit.txt
compile --group pyproject.toml:coverage --constraint requirements/dev.txt --output-file requirements/coverage.txt
compile --group pyproject.toml:damage --constraint requirements/dev.txt --output-file requirements/damage.txt
compile --group pyproject.toml:fuzz --constraint requirements/dev.txt --output-file requirements/fuzz.txt
# Each with the other packages of dev.txt, but for those that an older PySpark takes older.
mkdir -p requirements/spark
others=$(mktemp)
trap 'rm -f "$others"' EXIT
sed -E '/^(pyspark|pyarrow)==/d' requirements/dev.txt > "$others"
for version in 4.0 4.1 4.2 4.3; do
    compile pyproject.toml --extra spark --group "spark-$version" --constraint "$others" \
        --output-file "requirements/spark/$version.txt"
done
compile --group pyproject.toml:bench --constraint requirements/dev.txt --constraint requirements/damage.txt \
    --output-file requirements/bench.txt
