#!/usr/bin/env bash
# Runs every fuzz target of fuzz/ for SECONDS_EACH seconds (60), from the inputs in fuzz/kept on.
#
# Needs no nightly toolchain: the stable compiler has the switches that cargo-fuzz wants.
# cargo-fuzz itself is built into target/tools the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -f fuzz/Cargo.toml ]; then
    echo "fuzz/Cargo.toml is missing: there is nothing to fuzz" >&2
    exit 1
fi
if ! command -v c++ >/dev/null; then
    echo "a C++ compiler is missing, libFuzzer is written in it: apt-get install g++" >&2
    exit 1
fi
tools="$PWD/target/tools"
if [ ! -x "$tools/bin/cargo-fuzz" ]; then
    cargo install --root "$tools" --locked --version 0.13.2 cargo-fuzz
fi
export RUSTC_BOOTSTRAP=1
target="$(rustc -vV | sed -n 's/^host: //p')"
for name in $("$tools/bin/cargo-fuzz" list); do
    echo "==> $name"
    mkdir -p "fuzz/corpus/$name"
    "$tools/bin/cargo-fuzz" run --target "$target" "$name" \
        "fuzz/corpus/$name" "fuzz/kept/$name" -- \
        -max_total_time="${SECONDS_EACH:-60}" -rss_limit_mb=4096
done
