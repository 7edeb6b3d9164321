#!/usr/bin/env bash
# Lints, documentation and the fuzz targets, all warnings as errors, by the oldest compiler that
# Cargo.toml names, if it can be had. The suite lints and documents what it compiles instead.
set -euo pipefail
cd "$(dirname "$0")/.."

directory=${CARGO_TARGET_DIR:-target}
if oldest=$(bash tests/oldest.sh); then
    export RUSTUP_TOOLCHAIN=$oldest
    # Its own: this compiler's libraries are not those of the tests.
    directory=target/oldest
else
    echo "SKIPPED: the oldest compiler that should do: rustup cannot install it"
fi

cargo clippy --locked --workspace --all-targets --target-dir "$directory" -- -D warnings
# Not the program's: its pages would take the place of the library's, which has the same name.
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --exclude lanecast-cli --no-deps \
    --target-dir "$directory"
# Not linked, so they need no C++ compiler for libFuzzer here. With the settings of this workspace,
# the libraries that were built for it are not built again.
CUSTOM_LIBFUZZER_PATH=./none cargo check --locked --quiet --manifest-path fuzz/Cargo.toml \
    --bins --target-dir "$directory" --config Cargo.toml
echo "no warnings by $(cargo --version)"
