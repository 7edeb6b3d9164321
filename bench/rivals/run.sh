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

if asked_for --help "$@" || asked_for -h "$@"; then
  build -p rivals
  exec "$folder/rivals" "$@"
fi
peers=$(value_of --peers \
  aeron,iceoryx2,zmq,unix,pipe,lmax,disruptor,rtrb,crossbeam,kanal,std,tokio "$@")
rows=$(value_of --rows "$(asked_for --threads "$@" && echo queue || echo rate)" "$@")
threads='^(queue|pop|batch|multicast|diamond|mpmc|pingpong|pingpong-park|pipe)$'
packages=(-p rivals)
java=no
if tr ',' '\n' <<<"$rows" | grep -v '^$' | grep -qvE "$threads"; then
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
build "${packages[@]}"
[[ $java == yes ]] && build_java
exec "$folder/rivals" "$@"
