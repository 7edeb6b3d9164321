#!/usr/bin/env bash
# Builds lanecast and the peers that the rows ask for, then measures them side by side.
# All arguments go to the measuring program: run.sh --help lists them.
# PROFILE=dev builds everything unoptimised: to see that it works, not how fast it is.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
product=$(cd "$here/../.." && pwd)
profile=${PROFILE:-release}
own_target=${CARGO_TARGET_DIR:-$product/target}
if [[ $profile == dev ]]; then
  # The tests' builds have most libraries already, if the settings are the same too. lanecast's crates
  # are of another workspace there: they are built again, and optimising takes longer than running.
  cargo_options=(--target-dir "$own_target" --config "$product/Cargo.toml")
  while read -r crate; do
    cargo_options+=(--config "profile.dev.package.$crate.opt-level=0")
  done < <(sed -n 's/^\[profile.dev.package.\(lanecast-.*\)\]/\1/p' "$product/Cargo.toml")
  folder=$own_target/debug
else
  cargo_options=(--target-dir "$here/target")
  folder=$here/target/$profile
fi
# The first builds take minutes: on a terminal cargo shows how far they are.
shown=()
[[ -t 2 ]] || shown=(--quiet)
cargo_options+=("${shown[@]}" --profile "$profile" --locked --manifest-path "$here/Cargo.toml")

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
  cargo build "${cargo_options[@]}" "$@"
}

# The product's program.
build_lanecast() {
  cargo build "${shown[@]}" --profile "$profile" --locked --manifest-path "$product/Cargo.toml" \
    -p lanecast-cli
}

# Classes of the Java sides, with their jars beside them.
build_java() {
  if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
    echo "$1 are not built: apt-get install default-jdk-headless maven" >&2
    return
  fi
  local folder=$here/java built=$here/java/target/built
  if [[ -f $built && -z $(find "$folder/pom.xml" "$folder/src" -newer "$built") ]]; then
    return
  fi
  if mvn -q -B -f "$folder/pom.xml" package >&2; then
    touch "$built"
  else
    echo "$1 are left out: Maven failed (the first build needs Maven Central)" >&2
    rm -rf "$folder/target"
  fi
}

# Groups of lanecast, JGroups and Corosync: a program of its own, with options of its own.
if asked_for --groups "$@"; then
  peers=$(value_of --peers lanecast,jgroups,corosync "$@")
  asked_for --smoke "$@" && peers=,lanecast,
  own=$own_target/$(basename "$folder")/lanecast
  if [[ $peers == *,lanecast,* ]] && ! asked_for --lanecast "$@"; then
    build_lanecast
    set -- --lanecast "$own" "$@"
  fi
  build -p rivals-groups
  [[ $peers == *,jgroups,* ]] && build_java JGroups
  if [[ $peers == *,corosync,* ]]; then
    rm -f "$folder/rivals-corosync"
    cc -O2 -o "$folder/rivals-corosync" "$here/groups/corosync/member.c" -lcpg ||
      echo "Corosync is left out: apt-get install gcc corosync libcpg-dev" >&2
  fi
  exec "$folder/rivals-groups" --java "$here/java/target" \
    --corosync "$here/groups/corosync/host.sh" "$@"
fi

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
  [[ $peers == *,uring,* ]] && own+=,uring
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

# CMake from 3.30 and libclang, which Aeron's C sources need and PyPI has. Changes PATH.
prepare_aeron() {
  local tools=$here/target/tools
  if [[ ! -f $tools/ready ]]; then
    if ! python3 -m venv "$tools" >&2 ||
      ! "$tools/bin/pip" install -q cmake==4.4.4 libclang==18.1.1 >&2; then
      echo "Aeron is not built: apt-get install python3-venv, and let pip reach PyPI" >&2
      return 1
    fi
    touch "$tools/ready"
  fi
  export PATH=$tools/bin:$PATH
  LIBCLANG_PATH=$(find "$tools/lib" -name libclang.so -printf '%h' -quit)
  BINDGEN_EXTRA_CLANG_ARGS=-I$(cc -print-file-name=include)
  export LIBCLANG_PATH BINDGEN_EXTRA_CLANG_ARGS
}

