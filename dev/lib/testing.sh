# shellcheck shell=bash
# Runs one area of the tests, counts what it reported, and keeps the logs of what failed.

PASSED=0 FAILED=0 IGNORED=0 BROKEN=()

# count_results FILE: adds up the lines of cargo ('test result: ...') or of a script ('N passed, M failed').
count_results() {
  local p f i
  read -r p f i < <(awk '
    /^test result:/ { gsub(/;/, " "); for (n = 1; n <= NF; n++) { if ($(n + 1) == "passed") p += $n; if ($(n + 1) == "failed") f += $n; if ($(n + 1) == "ignored") i += $n } }
    /^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 }
    END { print p + 0, f + 0, i + 0 }' "$1")
  AREA_COUNT=$((p + f)); PASSED=$((PASSED + p)); FAILED=$((FAILED + f)); IGNORED=$((IGNORED + i))
}

# run_counted LABEL COMMAND...: shows the output as it comes; a nonzero exit without a failed test is a failure too.
run_counted() {
  local label=$1 rc=0 failed_before=$FAILED
  shift
  say "$label: $*"
  (cd "$TRAWL_REPO" && "$@") 2>&1 | tee "$WORK/output" || rc=$?
  count_results "$WORK/output"
  if [ $rc != 0 ]; then
    BROKEN+=("$label")
    [ $FAILED -gt $failed_before ] || FAILED=$((FAILED + 1))
    return 0
  fi
  [ $AREA_COUNT -gt 0 ] || { say "$label ran no test at all, which counts as a failure"; BROKEN+=("$label"); FAILED=$((FAILED + 1)); }
}

# run_check LABEL COMMAND...: a command whose success is the one thing to count.
run_check() {
  local label=$1
  shift
  say "$label: $*"
  if (cd "$TRAWL_REPO" && "$@"); then PASSED=$((PASSED + 1)); else
    FAILED=$((FAILED + 1)); BROKEN+=("$label")
  fi
}

# save_logs: before 'down' deletes them.
save_logs() {
  local d
  for d in "$TRAWL_DEV_STATE"/*/logs; do
    [ -d "$d" ] || continue
    mkdir -p "$LOG_DIR/$(basename "${d%/logs}")"
    cp -a "$d/." "$LOG_DIR/$(basename "${d%/logs}")/"
  done
}

# down_all: everything that was started below our own state root, whatever its kind.
down_all() {
  local d kind
  [ ${#BROKEN[@]} = 0 ] || save_logs
  for d in "$TRAWL_DEV_STATE"/*/; do
    [ -d "$d" ] || continue
    kind=$(cat "$d/kind" 2>/dev/null) || kind=s3
    "$DEV_DIR/$kind" down --name "$(basename "$d")" || say "could not bring down the $kind $(basename "$d")"
  done
  rmdir "$TRAWL_DEV_STATE" 2>/dev/null || true
}
