#!/bin/sh
# Measures which lines of Rust and Python the tests reach, and writes reports into build/coverage/report. Rust lines are reached by the
# Rust tests and, through the extension, by the Python tests. Processes that tests start count, too. PYTHON names the interpreter of an
# environment with requirements/coverage.txt. Needs rustup's component llvm-tools, or LLVM_COV and LLVM_PROFDATA, which name the
# programs of the compiler's LLVM version.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
cargo=${CARGO:-cargo}
build=$PWD/build/coverage
tree=$build/tree
PATH=$(dirname "$python"):$PATH
export PATH
export CARGO_TARGET_DIR="$PWD/target/coverage"
rm -rf "$build"
mkdir -p "$tree" "$build/report"

# Without this cargo-llvm-cov would install a missing component by itself.
export CARGO_LLVM_COV_SETUP=no
environment=$("$cargo" llvm-cov show-env --sh --no-cfg-coverage)
eval "$environment"
"$cargo" llvm-cov clean --workspace
# A few files for each object, instead of one for each of the thousands of processes that tests start.
export LLVM_PROFILE_FILE="${LLVM_PROFILE_FILE%-%p-*}-%8m.profraw"

"$cargo" test --locked --workspace --all-features
"$cargo" build --locked --package seglake-python
cp -R python/seglake python/pyspark_seglake "$tree"
rm -f "$tree"/seglake/_native*
cp "$CARGO_TARGET_DIR"/debug/lib_native.so "$tree/seglake/_native.abi3.so"

export COVERAGE_FILE="$build/data/coverage"
mkdir -p "$build/data"
cat > "$build/settings" <<END
[run]
branch = true
parallel = true
patch = subprocess
source = $tree
# These warnings would be on the standard error of processes, which tests compare.
disable_warnings = no-data-collected, module-not-measured, already-imported
[paths]
source =
    python
    $tree
END
export COVERAGE_RCFILE="$build/settings"
PYTHONPATH=$tree "$python" -m coverage run -m pytest -p no:cacheprovider -m "not slow and not spark and not kaitai" tests/python
"$python" -m coverage combine --quiet
"$python" -m coverage xml --quiet -o "$build/report/python.xml"
"$python" -m coverage html --quiet --directory "$build/report/python"
"$python" -m coverage report | tail -n 1

"$cargo" llvm-cov report --lcov --output-path "$build/report/rust.lcov"
"$cargo" llvm-cov report --html --output-dir "$build/report/rust"
"$cargo" llvm-cov report --summary-only | tail -n 1
