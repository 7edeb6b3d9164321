#!/usr/bin/env bash
# Lints, documentation and the fuzz targets, all warnings as errors, by the oldest compiler that
# Cargo.toml names, which is installed if it can be had: it compiles everything here, tests too, and
# a new release of the compiler brings no new lints by itself.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
oldest=(rustup run "$version" cargo)
if command -v rustup >/dev/null &&
    { "${oldest[@]}" clippy --version ||
        timeout 120 rustup toolchain install "$version" --profile minimal --component clippy; } >/dev/null 2>&1; then
    cargo=("${oldest[@]}")
    # Its own: this compiler's libraries are not those of the tests.
    directory=target/oldest
else
    echo "SKIPPED: Rust $version, the oldest that should do, cannot be installed (rustup refuses)"
    cargo=(cargo)
    directory=${CARGO_TARGET_DIR:-target}
fi

"${cargo[@]}" clippy --locked --workspace --all-targets --target-dir "$directory" -- -D warnings
# Not the program's: its pages would take the place of the library's, which has the same name.
RUSTDOCFLAGS="-D warnings" "${cargo[@]}" doc --locked --workspace --exclude lanecast-cli --no-deps \
    --target-dir "$directory"
# Not linked, so they need no C++ compiler for libFuzzer here. With the settings of this workspace,
# the libraries that were built for it are not built again.
CUSTOM_LIBFUZZER_PATH=./none "${cargo[@]}" check --locked --quiet --manifest-path fuzz/Cargo.toml \
    --bins --target-dir "$directory" --config Cargo.toml
echo "no warnings by $("${cargo[@]}" --version)"
