# shellcheck shell=bash
# Container images without a registry: the pause image is packed here, others are imported from files.

PAUSE_IMAGE=localhost/trawl/pause:1

# pack_image FILE NAME BINARY [ARGUMENT...]: a docker archive whose only content is one static program.
pack_image() (
  local file=$1 name=$2 binary=$3 work program
  shift 3; work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
  cd "$work" || exit
  program=/usr/bin/$(basename "$binary")
  mkdir -p root/usr/bin root/tmp; chmod 1777 root/tmp; install -m 755 "$binary" "root$program"
  local tar=(tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner)
  "${tar[@]}" -C root -cf layer.tar .
  jq -n --arg d "sha256:$(sha256sum layer.tar | cut -c1-64)" --arg a "$(dpkg --print-architecture)" \
    '{architecture: $a, os: "linux", config: {Entrypoint: $ARGS.positional}, rootfs: {type: "layers", diff_ids: [$d]}}' \
    --args "$program" "$@" >config.json
  jq -n --arg t "$name" '[{Config: "config.json", RepoTags: [$t], Layers: ["layer.tar"]}]' >manifest.json
  "${tar[@]}" -cf "$file" config.json manifest.json layer.tar
)

load_pause_image() {
  ! ctr_node images ls -q | grep -qxF "$PAUSE_IMAGE" || return 0
  pack_image "$S/node/pause.tar" "$PAUSE_IMAGE" /bin/busybox sleep 2147483647
  ctr_node images import "$S/node/pause.tar" >/dev/null
  rm -f "$S/node/pause.tar"
}

# load_image FILE: imports every image of an archive and prints NAME@DIGEST for each.
load_image() {
  local name digest report
  report=$(ctr_node images import "$1" 2>&1) || die "import of $1 failed: $(tail -1 <<<"$report")"
  while read -r name digest; do
    # Pods name their image by digest; the kubelet finds it only under a name that ends so.
    ctr_node images tag --force "$name" "${name%:*}@$digest" >/dev/null
    echo "${name%:*}@$digest"
  done < <(sed -nE 's/^unpacking ([^ ]+) \((sha256:[0-9a-f]{64})\).*/\1 \2/p' <<<"$report")
}
