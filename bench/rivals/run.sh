#!/usr/bin/env bash
# Builds lanecast and the peers that are asked for, then measures them side by side.
# All arguments go to the measuring program: run.sh --help lists them.
# PROFILE=dev builds everything unoptimised: to see that it works, not how fast it is.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
product=$(cd "$here/../.." && pwd)
profile=${PROFILE:-release}
folder=$here/target/$([[ $profile == dev ]] && echo debug || echo "$profile")

# True when the argument list has this word, alone or with a value behind a "=".
asked_for() {
  local wanted=$1 word
  shift
  for word in "$@"; do [[ $word == "$wanted" || $word == "$wanted="* ]] && return 0; done
  return 1
}

# The peers in the argument list, between commas; all of them when it has none.
peers_of() {
  local peers=aeron,iceoryx2,zmq,unix,pipe before='' word
  for word in "$@"; do
    [[ $before == --peers ]] && peers=$word
    [[ $word == --peers=* ]] && peers=${word#--peers=}
    before=$word
  done
  echo ",$peers,"
}

build() {
  cargo build --quiet --profile "$profile" --locked --manifest-path "$here/Cargo.toml" "$@"
}

build_zmq() {
  build -p rivals-zmq && return
  echo "ØMQ is not built: its sources need a C++ compiler (apt-get install g++)" >&2
  rm -f "$folder"/rivals-zmq-{pub,sub}
}

build_aeron() {
  if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
    echo "Aeron is not built: apt-get install default-jdk-headless maven" >&2
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

if asked_for --help "$@" || asked_for -h "$@"; then
  build -p rivals
  exec "$folder/rivals" "$@"
fi
if ! asked_for --peers-only "$@" && ! asked_for --lanecast "$@"; then
  cargo build --quiet --profile "$profile" --locked --manifest-path "$product/Cargo.toml" \
    -p lanecast-cli
fi
peers=$(peers_of "$@")
packages=(-p rivals)
[[ $peers == *,iceoryx2,* ]] && packages+=(-p rivals-iceoryx2)
[[ $peers == *,unix,* || $peers == *,pipe,* ]] && packages+=(-p rivals-kernel)
build "${packages[@]}"
[[ $peers == *,zmq,* ]] && build_zmq
[[ $peers == *,aeron,* ]] && build_aeron
exec "$folder/rivals" "$@"
