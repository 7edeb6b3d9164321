#!/bin/sh
# Compiles a crate of the workspace for the test suite; cargo gives the compiler and its arguments.
# Libraries are optimised as Cargo.toml says, programs and tests are not: optimising them takes
# longer than it saves. The tests of lanecast-protocol are an exception: their seeds would run for five
# times as long.
case " $* " in
*" --crate-type lib "* | *" --crate-name lanecast_protocol "*) ;;
*) set -- "$@" -C opt-level=0 ;;
esac
exec ${LINTER:-} "$@"
