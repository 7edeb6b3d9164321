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

bash tests/prepare.sh
# What the tests start on their hosts.
cargo build --locked -p lanecast-cli
cargo test --locked -p lanecast-system-tests "$@"
