# shellcheck shell=bash
# etcd, kube-apiserver, kube-controller-manager and kube-scheduler of one name, in the root network namespace.

CONTROL_PLANE_TOOLS=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl)
CONTROL_PLANE_PROCESSES=(scheduler kcm apiserver etcd)

# The API server listens on one address only: the loopback, or the host's end of the node's link.
control_plane_certificates() {
  pki_ca
  pki_service_account_keys
  pki_server etcd etcd "DNS:localhost,IP:127.0.0.1"
  pki_client etcd-client /CN=kube-apiserver
  pki_server apiserver kube-apiserver "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$API_SERVICE_IP,IP:$HOST_IP"
  pki_client admin /O=system:masters/CN=admin
  pki_client kcm /CN=system:kube-controller-manager
  pki_client scheduler /CN=system:kube-scheduler
  pki_client front-proxy /CN=front-proxy
  pki_client apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client
  local user
  for user in admin kcm scheduler; do kubeconfig "$S/$user.kubeconfig" $user "https://$API_IP:$API_PORT"; done
  ln -sfn admin.kubeconfig "$S/kubeconfig"
}

start_etcd() {
  local client=https://127.0.0.1:$ETCD_PORT peer=http://127.0.0.1:$ETCD_PEER_PORT
  # The data outlives a killed process but need not outlive a power cut: no fsync.
  spawn etcd "${TOOL[etcd]}" --data-dir "$S/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "$client" --advertise-client-urls "$client" \
    --cert-file "$PKI/etcd.crt" --key-file "$PKI/etcd.key" --client-cert-auth --trusted-ca-file "$PKI/ca.crt" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
}

start_apiserver() {
  local endpoints=(--advertise-address="$API_IP")
  # A loopback address is not allowed as an endpoint, and nothing but pods would use it.
  [ "$API_IP" != 127.0.0.1 ] || endpoints+=(--endpoint-reconciler-type=none)
  spawn apiserver "${TOOL[kube-apiserver]}" --bind-address="$API_IP" --secure-port="$API_PORT" "${endpoints[@]}" \
    --etcd-servers="https://127.0.0.1:$ETCD_PORT" --etcd-cafile="$PKI/ca.crt" \
    --etcd-certfile="$PKI/etcd-client.crt" --etcd-keyfile="$PKI/etcd-client.key" \
    --client-ca-file="$PKI/ca.crt" --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" \
    --service-account-key-file="$PKI/sa.pub" --service-account-signing-key-file="$PKI/sa.key" \
    --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range="$SERVICE_CIDR" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --anonymous-auth=false \
    --requestheader-client-ca-file="$PKI/ca.crt" --requestheader-allowed-names=front-proxy \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$PKI/front-proxy.crt" --proxy-client-key-file="$PKI/front-proxy.key" \
    --enable-aggregator-routing=true \
    --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-client-certificate="$PKI/apiserver-kubelet.crt" \
    --kubelet-client-key="$PKI/apiserver-kubelet.key" --kubelet-preferred-address-types=InternalIP
}

# The default rate limit of the controller-manager alone would make every start three seconds longer.
start_controllers() {
  local kc=$S/kcm.kubeconfig sc=$S/scheduler.kubeconfig
  spawn kcm "${TOOL[kube-controller-manager]}" --kubeconfig="$kc" --authentication-kubeconfig="$kc" --authorization-kubeconfig="$kc" \
    --bind-address=127.0.0.1 --secure-port="$KCM_PORT" --leader-elect=false --use-service-account-credentials=true \
    --kube-api-qps=500 --kube-api-burst=1000 \
    --service-account-private-key-file="$PKI/sa.key" --root-ca-file="$PKI/ca.crt" \
    --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key" \
    --service-cluster-ip-range="$SERVICE_CIDR"
  spawn scheduler "${TOOL[kube-scheduler]}" --kubeconfig="$sc" --authentication-kubeconfig="$sc" --authorization-kubeconfig="$sc" \
    --bind-address=127.0.0.1 --secure-port="$SCHEDULER_PORT" --leader-elect=false
}

kubectl_admin() { "${TOOL[kubectl]}" --kubeconfig "$S/admin.kubeconfig" --request-timeout=5s "$@"; }
api_ready() { kubectl_admin get --raw /readyz; }

# control_plane_up: idempotent; what died is started again on the same data.
control_plane_up() {
  control_plane_certificates
  start_etcd
  start_apiserver
  wait_for 60 "API server ready on https://$API_IP:$API_PORT" apiserver api_ready_or_etcd_dead
  alive etcd || { why etcd; die "etcd ended"; }
  start_controllers
  wait_for 30 "controllers at work (default ServiceAccount made)" kcm kubectl_admin get serviceaccount default -n default
  wait_for 30 "root CA published" kcm kubectl_admin get configmap kube-root-ca.crt -n default
  wait_for 30 "scheduler healthy" scheduler curl -sf --cacert "$PKI/ca.crt" --insecure "https://127.0.0.1:$SCHEDULER_PORT/healthz"
}
# The API server only complains when etcd is gone, it does not end: look at etcd itself while waiting.
api_ready_or_etcd_dead() { ! alive etcd || api_ready; }

control_plane_down() {
  local p
  for p in "${CONTROL_PLANE_PROCESSES[@]}"; do stop_process "$p" 3; done
}

print_status() {
  local p rc=0
  for p in "$@"; do
    if alive "$p"; then
      printf '%-12s running  pid %-8s %s MB\n' "$p" "$(pid_of "$p")" "$(awk '/VmRSS/ { printf "%d", $2 / 1024 }' "/proc/$(pid_of "$p")/status")"
    else
      printf '%-12s stopped\n' "$p"; rc=1
    fi
  done
  return $rc
}
