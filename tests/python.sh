#!/usr/bin/env bash
# Tests the Python client against a real server, as it lies in the checkout: this needs Python 3.9
# and nothing from the network. With --install it also installs the client into an environment of
# its own below the target directory, tests that, and checks the types if mypy can be installed.
#
# Without Python it says so and passes. BUILT names the folder of a program that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."

python=python3
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "SKIPPED: the Python client was not tested (install Python 3.9 or newer)"
    exit 0
fi

target=${CARGO_TARGET_DIR:-target}
[ -n "${BUILT:-}" ] || cargo build --quiet --locked -p lanecast-cli
CONTENT_SERVER=$(cd "${BUILT:-$target/debug}" && pwd)/lanecast
export CONTENT_SERVER PYTHONDONTWRITEBYTECODE=1

tested() {
    timeout 600 "$python" -W error -m unittest discover -s clients/python/tests
}

if [ "${1:-}" != --install ]; then
    PYTHONPATH=clients/python/src tested
    exit
fi

room=$target/python
rm -rf "$room"
if ! "$python" -m venv "$room"; then
    echo "FAILED: no environment could be made (apt-get install python3-venv)" >&2
    exit 1
fi
python=$(cd "$room" && pwd)/bin/python
# From a copy: building leaves files behind.
cp -r clients/python "$room/source"
"$python" -m pip install --quiet --disable-pip-version-check "$room/source"
tested
if "$python" -m pip install --quiet --disable-pip-version-check mypy==2.4.1 ||
    "$python" -m pip install --quiet --disable-pip-version-check mypy; then
    (cd clients/python && MYPY_CACHE_DIR=/dev/null "$python" -m mypy)
else
    echo "SKIPPED: types were not checked (mypy cannot be installed)"
fi
