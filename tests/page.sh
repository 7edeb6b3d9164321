#!/usr/bin/env bash
# Shows the pages of recorded runs to headless Chromium and asks what became of them: whether
# anything was asked of the network, fits a phone, follows light and dark, and leads to its lines.
#
# Without Chromium it says so and passes. BUILT names the folder of a program that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."

browser() {
    local name
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" && return
    done
    return 1
}

if ! chromium=$(browser); then
    echo "SKIPPED: the report's pages were not shown to a browser (apt-get install chromium)"
    exit 0
fi

out=target/page
rm -rf "$out"
mkdir -p "$out"
recorded=crates/report/tests/recorded

# shown SCHEME FILE: what the harness in FILE found, in light (1) or dark (0).
shown() {
    timeout 60 "$chromium" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --disable-background-networking --disable-component-update --no-first-run \
        --user-data-dir="$PWD/$out/profile" --blink-settings=preferredColorScheme="$1" \
        --enable-logging=stderr --virtual-time-budget=20000 --dump-dom "file://$PWD/$2" \
        2>"$out/log" | sed -n 's/.*<pre id="found">\(.*\)<\/pre>.*/\1/p'
}

# The page $1 in two frames, as wide as a phone and as a desk's screen, and a script that looks at
# both: a window of the browser cannot be made as narrow as a phone.
harness() {
    echo '<!DOCTYPE html><meta charset="utf-8"><body>'
    for width in 390 1280; do
        printf '<iframe width="%s" height="800" srcdoc="' "$width"
        sed 's/&/\&amp;/g; s/"/\&quot;/g' "$1"
        echo '"></iframe>'
    done
    cat <<'SCRIPT'
<script>
addEventListener("load", () => {
  const found = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument;
    const root = page.scrollingElement;
    const say = (name, value) => found.push(`${name}-${frame.width}=${value}`);
    const links = [...page.querySelectorAll('a[href^="#"]')];
    say("wider", Math.max(0, root.scrollWidth - root.clientWidth));
    say("drawings", page.querySelectorAll("svg[role=img]").length);
    say("links", links.length);
    say("lost", links.filter((a) => !page.getElementById(a.getAttribute("href").slice(1))).length);
    say("nameless", page.querySelectorAll("svg[role=img]:not([aria-label])").length);
    say("requests", frame.contentWindow.performance.getEntriesByType("resource").length);
    say("paper", frame.contentWindow.getComputedStyle(page.body).backgroundColor);
    // The script opens the line that is led to.
    const line = page.querySelector("details.line");
    say("closed", line.open);
    frame.contentWindow.location.hash = line.id;
    frame.contentWindow.dispatchEvent(new HashChangeEvent("hashchange"));
    say("opened", line.open);
  }
  const result = document.createElement("pre");
  result.id = "found";
  result.textContent = found.join(";");
  document.body.prepend(result);
});
</script>
SCRIPT
}

failed=0
fail() {
    echo "FAILED: $1" >&2
    failed=1
}

# value NAME FOUND: what was found of that name.
value() {
    printf '%s\n' "$2" | tr ';' '\n' | sed -n "s/^$1=//p"
}

check() {
    local page=$1 found=$2 width
    for width in 390 1280; do
        [ "$(value "wider-$width" "$found")" = 0 ] || fail "$page is wider than $width pixels"
        [ "$(value "drawings-$width" "$found")" -gt 0 ] || fail "$page has no drawing"
        [ "$(value "links-$width" "$found")" -gt 20 ] || fail "$page leads nowhere"
        [ "$(value "closed-$width" "$found")" = false ] || fail "$page: lines are open"
        [ "$(value "opened-$width" "$found")" = true ] || fail "$page: a line did not open"
        for name in lost nameless requests; do
            [ "$(value "$name-$width" "$found")" = 0 ] || fail "$page: $name at $width pixels"
        done
    done
    if grep -E 'CONSOLE|Uncaught' "$out/log"; then
        fail "$page: the browser complains"
    fi
}

[ -n "${BUILT:-}" ] || cargo build --quiet --locked -p lanecast-cli
program=${BUILT:-${CARGO_TARGET_DIR:-target}/debug}/lanecast
lanecast() {
    "$program" "$@"
}
lanecast report "$recorded"/smx.jsonl "$recorded"/smx-later.jsonl -o "$out/smx.html"
lanecast report "$recorded"/hand.jsonl -o "$out/hand.html" -o "$out/hand.hlog"
lanecast report "$recorded"/threads.jsonl -o "$out/threads.html"
lanecast report "$recorded"/round-trips.jsonl -o "$out/round-trips.html"
lanecast report "$recorded"/every-member.jsonl "$out/hand.hlog" -o "$out/every.html"

for page in smx hand threads round-trips every; do
    harness "$out/$page.html" >"$out/harness-$page.html"
    light=$(shown 1 "$out/harness-$page.html")
    [ -n "$light" ] || { fail "$page: the browser found nothing, see $out/log"; continue; }
    check "$page" "$light"
    echo "$page: $light"
done
dark=$(shown 0 "$out/harness-hand.html")
if [ "$(value paper-1280 "$dark")" = "$(value paper-1280 "$light")" ]; then
    fail "light and dark look the same"
fi
exit "$failed"
