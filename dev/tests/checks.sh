# shellcheck shell=bash
# Small laws for shell tests: each prints its outcome and is counted.

PASSED=0 FAILED=0
pass() { PASSED=$((PASSED + 1)); echo "ok   $1"; }
fail() { FAILED=$((FAILED + 1)); echo "FAIL $1: ${2:0:600}"; }

# check LAW PATTERN COMMAND...: the command's output must match the extended regular expression.
check() {
  local law=$1 pattern=$2 output; shift 2
  output=$("$@" 2>&1) || true
  if grep -qE -- "$pattern" <<<"$output"; then pass "$law"; else fail "$law" "$output"; fi
}
# succeeds LAW COMMAND...: with the time it took; shows the command's output only when it fails.
succeeds() {
  local law=$1 output start; shift; start=$(now_ms)
  if output=$("$@" 2>&1); then pass "$law ($(seconds_since "$start"))"; else fail "$law" "$(tail -5 <<<"$output")"; fi
}
refuses() {
  local law=$1 output; shift
  if output=$("$@" 2>&1); then fail "$law" "it succeeded: $output"; else pass "$law"; fi
}
equal() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "'$2' is not '$3'"; fi; }
empty() { if [ -z "$2" ]; then pass "$1"; else fail "$1" "$2"; fi; }
# eventually SECONDS COMMAND...
eventually() {
  local i limit=$1; shift
  for ((i = 0; i < limit * 5; i++)); do
    ! "$@" >/dev/null 2>&1 || return 0
    sleep 0.2
  done
  return 1
}
