#!/bin/sh
# The insurance claims, checked: policies are looked up, history where the amount matters, and nobody approves anything. The tools are
# the real ones of tools/. Needs no network, no key and no model. LIVE_MODEL=FILE|hf:… adds a half that informs and decides nothing.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
cd "$here"
. "$here/../checks.sh"

step "assemble"
run=$(assembled claims)
has_files "$run" missing-fields.yaml over-limit.yaml

step "filled by hand"
unchanged_by_run fixtures/filled
gate filled 2 8 claims fixtures/filled

step "filled by a script that plays the model; the tools are real"
writ run "$run" --script fixtures/scripted --tools-dir tools --approve deny
gate scripted 2 8 claims "$run"
gate scripted-effects 2 10 effects "$run"

step "filled by a model"
if [ -z "${LIVE_MODEL:-}" ]; then
  echo "SKIP live: no LIVE_MODEL (a GGUF file, or hf:USER/REPO:QUANT)"
else
  live=$(assembled claims)
  writ run "$live" --model "$LIVE_MODEL" --tools-dir tools --approve deny || informs "writ run" $?
  writ eval claims --over "$live" --id live || informs "writ eval" $?
fi

passed insurance-claim
