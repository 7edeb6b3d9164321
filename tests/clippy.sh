#!/bin/sh
# As rustc.sh, and lints what it compiles. Another path, so that cargo does not take for linted
# what was compiled without.
#
# A library is compiled twice, for its unit tests with all its modules: clippy reads it there. The
# compiler's own warnings are errors both times.
plain=
case " $* " in
*" --crate-type lib "*) grep -q '^test = false' "$CARGO_MANIFEST_DIR/Cargo.toml" || plain=1 ;;
esac
if [ -n "$plain" ]; then set -- "$@" -D warnings; else export LINTER=clippy-driver; fi
exec "$(dirname "$0")/rustc.sh" "$@"
