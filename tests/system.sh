#!/usr/bin/env bash
# The tests between hosts: in network namespaces, with loss and with cables that are cut.
#
# They need root, ip and nft. As root it installs what is missing and says so; without root it says
# what is left out and passes. With CI=true, root and no namespaces it fails.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
    echo "SKIPPED: the tests between hosts (crate lanecast-system-tests) need root"
    exit 0
fi

missing=()
command -v ip >/dev/null || missing+=(iproute2)
command -v nft >/dev/null || missing+=(nftables)
if [ "${#missing[@]}" != 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]}, which the tests between hosts need"
    timeout 120 apt-get update -qq >/dev/null || true
    timeout 300 apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# What the tests start on their hosts.
cargo build -p lanecast-cli
cargo test -p lanecast-system-tests "$@"
