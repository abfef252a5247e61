#!/bin/sh
# Runs under AddressSanitizer the tests that reach `unsafe`: those of the kernels and of the crate's dependencies, and, under
# Python, the map of a file and what Python hands over as Arrow. For Linux, with the stable toolchain, whose sanitizers are there but
# have to be allowed. PYTHON names the interpreter of an environment with the test's requirements.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
target=${CARGO_TARGET_DIR:-target}/sanitize
tree=build/sanitize
host=$(rustc -vV | sed -n 's/^host: //p')
case $host in
    *-linux-gnu) ;;
    *) echo "AddressSanitizer is set up for Linux with glibc alone, and this is $host" >&2; exit 1 ;;
esac
# So that a report names lines.
export CARGO_PROFILE_TEST_DEBUG=line-tables-only
# The extension is loaded by a Python that knows of no sanitizer: so its runtime has to be there before everything else.
runtime=$(cc -print-file-name=libasan.so)
if [ ! -e "$runtime" ]; then
    echo "cc has no libasan.so: install GCC's, which Debian has in libgcc-*-dev" >&2
    exit 1
fi

cargo_sanitized() {
    subcommand=$1
    shift
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="$target" \
        "${CARGO:-cargo}" "$subcommand" --locked --target "$host" "$@"
}

cargo_sanitized test --test integration -- \
    golden:: corpus:: checksum:: columns::
cargo_sanitized test --package highway-batch --test kernels
cargo_sanitized test --package parity-code --test kernels

# With the allocator that the sanitizer watches.
cargo_sanitized build --package seglake-python --no-default-features
rm -rf "$tree"
mkdir -p "$tree"
cp -R python/seglake python/pyspark_seglake "$tree"
rm -f "$tree"/seglake/_native*
cp "$target/$host/debug/lib_native.so" "$tree/seglake/_native.abi3.so"
# Python keeps much to its end, so leaks are not looked for; with its own allocator it would hide what is freed too early.
LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PYTHONPATH=$tree "$python" -m pytest \
    -p no:cacheprovider -m "not slow and not spark and not kaitai" \
    tests/python/test_reader.py tests/python/test_writer.py tests/python/test_formats.py \
    tests/python/test_vectors.py
