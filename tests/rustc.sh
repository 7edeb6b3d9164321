#!/bin/sh
# Compiles a crate of the workspace for the test suite; cargo gives the compiler and its arguments.
# Libraries are optimised as Cargo.toml says, programs and tests are not: optimising them takes
# longer than it saves.
case " $* " in
*" --crate-type lib "*) ;;
*) set -- "$@" -C opt-level=0 ;;
esac
exec ${LINTER:-} "$@"
