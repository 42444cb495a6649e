# shellcheck shell=bash
# Numbered, timed steps, and what to say when one fails.

STEP=0 STEP_TITLE='' STEP_START=0 STEP_TIMES=()

end_step() {
  [ $STEP = 0 ] || STEP_TIMES+=("$(printf '%3d  %-70s %8s' "$STEP" "$STEP_TITLE" "$(seconds_since "$STEP_START")")")
}
step() {
  end_step
  [ $STEP != 0 ] || DEMO_START=$(now_ms)
  STEP=$((STEP + 1)); STEP_TITLE=$1; STEP_START=$(now_ms)
  printf '\n== %d. %s\n' "$STEP" "$STEP_TITLE"
}
print_times() {
  printf '\n'
  printf '%s\n' "${STEP_TIMES[@]}"
  printf '     %-70s %8s\n' total "$(seconds_since "$DEMO_START")"
}

# free_port FIRST: the first port from there on that nobody listens on.
free_port() {
  local port=$1
  while [ -n "$(ss -Hltn "sport = :$port")" ]; do port=$((port + 1)); done
  echo "$port"
}

# explain_failure: the lines that say why, from whatever runs by now.
explain_failure() {
  local pod log
  echo
  for log in "$S"/logs/*.log; do
    [ ! -s "$log" ] || say "$(basename "$log" .log) last said: $(tail -n 1 "$log" | cut -c1-400)"
  done
  [ -n "${KUBECTL:-}" ] && kube get namespace "$NAMESPACE" >/dev/null 2>&1 || return 0
  kube get pods,networktaps,capturejobs -o wide >&2
  # A taint such as disk-pressure keeps every pod off the node, and the scheduler does not say which one it is.
  kube get nodes -o 'custom-columns=NODE:.metadata.name,TAINTS:.spec.taints[*].key' >&2
  for pod in $(kube get pods -o name); do
    kube logs "$pod" --all-containers --prefix --tail=4 2>&1 | cut -c1-600 >&2
  done
  kube get events --sort-by=.lastTimestamp -o 'custom-columns=TIME:.lastTimestamp,ABOUT:.involvedObject.name,REASON:.reason,MESSAGE:.message' 2>/dev/null |
    tail -n 8 | cut -c1-300 >&2
  say "to look around in the broken state, run the steps by hand: dev/cluster up, dev/images, dev/manifests (see their --help)"
}

print_usage() {
  cat <<TXT

Everything keeps running. In another shell:
  export KUBECONFIG=$KUBECONFIG
  $KUBECTL -n $NAMESPACE get networktaps,capturejobs
  $TRAWLCTL capture create --tap $TAP --filter 'udp port 53' --duration 10s --wait
  $TRAWLCTL capture download NAME -o dns.pcapng \\
    --token-exec '$KUBECTL -n $NAMESPACE create token demo-analyst --audience trawl-artifact-gateway'
The capture of this run: $S/capture.pcapng
Stop it all with: ${TRAWL_DEV_STATE:+TRAWL_DEV_STATE=$TRAWL_DEV_STATE }dev/demo --down

TXT
}
