# shellcheck shell=bash
# Finds or builds the Go programs of dev/toolchain: one go.mod per group, one cache directory per build recipe.

TOOL_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/trawl
KUBERNETES_TOOLS=(etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)
# DWARF would triple memory and time of the link and nobody debugs these; two jobs keep the peak below 2.5 GB.
GO_BUILD_FLAGS=(-p 2 -trimpath -gcflags=all=-dwarf=false)

tool_group() {
  case $1 in
    etcd | kube-apiserver | kube-controller-manager | kube-scheduler | kubelet | kube-proxy | kubectl) echo kubernetes ;;
    versitygw) echo versitygw ;;
    *) die "no tool named '$1'; there are ${KUBERNETES_TOOLS[*]} versitygw" ;;
  esac
}

# module_version GROUP MODULE: the version pinned in its go.mod.
module_version() { awk -v m="$2" '$1 == "require" { sub(/^require /, "") } $1 == m && $2 ~ /^v/ { print $2; exit }' "$DEV_DIR/toolchain/$1/go.mod"; }

tool_version() {
  case $1 in
    etcd) module_version kubernetes go.etcd.io/etcd/server/v3 ;;
    versitygw) module_version versitygw github.com/versity/versitygw ;;
    *) module_version kubernetes k8s.io/kubernetes ;;
  esac
}

# reported_version NAME PATH: what the binary itself says.
reported_version() {
  case $1 in
    kubectl) timeout 10 "$2" version --client ;;
    *) timeout 10 "$2" --version ;;
  esac 2>/dev/null | grep -oE 'v?[0-9]+\.[0-9]+\.[0-9]+[-+.a-z0-9]*' | head -1 | sed 's/^v*/v/'
}

linker_flags() {
  local flags="-s -w" version package major minor
  if [ "$1" = kubernetes ]; then
    version=$(tool_version kubelet); major=${version#v}; major=${major%%.*}; minor=${version#v*.}; minor=${minor%%.*}
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
      flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
      flags+=" -X $package.gitTreeState=archive -X $package.gitCommit=unknown"
    done
  fi
  echo "$flags"
}

# cache_dir GROUP: named by a hash of everything that decides the bytes of the binaries.
cache_dir() {
  local d=$DEV_DIR/toolchain/$1
  echo "$TOOL_CACHE/$1-$({ cat "$d/go.mod" "$d/go.sum"; go version; echo "${GO_BUILD_FLAGS[*]} $(linker_flags "$1") CGO_ENABLED=0"; } | sha256sum | cut -c1-16)"
}

tool_package() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    versitygw) echo github.com/versity/versitygw/cmd/versitygw ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

# find_tool NAME: prints the path of a usable binary, or fails.
find_tool() {
  local found cached
  if [ -n "${TRAWL_BIN_DIR:-}" ] && [ -x "$TRAWL_BIN_DIR/$1" ]; then
    echo "$TRAWL_BIN_DIR/$1"; return 0
  fi
  if found=$(type -P "$1") && [ "$(reported_version "$1" "$found")" = "$(tool_version "$1")" ]; then
    echo "$found"; return 0
  fi
  cached=$(cache_dir "$(tool_group "$1")")/$1
  [ -x "$cached" ] && echo "$cached"
}

# build_tools GROUP NAME...: builds what is still missing; a second run waits for the first and finds its work done.
build_tools() (
  local group=$1 target name flags start work i=0
  local -a wanted=()
  shift; target=$(cache_dir "$group"); mkdir -p "$target"
  exec 7<"$target"
  flock -n 7 || { say "another run builds the $group tools; waiting for it"; flock 7; }
  for name; do [ -x "$target/$name" ] || wanted+=("$name"); done
  [ ${#wanted[@]} -gt 0 ] || exit 0
  if [ "$group" = kubernetes ] && [ ! -x "$target/kube-apiserver" ]; then
    say "the first build of Kubernetes $(tool_version kubelet) takes about 10 minutes on 2 cores; it is kept in $target"
  fi
  work=$(mktemp -d "$target/.build.XXXXXX"); trap 'rm -rf "$work"' EXIT
  cd "$DEV_DIR/toolchain/$group" || exit
  flags=$(linker_flags "$group")
  for name in "${wanted[@]}"; do
    i=$((i + 1)); start=$(now_ms)
    say "building $name $(tool_version "$name") ($i of ${#wanted[@]})"
    CGO_ENABLED=0 GOFLAGS='' go build "${GO_BUILD_FLAGS[@]}" -buildvcs=false -mod=readonly -ldflags "$flags" -o "$work/$name" "$(tool_package "$name")" 7<&- 9<&- ||
      die "building $name failed; the compiler's message is above"
    mv "$work/$name" "$target/$name"
    say "built $name in $(seconds_since "$start")"
  done
)

# need_tools NAME...: makes sure that each can be found, and puts their paths into TOOL[name].
declare -gA TOOL
need_tools() {
  local name group
  local -A missing=()
  for name; do
    group=$(tool_group "$name") || exit
    find_tool "$name" >/dev/null || missing[$group]+=" $name"
  done
  for group in "${!missing[@]}"; do
    # shellcheck disable=SC2086 # a list of names
    build_tools "$group" ${missing[$group]} || exit
  done
  for name; do TOOL[$name]=$(find_tool "$name"); done
}
