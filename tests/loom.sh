#!/bin/sh
# Compiles a crate of the workspace for the model checker; cargo gives the compiler and its
# arguments, and by it asks what is configured. Libraries from elsewhere are those of the tests:
# RUSTFLAGS would build all of them once more.
exec "$@" --cfg loom -C debug-assertions=off -C overflow-checks=off
