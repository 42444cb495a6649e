# shellcheck shell=bash
# A virtual machine with a kernel of its own. Kernel and QEMU are downloaded and unpacked, never installed.

VM_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/trawl/vm
# What is known to work; the newest of its suite takes over when the archive has it no more.
VM_KERNEL=7.3.4+deb13-amd64
VM_KERNEL_LEAST=7.3
VM_MODULES=(net/core/failover drivers/net/net_failover drivers/net/virtio_net
  drivers/dca/dca drivers/i2c/algos/i2c-algo-bit drivers/net/ethernet/intel/igb/igb)

# debian_mirror: where this machine has its Debian packages from.
debian_mirror() {
  local site
  # shellcheck disable=SC2016 # these are the words of apt
  site=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' 'Created-By: Packages' | sed -n 's/^Debian Debian //p' | head -n 1)
  [ -n "$site" ] || die "apt has no source of Debian's packages; add one to /etc/apt/sources.list and run 'apt-get update'"
  echo "$site"
}

# use_suite SUITE: sets APT to options that read this Debian suite alone, from lists of our own.
use_suite() {
  local d=$VM_CACHE/apt/$1 mirror
  mirror=$(debian_mirror) || exit
  mkdir -p "$d/lists/partial" "$d/archives/partial"
  : >"$d/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$d/sources.list"
  APT=(-o Dir::Etc::SourceList="$d/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$d/lists"
    -o Dir::State::status="$d/status" -o Dir::Cache="$d" -o Acquire::Languages=none -o APT::Sandbox::User=root
    -o Acquire::Retries=3 -o APT::Update::Post-Invoke-Success::= -o Debug::NoLocking=true)
  apt-get -qq "${APT[@]}" update >&2 || die "cannot read the packages of $1; apt's message is above"
}

# unpack DIR PACKAGE...: downloads the packages of the suite in use and unpacks them below DIR.
unpack() {
  local to=$1 deb; shift
  mkdir -p "$to.debs" "$to"
  (cd "$to.debs" && apt-get -qq "${APT[@]}" download "$@" >&2) || die "cannot download $*; apt's message is above"
  for deb in "$to.debs"/*.deb; do dpkg-deb -x "$deb" "$to" || die "cannot unpack $deb"; done
  rm -rf "$to.debs"
}

# kernel_version: the pinned one if the suite has it, else its newest.
kernel_version() {
  local all
  all=$(apt-cache "${APT[@]}" pkgnames linux-binary- | sed -n 's/^linux-binary-\([0-9].*+deb13-amd64\)$/\1/p' | sort -V)
  ! grep -qx "$VM_KERNEL" <<<"$all" || { echo "$VM_KERNEL"; return; }
  all=$(tail -n 1 <<<"$all")
  [ -n "$all" ] && at_least "${all%%+*}" $VM_KERNEL_LEAST || die "trixie-backports has no kernel $VM_KERNEL_LEAST or newer, only '${all:-none}'"
  say "trixie-backports has no kernel $VM_KERNEL any more; taking $all"
  echo "$all"
}

# need_kernel: sets KERNEL_DIR, which has vmlinuz and the modules.
need_kernel() {
  local version work module kept
  KERNEL_DIR=$VM_CACHE/linux-$VM_KERNEL
  if [ ! -d "$KERNEL_DIR" ]; then
    use_suite trixie-backports
    version=$(kernel_version) || exit
    KERNEL_DIR=$VM_CACHE/linux-$version
  fi
  [ ! -d "$KERNEL_DIR" ] || return 0
  say "downloading Linux $version (121 MB); what is needed of it stays in $KERNEL_DIR"
  work=$(mktemp -d "$VM_CACHE/.kernel.XXXXXX") kept=$(mktemp -d "$VM_CACHE/.kept.XXXXXX")
  unpack "$work/root" "linux-binary-$version" "linux-modules-$version"
  cp "$work/root/usr/lib/modules/$version/vmlinuz" "$kept/" || die "linux-binary-$version has no vmlinuz where it used to be"
  for module in "${VM_MODULES[@]}"; do
    xz -dc "$work/root/usr/lib/modules/$version/kernel/$module.ko.xz" >"$kept/${module##*/}.ko" || die "linux-modules-$version has no module $module"
  done
  rm -rf "$work"
  mv -T "$kept" "$KERNEL_DIR" 2>/dev/null || rm -rf "$kept"
}

