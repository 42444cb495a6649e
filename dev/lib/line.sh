# shellcheck shell=bash
# The whole line in four steps: cluster, store, images, installation. What each tells is exported.

# line_environment COMMAND...: the KEY=value lines of one of our scripts become environment.
line_environment() {
  local settings
  settings=$("$@") || return
  set -a
  eval "$settings"
  set +a
}

# line_cluster NAME
line_cluster() {
  LINE_NAME=$1
  "$DEV_DIR/cluster" up --name "$LINE_NAME"
  line_environment "$DEV_DIR/cluster" env --name "$LINE_NAME"
}

# line_store s3|directory: also says where captures lie on this machine's disk.
line_store() {
  TRAWL_STORE=$1 TRAWL_STORE_ROOT=$DATA_DIR/captures
  if [ "$TRAWL_STORE" = s3 ]; then
    "$DEV_DIR/s3" up --name "$LINE_NAME" --listen "$HOST_IP"
    line_environment "$DEV_DIR/s3" env --name "$LINE_NAME"
    TRAWL_STORE_ROOT=$STATE_DIR/s3/data/$S3_BUCKET
  fi
  export TRAWL_STORE TRAWL_STORE_ROOT
}

# line_images DIR [BINARIES]: the programs of a directory, or of a release build.
line_images() {
  LINE_IMAGES=$1
  "$DEV_DIR/images" --out "$LINE_IMAGES" ${2:+--binaries "$2"} --load "$CONTAINERD_SOCKET" >/dev/null
}

# line_install [OPTION...]: options of dev/manifests.
line_install() {
  "$DEV_DIR/manifests" --cluster "$LINE_NAME" --images "$LINE_IMAGES" --store "$TRAWL_STORE" "$@"
}

# release_directory: where the programs of a release build lie.
release_directory() {
  (cd "$DEV_DIR/.." && cargo metadata --format-version 1 --no-deps --locked | jq -r '.target_directory + "/release"')
}

# line_for_tests BINARIES: what crates/trawl-testbed wants to know beyond that.
line_for_tests() {
  local address
  address=$("$("$DEV_DIR/tool" kubectl)" -n trawl-system get service trawl-gateway -o 'jsonpath={.spec.clusterIP}')
  export TRAWL_TEST_KUBECONFIG=$KUBECONFIG TRAWL_GATEWAY_CA=$CA_CERT
  export TRAWL_GATEWAY_URL=https://$address TRAWLCTL=$1/trawlctl
}
