#!/bin/sh
# The research project, checked: what it assembles, and that conversations made of it search before they read. Needs no network, no
# key and no model. LIVE_MODEL=FILE|hf:… with a search service adds a half with a real model, which informs and decides nothing.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
cd "$here"
. "$here/../checks.sh"

step "assemble"
run=$(assembled research)
has_files "$run" tides.yaml
for line in "  - name: web_search" "  - name: web_fetch" "role: assistant"; do has_line "$run/tides.yaml" "$line"; done

step "filled by hand"
unchanged_by_run fixtures/filled
gate filled 1 5 research fixtures/filled

step "filled by a script, through the loop"
writ run "$run" --script fixtures/scripted
gate scripted 1 5 research "$run"

step "filled by a model"
if [ -z "${LIVE_MODEL:-}" ]; then
  echo "SKIP live: no LIVE_MODEL (a GGUF file, or hf:USER/REPO:QUANT)"
elif [ -z "${WRIT_BRAVE_KEY:-}${LIVE_SEARCH:-}" ]; then
  echo "SKIP live: no search service (WRIT_BRAVE_KEY, or LIVE_SEARCH=searxng:URL)"
else
  live=$(assembled research)
  writ run "$live" --model "$LIVE_MODEL" --web-search "${LIVE_SEARCH:-brave}" --web-host "${LIVE_HOST:-*}" || informs "writ run" $?
  writ eval research --over "$live" --id live || informs "writ eval" $?
fi

passed research
