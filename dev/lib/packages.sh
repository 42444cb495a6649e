# shellcheck shell=bash
# Debian packages per area, and the checks for Rust and Go, which are expected to be there already.

RUST_NEEDED=1.92
GO_NEEDED=1.26

# The tools of the scripts themselves.
PACKAGES_base=(ca-certificates curl iproute2 jq openssl procps util-linux)
# What the workspace compiles against: xsk-rs and libxdp-sys (bindgen, clang's BPF target, m4), libpcap.
PACKAGES_build=(build-essential clang libclang-dev libelf-dev libpcap-dev llvm m4 pkg-config zlib1g-dev)
PACKAGES_kernel=(bpftool e2fsprogs ethtool kmod strace tcpdump tshark wireshark-common)
# The peers that captured is measured beside.
PACKAGES_peers=(netsniff-ng)
# A machine of its own kernel, and what puts files into it.
PACKAGES_vm=(busybox-static cpio debian-archive-keyring qemu-system-x86)
PACKAGES_node=(busybox-static conntrack containerd containernetworking-plugins ethtool nftables runc)
PACKAGES_lint=(shellcheck)

# packages_of AREA...: the lists that an area needs.
packages_of() {
  local area
  for area; do
    case $area in
      control-plane | s3) printf '%s\n' "${PACKAGES_base[@]}" ;;
      cluster) printf '%s\n' "${PACKAGES_base[@]}" "${PACKAGES_node[@]}" ;;
      unit | api | store | nix) printf '%s\n' "${PACKAGES_base[@]}" "${PACKAGES_build[@]}" ;;
      # Filters are compared with tcpdump and captures with tshark and capinfos.
      kernel | hostile) printf '%s\n' "${PACKAGES_base[@]}" "${PACKAGES_build[@]}" "${PACKAGES_kernel[@]}" ;;
      bench) printf '%s\n' "${PACKAGES_base[@]}" "${PACKAGES_build[@]}" "${PACKAGES_kernel[@]}" "${PACKAGES_peers[@]}" ;;
      vm) printf '%s\n' "${PACKAGES_base[@]}" "${PACKAGES_build[@]}" "${PACKAGES_vm[@]}" kmod ;;
      dev) printf '%s\n' "${PACKAGES_base[@]}" "${PACKAGES_node[@]}" "${PACKAGES_lint[@]}" ;;
      test-cluster | demo | all)
        printf '%s\n' "${PACKAGES_base[@]}" "${PACKAGES_build[@]}" "${PACKAGES_kernel[@]}" "${PACKAGES_node[@]}" ;;
      *) die "no package area '$area'" ;;
    esac
  done | sort -u
}

package_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages AREA...: touches the network only when something is missing.
install_packages() {
  local list package missing=()
  list=$(packages_of "$@") || exit
  for package in $list; do package_installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "missing ${missing[*]}, and there is no apt-get: these scripts install on Debian 12 only"
  [ "$(id -u)" = 0 ] || die "missing Debian packages: run 'sudo apt-get install ${missing[*]}' or run this as root"
  say "installing ${missing[*]}"
  local apt=(apt-get -y -qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
  export DEBIAN_FRONTEND=noninteractive
  # The lists may be older than the archive: refresh them, and only now.
  "${apt[@]}" update >&2 || die "apt-get update failed; its message is above"
  "${apt[@]}" install --no-install-recommends "${missing[@]}" >&2 || die "apt-get install failed; its message is above"
}

# at_least FOUND NEEDED: compares dotted versions.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ]; }

# require_version PROGRAM FOUND NEEDED HINT
require_version() {
  [ -n "$2" ] || die "$1 not found; $1 $3 or newer is needed: $4"
  at_least "$2" "$3" || die "$1 $2 found at $(type -P "${5:-$1}"); $1 $3 or newer is needed: $4"
}

require_rust() {
  local found=
  [ -n "$(type -P cargo)" ] || { [ ! -x "$HOME/.cargo/bin/cargo" ] || PATH=$HOME/.cargo/bin:$PATH; }
  found=$(rustc --version 2>/dev/null | awk '{print $2}') || true
  require_version Rust "$found" $RUST_NEEDED "install it with rustup and put cargo on PATH" rustc
  [ -n "$(type -P cargo)" ] || die "rustc $found is there, but cargo is not on PATH"
}

require_go() {
  local found=
  [ -n "$(type -P go)" ] || { [ ! -x /usr/local/go/bin/go ] || PATH=/usr/local/go/bin:$PATH; }
  found=$(go env GOVERSION 2>/dev/null) || true
  require_version Go "${found#go}" $GO_NEEDED "install it and put go on PATH" go
}
