#!/bin/sh
# As rustc.sh, and lints what it compiles. Another path, so that cargo does not take for linted
# what was compiled without.
LINTER=clippy-driver exec "$(dirname "$0")/rustc.sh" "$@"
