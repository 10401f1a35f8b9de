#!/bin/sh
# apart.sh COMMAND [ARGS]: run a command where an aborted Jenkins build cannot reach it, and hand it one signal instead.
#
# Jenkins ends a step by SIGTERM to every process that has the step's cookie in its environment and to all children of
# such a process, children first: the provider would die before the engine hears that it is to stop. The command below
# has other cookies and no parent among those processes. It gets one SIGTERM, from here, and all the time that it needs.
set -u
run=$(mktemp -d)
# shellcheck disable=SC2016 (for the inner shell)
JENKINS_SERVER_COOKIE=apart JENKINS_NODE_COOKIE=apart setsid --fork sh -c '
  run=$1
  shift
  "$@" </dev/null >"$run/log" 2>&1 &
  echo $! >"$run/pid.new" && mv "$run/pid.new" "$run/pid"
  wait $!
  echo $? >"$run/code.new" && mv "$run/code.new" "$run/code"
' apart "$run" "$@" </dev/null >/dev/null 2>&1
until [ -e "$run/pid" ]; do sleep 1; done
pid=$(cat "$run/pid")
trap 'kill -TERM "$pid"; echo "apart.sh: interrupted process $pid, which goes on to its end; its output: $run/log"; exit 143' \
  HUP INT TERM
# In the background, since a shell answers a signal only between two commands, or while it waits.
tail -n +1 -f --pid="$pid" "$run/log" &
wait $!
until [ -e "$run/code" ]; do sleep 1; done
code=$(cat "$run/code")
rm -r "$run"
exit "$code"
