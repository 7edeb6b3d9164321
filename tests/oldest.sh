#!/usr/bin/env bash
# Installs the oldest compiler that Cargo.toml names, with clippy, and prints its toolchain's name;
# fails if it cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
command -v rustup >/dev/null
{ rustup run "$version" cargo clippy --version ||
    timeout 120 rustup toolchain install "$version" --profile minimal --component clippy; } >/dev/null 2>&1
echo "$version"
