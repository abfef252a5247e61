#!/bin/sh
# A file is struck by a burst, a flipped bit and a cut, and repaired bit for bit from its parity sidecar.
#
#     examples/repair.sh [FOLDER]
#
# Needs `seglake` on the path. Everything is written to FOLDER, by default a temporary one.
set -eu

folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"

# A segment of 20,000 records, its sidecar, and a copy to compare with in the end.
seq 1 20000 | sed 's/.*/{"order": &, "state": "paid"}/' | seglake log write --type order.paid log 2> /dev/null
seglake seal log/*.active orders.sealed
seglake protect orders.sealed
cp -p orders.sealed as-it-was

# A burst: 50,000 bytes are random ones.
dd if=/dev/urandom of=orders.sealed bs=1000 seek=300 count=50 conv=notrunc 2> /dev/null

# One bit is flipped.
byte=$(dd if=orders.sealed bs=1 skip=700000 count=1 2> /dev/null | od -An -tu1)
printf "\\$(printf %o $((byte ^ 1)))" | dd of=orders.sealed bs=1 seek=700000 conv=notrunc 2> /dev/null

# The last 5,000 bytes are gone: the end of the checksums.
bytes=$(wc -c < orders.sealed)
head -c $((bytes - 5000)) orders.sealed > cut
cat cut > orders.sealed
rm cut

# A disk that loses bytes leaves the time of the last write as it is. Where that is later than the sidecar, and no checksum of the
# file is left to prove a record, `repair` takes the file for one that was changed on purpose, and asks for --force.
touch -r as-it-was orders.sealed

# What is damaged, and that the sidecar has all of it. The exit status is 1.
status=0
seglake verify orders.sealed || status=$?
test $status = 1

# All records can be read before anything is repaired.
echo "$(seglake cat --on-damage repair --json orders.sealed 2> /dev/null | wc -l) records are read"

seglake repair orders.sealed
cmp orders.sealed as-it-was
seglake verify --quiet orders.sealed
echo "orders.sealed is as it was"
