#!/bin/sh
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
