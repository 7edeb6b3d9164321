#!/usr/bin/env bash
# Tests the browser's client: by itself in Node.js, then the example page in headless Chromium, with
# a real server behind it.
#
# BUILT names the folder of a program that is built already. Whatever of Node.js, Chromium and Python (which hands out the files) is missing, it says so.
set -euo pipefail
cd "$(dirname "$0")/.."

room=$(mktemp -d)
started=()
finish() {
    local pid try
    for pid in "${started[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    # The browser's other processes end a little later, and write until then.
    for try in {1..50}; do
        rm -rf "$room" 2>/dev/null && break
        sleep 0.1
    done
}
trap finish EXIT

if node --help 2>/dev/null | grep -q -- '--test '; then
    timeout 120 node --test clients/browser/tests/*.test.js >"$room/node" 2>&1 ||
        { cat "$room/node" >&2; exit 1; }
    echo "the browser's client by itself: $(grep -cE '^ok|^✔' "$room/node") tests passed"
else
    echo "SKIPPED: the browser's client was not tested by itself (install Node.js 20 or newer)"
fi

chromium=
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null && { chromium=$name; break; }
done
if [ -z "$chromium" ] || ! command -v python3 >/dev/null; then
    echo "SKIPPED: the example page was not shown to a browser (apt-get install chromium python3)"
    exit 0
fi

[ -n "${BUILT:-}" ] || cargo build --quiet --locked -p lanecast-cli
program=${BUILT:-${CARGO_TARGET_DIR:-target}/debug}/lanecast

# line FILE PATTERN SECONDS: the first line with the pattern that comes in time.
line() {
    local until=$((SECONDS + $3))
    while ! grep -m 1 -E "$2" "$1" 2>/dev/null; do
        if [ "$SECONDS" -ge "$until" ]; then
            echo "FAILED: no line $2 within $3 s:" >&2
            cat "$1" >&2
            exit 1
        fi
        sleep 0.1
    done
}

# serve TCP WEBSOCKET: starts a server at these addresses.
serve() {
    "$program" serve --listen "$1" --websocket "$2" --keep orders:json:/id >"$room/server" 2>&1 &
    server=$!
    started+=("$server")
    tcp=$(line "$room/server" 'listening on' 20 | grep -oE '127\.0\.0\.1:[0-9]+')
    websocket=$(line "$room/server" 'ws://' 20 | grep -oE '127\.0\.0\.1:[0-9]+')
}

serve 127.0.0.1:0 127.0.0.1:0
python3 -u -m http.server 0 --bind 127.0.0.1 --directory clients/browser >"$room/files" 2>&1 &
started+=($!)
port=$(line "$room/files" 'port [0-9]+' 20 | sed 's/.*port \([0-9]*\).*/\1/')

"$chromium" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --disable-background-networking --disable-component-update --no-first-run \
    --remote-debugging-port=0 --user-data-dir="$room/profile" --enable-logging=stderr \
    "http://127.0.0.1:$port/tests/page.html?server=ws://$websocket" >"$room/chromium" 2>&1 &
started+=($!)
asked=$(line "$room/files" 'GET /(found|ask)/' 90)
if [[ $asked == *"GET /ask/restart"* ]]; then
    kill "$server"
    wait "$server" || true
    serve "$tcp" "$websocket"
fi
found=$(line "$room/files" 'GET /found/' 90 | sed 's/.*GET \/found\/\([^ ]*\).*/\1/')
if [ "$found" != everything ]; then
    echo "FAILED: the example page: $(printf '%b' "${found//%/\\x}")" >&2
    grep CONSOLE "$room/chromium" >&2 || true
    exit 1
fi
echo "the example page showed what was published, changed and removed"