# Aeron's C driver and client.
build_aeron() {
  prepare_aeron || return 0
  build -p rivals-aeron && return
  echo "Aeron is left out: its sources need apt-get install g++ libbsd-dev uuid-dev" >&2
  rm -f "$folder/rivals-aeron"
}

# The same hello in lanecast and each peer that can be built: compared with the guide's page, and run
# in a network namespace, because Zenoh's ends find each other by multicast.
say_hello() {
  local features=lanecast word skip=()
  for word in iceoryx2 zmq nats zenoh aeron; do
    if [[ $word == aeron ]] && ! prepare_aeron; then continue; fi
    if build -p rivals-hello --features "$features,$word"; then
      features+=,$word
    else
      echo "$word is left out: README.md says what it needs" >&2
    fi
  done
  build_nats
  export PATH=$folder:$PATH
  local test=(cargo test "${cargo_options[@]}" -p rivals-hello --features "$features" --)
  command -v nats-server >/dev/null || skip+=(--skip nats_says_hello)
  local network='ip link set lo up && ip link add hello type veth peer name other &&
    ip addr add 10.77.0.1/24 dev hello && ip link set hello up && ip link set other up'
  if unshare --map-root-user --net bash -c "$network" 2>/dev/null; then
    unshare --map-root-user --net bash -c "$network && exec \"\$@\"" hello "${test[@]}" "${skip[@]}"
  else
    echo "Zenoh is not run: that needs root and apt-get install iproute2" >&2
    "${test[@]}" "${skip[@]}" --skip zenoh_says_hello
  fi
}

if asked_for --test "$@"; then
  exec cargo test "${cargo_options[@]}" -p rivals -p rivals-groups -p rivals-hello -p rivals-stores
fi
if asked_for --hello "$@"; then
  say_hello
  exit
fi
if asked_for --help "$@" || asked_for -h "$@"; then
  build -p rivals
  exec "$folder/rivals" "$@"
fi
if asked_for --servers "$@"; then
  build -p rivals-servers
  build_nats
  build_lanecast
  own=$own_target/$(basename "$folder")/lanecast
  exec "$folder/rivals-servers" --lanecast "$own" "$@"
fi
if asked_for --stores "$@"; then
  build -p rivals-stores
  peers=$(value_of --peers lanecast,nats "$@")
  [[ $peers == *,nats,* ]] && build_nats
  if ! asked_for --lanecast "$@"; then
    build_lanecast
    set -- --lanecast "$own_target/$(basename "$folder")/lanecast" "$@"
  fi
  exec "$folder/rivals-stores" "$@"
fi
all=aeron,iceoryx2,zmq,unix,pipe,lmax,disruptor,rtrb,crossbeam,kanal,std,tokio,udp,tcp,nats,zenoh,xdp,uring
peers=$(value_of --peers "$all" "$@")
default=rate
asked_for --threads "$@" && default=queue
asked_for --network "$@" && default=oneway
rows=$(value_of --rows "$default" "$@")
threads='^(queue|pop|batch|multicast|diamond|mpmc|pingpong|pingpong-park|pipe)$'
hosts='^([a-z]+-pingpong|idle|oneway|xdp-oneway|fanout3|loss-oneway)$'
packages=(-p rivals)
java=no
if tr ',' '\n' <<<"$rows" | grep -v '^$' | grep -qvE "$threads|$hosts"; then
  if ! asked_for --peers-only "$@" && ! asked_for --lanecast "$@"; then
    build_lanecast
    set -- --lanecast "$own_target/$(basename "$folder")/lanecast" "$@"
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
[[ $java == yes ]] && build_java "Aeron and LMAX"
exec "$folder/rivals" "$@"
