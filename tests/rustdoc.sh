#!/bin/sh
# Tests the examples in a crate's documentation as cargo asks, then builds the pages out of the same
# libraries, for the warnings: `cargo doc` would check all of them once more.
set -e
rustdoc "$@"
for argument in "$@"; do
    shift
    case $argument in
    --test) ;;
    --test-*) skips=1 ;;
    *) if [ -n "$skips" ]; then skips=; else set -- "$@" "$argument"; fi ;;
    esac
done
exec rustdoc "$@" -D warnings --out-dir target/suite/pages
