# shellcheck shell=bash
# What validation rules cost, by the API server's own estimate.

# The share of its limit, in percent, that no rule may exceed: headroom for a later release of the API server to
# estimate differently.
CRD_SHARE_MAX=50

# crd_costs FILE: writes the estimates as JSON, prints them as tables, fails when a rule is too expensive.
crd_costs() {
  local program
  mkdir -p "$(dirname "$1")"
  program=$(dirname "$1")/crdcost
  # A program of the same module as the API server that the tests run, so both have the same estimator.
  go -C "$DEV_DIR/toolchain/kubernetes" build -mod=readonly -buildvcs=false -o "$(realpath -m "$program")" ./crdcost ||
    die "building the estimator failed; the compiler's message is above"
  "$program" crds/trawl.cloud_*.yaml >"$1" || die "the estimator failed; its message is above"
  crd_table "$1"
  say "all estimates are in $1"
  jq -e --argjson max "$CRD_SHARE_MAX" '
    (.ruleLimit * $max / 100) as $rule | (.definitionLimit * $max / 100) as $total
    | all(.definitions[]; .total <= $total and all(.rules[]; .cost <= $rule))' "$1" >/dev/null ||
    die "a rule or a definition is above $CRD_SHARE_MAX % of what the API server allows"
}

# crd_table FILE: one table for each definition, the most expensive rules first.
crd_table() {
  jq -r '
    def percent(limit): . * 10000 / limit | round / 100 | tostring + " %";
    . as $all
    | .definitions[]
    | ["\(.name): \(.rules | length) rules, \(.total) of \($all.definitionLimit)", "", (.total | percent($all.definitionLimit)), ""],
      (.rules | sort_by(-.cost)[] | ["  \(.field)\(if .names then " -> " + .names else "" end)", "\(.cost)", (.cost | percent($all.ruleLimit)), .message[0:60]])
    | @tsv' "$1" | awk -F'\t' '{ printf "%-72s %10s %9s  %s\n", $1, $2, $3, $4 }'
}
