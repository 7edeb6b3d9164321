#!/usr/bin/env bash
# Builds lanecast and the peers that the rows ask for, then measures them side by side.
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

# The value of an option in the argument list; a default when it is not there.
value_of() {
  local option=$1 value=$2 before='' word
  shift 2
  for word in "$@"; do
    [[ $before == "$option" ]] && value=$word
    [[ $word == "$option="* ]] && value=${word#"$option="}
    before=$word
  done
  echo ",$value,"
}

build() {
  cargo build --quiet --profile "$profile" --locked --manifest-path "$here/Cargo.toml" "$@"
}

# Engines that match messages against filters: a program of its own, with options of its own.
if asked_for --filters "$@"; then
  options=()
  for word in "$@"; do [[ $word == --filters ]] || options+=("$word"); done
  build -p rivals-filters
  exec "$folder/rivals-filters" "${options[@]}"
fi

build_zmq() {
  build -p rivals-zmq && return
  echo "ØMQ is not built: its sources need a C++ compiler (apt-get install g++)" >&2
  rm -f "$folder"/rivals-zmq-{pub,sub}
}

build_java() {
  if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
    echo "Aeron and LMAX are not built: apt-get install default-jdk-headless maven" >&2
    return
  fi
  local folder=$here/java built=$here/java/target/built
  if [[ -f $built && -z $(find "$folder/pom.xml" "$folder/src" -newer "$built") ]]; then
    return
  fi
  if mvn -q -B -f "$folder/pom.xml" package >&2; then
    touch "$built"
  else
    echo "Aeron and LMAX are left out: Maven failed (the first build needs Maven Central)" >&2
    rm -rf "$folder/target"
  fi
}

# The queues between threads, with the libraries that are asked for.
build_queues() {
  local features=() word
  asked_for --peers-only "$@" || features+=(lanecast)
  for word in disruptor rtrb crossbeam kanal tokio; do
    [[ $peers == *,$word,* ]] && features+=("$word")
  done
  local list
  list=$(IFS=,; echo "${features[*]}")
  if [[ $peers == *,zmq,* ]]; then
    build -p rivals-queues --features "$list,zmq" && return
    echo "ØMQ is left out: its sources need a C++ compiler (apt-get install g++)" >&2
  fi
  build -p rivals-queues --features "$list"
}

# Sockets between hosts, lanecast's transports, and the small peers.
build_network() {
  local own=lanecast
  asked_for --peers-only "$@" && own=
  if [[ $peers == *,zmq,* ]]; then
    build -p rivals-network --features "$own,zmq" && return
    echo "ØMQ is left out: its sources need a C++ compiler (apt-get install g++)" >&2
  fi
  build -p rivals-network --features "$own"
}

# The server of NATS, from the Go module proxy.
build_nats() {
  local version=v2.15.2
  [[ $("$folder/nats-server" --version 2>/dev/null) == *"$version" ]] && return
  if ! command -v go >/dev/null; then
    echo "NATS is not built: apt-get install golang, or a newer Go from go.dev" >&2
    return
  fi
  mkdir -p "$folder"
  GOBIN=$folder go install "github.com/nats-io/nats-server/v2@$version" >&2 ||
    echo "NATS is left out: its server needs the Go module proxy and a Go that it likes" >&2
}

# Aeron's C driver and client. They need CMake from 3.30 and libclang, which PyPI has.
build_aeron() {
  local tools=$here/target/tools
  if [[ ! -f $tools/ready ]]; then
    if ! python3 -m venv "$tools" >&2 ||
      ! "$tools/bin/pip" install -q cmake==4.4.4 libclang==18.1.1 >&2; then
      echo "Aeron is not built: apt-get install python3-venv, and let pip reach PyPI" >&2
      return
    fi
    touch "$tools/ready"
  fi
  local libclang
  libclang=$(find "$tools/lib" -name libclang.so -printf '%h' -quit)
  PATH=$tools/bin:$PATH LIBCLANG_PATH=$libclang \
    BINDGEN_EXTRA_CLANG_ARGS=-I$(cc -print-file-name=include) build -p rivals-aeron && return
  echo "Aeron is left out: its sources need apt-get install g++ libbsd-dev uuid-dev" >&2
  rm -f "$folder/rivals-aeron"
}

if asked_for --help "$@" || asked_for -h "$@"; then
  build -p rivals
  exec "$folder/rivals" "$@"
fi
if asked_for --servers "$@"; then
  build -p rivals-servers
  build_nats
  cargo build --quiet --profile "$profile" --locked --manifest-path "$product/Cargo.toml" \
    -p lanecast-cli
  own=${CARGO_TARGET_DIR:-$product/target}/$(basename "$folder")/lanecast
  exec "$folder/rivals-servers" --lanecast "$own" "$@"
fi
all=aeron,iceoryx2,zmq,unix,pipe,lmax,disruptor,rtrb,crossbeam,kanal,std,tokio,udp,tcp,nats,zenoh
peers=$(value_of --peers "$all" "$@")
default=rate
asked_for --threads "$@" && default=queue
asked_for --network "$@" && default=oneway
rows=$(value_of --rows "$default" "$@")
threads='^(queue|pop|batch|multicast|diamond|mpmc|pingpong|pingpong-park|pipe)$'
hosts='^([a-z]+-pingpong|idle|oneway|fanout3|loss-oneway)$'
packages=(-p rivals)
java=no
if tr ',' '\n' <<<"$rows" | grep -v '^$' | grep -qvE "$threads|$hosts"; then
  if ! asked_for --peers-only "$@" && ! asked_for --lanecast "$@"; then
    cargo build --quiet --profile "$profile" --locked --manifest-path "$product/Cargo.toml" \
      -p lanecast-cli
  fi
  [[ $peers == *,iceoryx2,* ]] && packages+=(-p rivals-iceoryx2)
  [[ $peers == *,unix,* || $peers == *,pipe,* ]] && packages+=(-p rivals-kernel)
  [[ $peers == *,zmq,* ]] && build_zmq
  [[ $peers == *,aeron,* ]] && java=yes
fi
if tr ',' '\n' <<<"$rows" | grep -qE "$threads"; then
  build_queues "$@"
  [[ $peers == *,lmax,* ]] && java=yes
fi
if tr ',' '\n' <<<"$rows" | grep -qE "$hosts"; then
  build_network "$@"
  [[ $peers == *,aeron,* ]] && build_aeron
  [[ $peers == *,nats,* ]] && build_nats
  [[ $peers == *,zenoh,* ]] && build -p rivals-zenoh
fi
build "${packages[@]}"
[[ $java == yes ]] && build_java
exec "$folder/rivals" "$@"
