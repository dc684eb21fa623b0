#!/bin/sh
# keep.sh PROGRAM…: start a program again some time after it ended by itself, as a DaemonSet does with its pods.
set -eu
child=
trap 'kill "$child"; wait "$child" || true; exit 0' TERM
while :; do
    setpriv --pdeathsig KILL -- "$@" & child=$!
    wait "$child" || echo "ended with $?; starting it again in 10 s"
    sleep 10 & child=$!
    wait "$child"
done
