# shellcheck shell=bash
# The parts of an overlay that differ per cluster. Callers have loaded the environment of dev/cluster, dev/s3
# and images.env.

# write_certificate DIR SANS: the gateway's certificate, signed by the cluster's own authority.
write_certificate() {
  (
    umask 077
    openssl ecparam -name prime256v1 -genkey -noout -out "$1/tls.key"
  )
  openssl req -new -key "$1/tls.key" -subj /CN=trawl-gateway |
    openssl x509 -req -CA "$CA_CERT" -CAkey "$CA_KEY" -set_serial "0x$(openssl rand -hex 16)" -days 30 -extfile <(
      printf '%s\n' 'basicConstraints=critical,CA:FALSE' 'keyUsage=critical,digitalSignature' \
        'extendedKeyUsage=serverAuth' "subjectAltName=$2"
    ) -out "$1/tls.crt" 2>/dev/null || die "could not sign the gateway's certificate with $CA_CERT"
}

# write_store DIR s3|directory: credentials, or the directory on the node.
write_store() {
  local who
  if [ "$2" = s3 ]; then
    for who in runner operator gateway; do
      mkdir -p "$1/credentials/$who"
      # Without a final newline, whatever the source has: the program reads the file as it stands.
      for file in access-key-id secret-access-key; do
        printf '%s' "$(cat "$S3_CREDENTIALS/$who/$file")" >"$1/credentials/$who/$file"
      done
    done
  else
    # On the node this is /var/lib/trawl/captures, which the overlay mounts.
    install -d -o 65532 -g 65532 -m 0750 "$DATA_DIR/captures"
  fi
}

# write_configuration DIR s3|directory
write_configuration() {
  {
    cat <<YAML
apiVersion: config.trawl.cloud/v1
namespace: $NAMESPACE
images:
  runner: $RUNNER_IMAGE
  reporter: $REPORTER_IMAGE
  sensor: $SENSOR_IMAGE
captured:
  socketDir: /run/trawl
secrets:
  runner: trawl-store-runner
store:
  profile: local-$2
  backend:
YAML
    if [ "$2" = s3 ]; then
      cat <<YAML
    s3:
      endpoint: $S3_ENDPOINT
      bucket: $S3_BUCKET
      region: $S3_REGION
      pathStyle: true
YAML
      if [ -n "${S3_CA:-}" ]; then
        printf '      caPem: |\n'
        sed 's/^/        /' "$S3_CA"
      else
        printf '      allowHttp: true\n'
      fi
    else
      printf '    directory:\n      path: /var/lib/trawl/captures\n'
    fi
  } >"$1/trawl.yaml"
}

image_line() { printf -- '- {name: %s, digest: "%s"}\n' "${1%@*}" "${1#*@}"; }

# append_site DIR: the digests, and a mark that restarts pods on a new configuration.
append_site() {
  local mark
  mark=$(cd "$1" && find . -type f ! -name kustomization.yaml -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
  grep -q '^patches:' "$1/kustomization.yaml" || echo 'patches:' >>"$1/kustomization.yaml"
  cat >>"$1/kustomization.yaml" <<YAML
  - target: {kind: Deployment}
    patch: '[{"op": "add", "path": "/spec/template/metadata/annotations", "value": {"trawl.cloud/configuration": "$mark"}}]'
images:
$(for image in "$CAPTURED_IMAGE" "$OPERATOR_IMAGE" "$GATEWAY_IMAGE"; do image_line "$image"; done)
YAML
}

# tell_why WORKLOAD: what the pods of a workload wait for or last said.
tell_why() {
  local pods
  pods=$(kube get pods -l "app.kubernetes.io/name=$1" -o json)
  jq -r '.items[] | .metadata.name as $pod
      | ([.status.conditions[]? | select(.status == "False" and .message != null) | .message]
         + [.status.containerStatuses[]? | (.state.waiting // .lastState.terminated // empty) | "\(.reason): \(.message // "exit code \(.exitCode)")"])
      | unique[] | "\($pod): \(.)"' <<<"$pods" | while read -r line; do say "$line"; done
  [ "$(jq '.items | length' <<<"$pods")" != 0 ] || say "$1 has no pod; $(kube get events --sort-by=.lastTimestamp -o 'jsonpath={.items[-1:].message}')"
  # A crashed container's last words are in its previous log.
  { kube logs -l "app.kubernetes.io/name=$1" --tail=3 --previous 2>/dev/null || kube logs -l "app.kubernetes.io/name=$1" --tail=3 2>/dev/null; } |
    while read -r line; do say "$1 says: ${line:0:600}"; done || true
}

# wait_for_webhooks SAMPLE: until the API server gets an answer about a sample, which is not kept.
wait_for_webhooks() {
  local start answer=''
  start=$(now_ms)
  until answer=$(kube apply --dry-run=server -f "$1" 2>&1); do
    if [ $(($(now_ms) - start)) -gt 30000 ]; then
      tell_why trawl-operator
      die "the webhooks do not answer after 30 s: ${answer:0:400}"
    fi
    sleep 0.2
  done
  say "the webhooks answer ($(seconds_since "$start"))"
}
