#!/bin/sh
# Compiles a crate of the workspace for the test suite; cargo gives the compiler and its arguments.
# Test programs are not optimised, whatever their crate is: that would take longer than it saves.
# Those of lanecast-protocol are an exception: their seeds run for five times as long without.
case " $* " in
*" --crate-name lanecast_protocol "*) ;;
*" --test "*) set -- "$@" -C opt-level=0 ;;
esac
exec ${LINTER:-} "$@"