has_igb() { "$@" -M none -device igb,help 2>/dev/null | grep -q '^igb options'; }

# need_qemu: sets QEMU to a command that knows the igb NIC (QEMU 8.0): the machine's own, or the backport beside it.
need_qemu() {
  local codename work d
  QEMU=(qemu-system-x86_64)
  ! has_igb "${QEMU[@]}" || return 0
  # shellcheck disable=SC1091 # a file of the system
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  d=$VM_CACHE/qemu-$codename-backports
  if [ ! -d "$d" ]; then
    say "the machine's QEMU has no igb; downloading the backport into $d"
    use_suite "$codename-backports"
    work=$(mktemp -d "$VM_CACHE/.qemu.XXXXXX")
    unpack "$work/root" qemu-system-x86 qemu-system-common qemu-system-data seabios
    mv -T "$work/root" "$d" 2>/dev/null || true
    rm -rf "$work"
  fi
  QEMU=(env "QEMU_MODULE_DIR=$d/usr/lib/$(uname -m)-linux-gnu/qemu" "$d/usr/bin/qemu-system-x86_64"
    -L "$d/usr/share/qemu" -L "$d/usr/share/seabios")
  has_igb "${QEMU[@]}" || die "the QEMU in $d has no igb or does not start: $("${QEMU[@]}" -M none -device igb,help 2>&1 | head -n 2)"
}

# libpcap_alone DIR: Debian's static libpcap without its D-Bus part, for libdbus has no static form. We compile filters.
libpcap_alone() {
  rm -rf "$1"; mkdir -p "$1"
  cp "$(gcc -print-file-name=libpcap.a)" "$1/libpcap.a"
  gcc -O1 -fPIE -x c -c -o "$1/none.o" - <<'C' || return
int dbus_findalldevs(void *devices, char *error) { (void)devices; (void)error; return 0; }
void *dbus_create(const char *device, char *error, int *ours) { (void)device; (void)error; *ours = 0; return 0; }
C
  ar d "$1/libpcap.a" pcap-dbus.o && ar r "$1/libpcap.a" "$1/none.o" 2>/dev/null
}

# static_programs: builds both programs so that they run where there is no C library; prints their directory.
static_programs() {
  local target=x86_64-unknown-linux-gnu directory
  directory=$(cargo metadata --format-version 1 --no-deps --locked | jq -r .target_directory)/$target
  libpcap_alone "$directory/libpcap" >&2 || die "Debian's libpcap.a is not as expected"
  LIBPCAP_LIBDIR=$directory/libpcap RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --target $target \
    -p trawl-captured --bin trawl-captured -p trawl-traffic --bin trawl-testbed >&2 || die "the static programs were not built; cargo's message is above"
  echo "$directory/release"
}

# make_initramfs FILE PROGRAMS: everything the machine will have.
make_initramfs() {
  local root program
  root=$(mktemp -d)
  mkdir -p "$root"/{bin,dev,lib,out,proc,sys,tmp}
  cp /bin/busybox "$root/bin/"
  for program in trawl-captured trawl-testbed; do
    strip -o "$root/bin/$program" "$2/$program" || die "no program $2/$program"
  done
  cp "$KERNEL_DIR"/*.ko "$root/lib/"
  printf '%s\n' "${VM_MODULES[@]##*/}" >"$root/lib/order"
  install -m 755 "$DEV_DIR/lib/vm-init" "$root/init"
  (cd "$root" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$1" || die "the initramfs was not made"
  rm -rf "$root"
}
