#!/usr/bin/env bash
# Installs, as root, what tests use that cargo does not bring: ip and nft for the tests between
# hosts, and with CI=true Chromium for the pages and tshark for the dissector. Tests without their
# tools say so.
set -euo pipefail

wanted=()
command -v ip >/dev/null || wanted+=(iproute2)
command -v nft >/dev/null || wanted+=(nftables)
if [ "${CI:-}" = true ] && ! command -v chromium >/dev/null; then wanted+=(chromium); fi
if [ "${CI:-}" = true ] && ! command -v tshark >/dev/null; then wanted+=(tshark); fi
[ "${#wanted[@]}" != 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "SKIPPED: ${wanted[*]} cannot be installed here (apt-get install ${wanted[*]}, as root)"
    exit 0
fi
echo "installing ${wanted[*]}"
timeout 120 apt-get update -qq >/dev/null || true
DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null 2>&1 ||
    echo "SKIPPED: apt-get cannot install ${wanted[*]}"
