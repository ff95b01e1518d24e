# For the ci.sh of a project, which sets `here` to its own directory first: the command `writ`, and what has to hold. POSIX sh.
# shellcheck shell=sh disable=SC2154

# The checkout this lies in, wherever it was called from; in a project of one's own, the package that is installed there.
root=$here
until grep -qs '"name": "effect-writ"' "$root/package.json"; do
  if [ "$root" = / ]; then
    root=
    break
  fi
  root=$(dirname -- "$root")
done

if [ -n "$root" ] && [ ! -d "$root/node_modules" ]; then
  echo "a fresh clone: npm ci" >&2
  (cd "$root" && npm ci --no-audit --no-fund) >&2
fi

node=node
if [ -n "$root" ] && [ -x "$root/node_modules/.bin/node" ]; then node=$root/node_modules/.bin/node; fi

writ() {
  if [ -n "$root" ]; then "$node" "${WRIT_TEST_COMMAND:-$root/src/cli.ts}" "$@"; else npx --no writ "$@"; fi
}

export NO_COLOR=1

step() { printf '\n== %s\n' "$1"; }

no() {
  echo "NO: $1" >&2
  exit 1
}

# assembled NAME: makes the conversations of an assembly, prints their directory.
assembled() { writ assemble "$1"; }

# has_files DIRECTORY NAME...: it holds exactly these, given by name.
has_files() {
  directory=$1
  shift
  found=$(LC_ALL=C ls -- "$directory")
  [ "$found" = "$(printf '%s\n' "$@")" ] || no "$directory: expected $*, found $(echo "$found" | tr '\n' ' ')"
  echo "$directory: $*"
}

# has_line FILE LINE
has_line() { grep -qxF -e "$2" -- "$1" || no "$1: there is no line '$2'"; }

# unchanged_by_run DIRECTORY: complete conversations are left as they are, byte for byte.
unchanged_by_run() {
  before=$(cat -- "$1"/*.yaml | cksum)
  writ run "$1"
  [ "$before" = "$(cat -- "$1"/*.yaml | cksum)" ] || no "$1: it was complete, and a run changed it"
}

# gate ID CONVERSATIONS PASSED SUITE PATH: evaluates, then reads the report. At least so many conversations were looked at, at least
# so many assertions passed, and every other outcome is zero. A command that ends with 0 does not stand in for that.
gate() {
  report=evals/reports/$1.json
  rm -f -- "$report"
  ended=0
  writ eval "$4" --over "$5" --id "$1" --strict || ended=$?
  [ -f "$report" ] || no "$1: there is no report"
  "$node" -e '
    const [, id, file, conversations, passed] = process.argv
    const { conversations_matched: matched, assertions } = JSON.parse(require("node:fs").readFileSync(file, "utf8")).totals
    const others = ["failed", "malformed", "errored", "deferred"].filter((outcome) => assertions[outcome] !== 0)
    const holds = matched >= Number(conversations) && assertions.passed >= Number(passed) && others.length === 0
    console.log(`${holds ? "gate open" : "GATE SHUT"}: ${id}: conversations_matched ${matched}, ${Object.entries(assertions).map((one) => one.join(" ")).join(", ")}`)
    process.exitCode = holds ? 0 : 1
  ' "$1" "$report" "$2" "$3" || exit 1
  [ "$ended" -eq 0 ] || no "$1: the report is good, and writ eval ended with $ended"
}

# informs COMMAND CODE: for what a model did, which is not a check.
informs() { echo "live: $1 ended with $2, which decides nothing here"; }

passed() { printf '\npassed: %s\n' "$1"; }
