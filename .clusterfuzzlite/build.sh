#!/bin/bash -eu
# Builds the fuzz targets into $OUT, each with its first inputs: fuzz/corpus and the golden files, as in scripts/fuzz.py.
# ClusterFuzzLite runs this in the container of the Dockerfile in this folder.
cd "$SRC/seglake/fuzz"
cargo fuzz build --release --debug-assertions
built=$(rustc -vV | sed -n 's/^host: //p')
vectors=../tests/vectors

# One program is all targets. Which one it is, it tells by its name.
for target in $(< targets.txt); do
    cp "target/$built/release/fuzz" "$OUT/$target"
    printf '[libfuzzer]\nmax_len = 4096\ntimeout = 20\n' > "$OUT/$target.options"
    format=${target#*_}
    case $target in
        index_*) inputs=("corpus/${format}_index"/* "$vectors/$format"/*.index) ;;
        *_oplog) inputs=("corpus/$format"/* "$vectors/$format"/*.bin "$vectors"/autobase/*.oplog) ;;
        *) inputs=("corpus/$format"/* "$vectors/$format"/*.bin) ;;
    esac
    zip -q -j "$OUT/${target}_seed_corpus.zip" "${inputs[@]}"
done
