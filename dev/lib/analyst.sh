# shellcheck shell=bash
# What the demo asks the cluster for, and as whom.

# render_tap: the sample, for this node and its NIC.
render_tap() {
  sed -e "s/^\( *interface:\).*/\1 $MIRROR_IFACE/" -e "s/^\( *kubernetes.io\/hostname:\).*/\1 $NODE_NAME/" \
    -e "s/^  name: .*/  name: $TAP/" "$DEV_DIR/../deploy/samples/networktap-mirror.yaml"
}

render_job() {
  cat <<YAML
apiVersion: trawl.cloud/v1alpha1
kind: CaptureJob
metadata:
  generateName: report-upload-
  namespace: $NAMESPACE
spec:
  tapRef:
    name: $TAP
  targetNode: $NODE_NAME
  filter: "$FILTER"
  duration: 10s
  maxSize: 50Mi
YAML
}

# analyst_kubeconfig: a person who may ask for captures and download them, and no more.
analyst_kubeconfig() (
  umask 077
  kube create serviceaccount demo-analyst >&2
  kube create rolebinding demo-analyst --role=trawl-analyst --serviceaccount="$NAMESPACE:demo-analyst" >&2
  kube create token demo-analyst >"$S/analyst.token"
  kube config view --raw --minify -o json | jq --rawfile token "$S/analyst.token" '
    .users = [{name: "demo-analyst", user: {token: ($token | rtrimstr("\n"))}}]
    | .contexts[0].context.user = "demo-analyst"'
  rm -f "$S/analyst.token"
)

# show_conditions KIND/NAME: what the status claims, and why.
show_conditions() {
  kube get "$1" -o json |
    jq -r '.status.conditions[]? | "  \(.type)=\(.status) \(.reason): \(.message)"' | cut -c1-200
}

phase_of() { kube get "capturejob/$1" -o 'jsonpath={.status.phase}'; }
end_of() { kube get "capturejob/$1" -o 'jsonpath={.status.phase} {.status.failure.reason} {.status.failure.message}'; }

# wait_for_capturing JOB SECONDS: a job that ends before it captures is a failure at once.
wait_for_capturing() {
  local limit=$2 start; start=$(now_ms)
  while :; do
    case $(phase_of "$1") in
      Capturing) return 0 ;;
      '' | Pending) ;;
      *) die "the capture ended before the desk sent anything: $(end_of "$1")" ;;
    esac
    [ $(($(now_ms) - start)) -lt $((limit * 1000)) ] || die "the capture did not start within $limit s"
    sleep 0.2
  done
}
