#!/usr/bin/env bash
# Runs every program crates/<crate>/examples/tsan_<what>.rs under ThreadSanitizer.
#
# They are programs and no tests because the test harness itself is reported as a race. The
# standard library stays as it is, and ThreadSanitizer knows no fences: a program that needs one
# to be free of races belongs to loom.
set -euo pipefail
cd "$(dirname "$0")/.."

target="$(rustc -vV | sed -n 's/^host: //p')"
# The sanitizer's switch is not stable yet; the stable compiler has it all the same.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.suppressions ${TSAN_OPTIONS:-}"

shopt -s nullglob
programs=(crates/*/examples/tsan_*.rs)
if [ ${#programs[@]} -eq 0 ]; then
    echo "there is no crates/<crate>/examples/tsan_<what>.rs to run" >&2
    exit 1
fi
for program in "${programs[@]}"; do
    manifest="${program%/examples/*}/Cargo.toml"
    name="$(basename "$program" .rs)"
    echo "==> $program"
    cargo run --release --target "$target" --target-dir target/tsan \
        --manifest-path "$manifest" --example "$name"
done
