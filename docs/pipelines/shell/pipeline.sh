#!/usr/bin/env bash
# pipeline.sh plan|apply: plan a commit, and apply later exactly the plan that was reviewed. For a scheduler, a hook or a
# person: nothing in it belongs to one CI system. What each part is for: docs/pipelines/README.md of tfguard.
#
# STACK  the stack's folder in the checkout that this script is called in (live)
# PLANS  where plans wait for their apply; they hold what the state holds, so that nobody else may read it
set -euo pipefail
umask 077
export TF_IN_AUTOMATION=true
plans=${PLANS:?set PLANS to a folder that only this user can read}
cd "${STACK:-live}"
plan=$plans/$(git rev-parse 'HEAD^{tree}')

plan() {
  tfguard init -input=false
  tfguard plan -input=false -lock-timeout=5m -out=plan.bin
  sha256sum plan.bin
  mkdir -p "$plans"
  mv plan.bin "$plan"
}

# Run tfguard so that a signal to this script reaches it, once, and wait until it has ended, however long that takes.
patiently() {
  "$@" &
  local child=$! code=0
  trap 'kill -TERM "$child" 2>/dev/null || true' HUP INT TERM
  wait "$child" || code=$?
  while kill -0 "$child" 2>/dev/null; do
    code=0
    wait "$child" || code=$?
  done
  trap - HUP INT TERM
  return "$code"
}

apply() {
  if [ ! -e "$plan" ]; then
    echo "there is no plan of this tree in $plans: none was made, or the branch has moved on since; run '$0 plan' again" >&2
    exit 1
  fi
  tfguard init -input=false
  sha256sum "$plan"
  local applied=0
  patiently tfguard apply -input=false -lock-timeout=5m --fail-on-gap "$plan" || applied=$?
  local left=0
  recover || left=$?
  exit $((applied > 0 ? applied : left))
}

# Also to be called alone, by the next job, when one was killed.
recover() {
  tfguard init -input=false >/dev/null
  # 12: the engine of a run that was killed still finishes its calls. Look again until it has.
  local code=12 tries=60 found=0
  while [ "$code" -eq 12 ] && [ "$tries" -gt 0 ]; do
    code=0
    tfguard recover || code=$?
    tries=$((tries - 1))
    if [ "$code" -eq 12 ]; then sleep 10; fi
  done
  tfguard orphans list || found=$?
  if [ "$found" -eq 3 ]; then found=0; fi # what could not be looked up is said, and fails nothing
  return $((code > 0 ? code : found))
}

case "${1:-}" in
  plan | apply | recover) "$1" ;;
  *)
    echo "usage: $0 plan|apply|recover" >&2
    exit 64
    ;;
esac
