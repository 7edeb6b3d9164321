#!/usr/bin/env bash
# Builds lanecast and its peers, then measures them side by side.
# All arguments go to the measuring program: run.sh --help lists them.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
product=$(cd "$here/../.." && pwd)

# True when the argument list has this word.
asked_for() {
  local wanted=$1 word
  shift
  for word in "$@"; do [[ $word == "$wanted" ]] && return 0; done
  return 1
}

build_aeron() {
  if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
    echo "Aeron is not built: it needs a JDK (17 or later) and Maven" >&2
    return
  fi
  local folder=$here/aeron built=$here/aeron/target/built
  if [[ -f $built && -z $(find "$folder/pom.xml" "$folder/src" -newer "$built") ]]; then
    return
  fi
  if mvn -q -B -f "$folder/pom.xml" package >&2; then
    touch "$built"
  else
    echo "Aeron is left out: Maven failed (the first build needs Maven Central)" >&2
    rm -rf "$folder/target"
  fi
}

if ! asked_for --peers-only "$@" && ! asked_for --help "$@"; then
  cargo build --quiet --release --locked --manifest-path "$product/Cargo.toml" -p lanecast-cli
fi
cargo build --quiet --release --locked --manifest-path "$here/Cargo.toml"
asked_for --help "$@" || build_aeron
exec "$here/target/release/rivals" "$@"
