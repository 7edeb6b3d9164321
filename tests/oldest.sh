#!/usr/bin/env bash
# Compiles the workspace with the oldest compiler that Cargo.toml names, installed if it can be had.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! command -v rustup >/dev/null ||
    ! { rustup run "$version" rustc --version ||
        timeout 120 rustup toolchain install "$version" --profile minimal; } >/dev/null 2>&1; then
    echo "SKIPPED: Rust $version, the oldest that should do, cannot be installed (rustup refuses)"
    exit 0
fi
rustup run "$version" cargo check --quiet --locked --workspace --target-dir target/oldest
echo "Rust $version compiles the workspace"
