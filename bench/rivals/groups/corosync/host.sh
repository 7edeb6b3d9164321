#!/bin/sh
# One host of Corosync in a network namespace: a daemon with its own /run, /dev/shm and
# /var/lib/corosync, and the member that talks to it. The daemon ends with the member.
# host.sh CONFIGURATION MEMBER ARGUMENTS...
set -eu
configuration=$1
shift
for folder in /run /dev/shm /var/lib/corosync /var/log; do
  mkdir -p "$folder"
  mount -t tmpfs none "$folder"
done
setpriv --pdeathsig KILL corosync -f -c "$configuration" >/var/log/corosync.out 2>&1 &
COROSYNC_PID=$!
export COROSYNC_PID
exec "$@"
