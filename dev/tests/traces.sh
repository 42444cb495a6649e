# shellcheck shell=bash
# What a cluster could leave on the machine, as sorted lines that can be compared before and after.

# machine_traces: one line per mount, namespace, link, route, nft table, cgroup, sysctl and directory in question.
machine_traces() {
  {
    awk '{ print "mount", $5, $9 }' /proc/self/mountinfo
    ip netns list | sed 's/^/netns /; s/ (id.*//'
    ip -o link show | awk -F': ' '{ sub(/@.*/, "", $2); print "link", $2 }'
    ip -4 route show | sed 's/^/route /'
    { nft list tables 2>/dev/null || true; } | sed 's/^/nft /'
    { iptables-save 2>/dev/null || true; } | sed -n 's/^-A/iptables -A/p'
    find /sys/fs/cgroup -maxdepth 2 -type d | sed 's/^/cgroup /'
    sysctl kernel.panic kernel.panic_on_oops vm.overcommit_memory net.ipv4.ip_forward | sed 's/^/sysctl /'
    # shellcheck disable=SC2012 # only whether these fixed names are there
    ls -d /run/trawl /run/trawl-dev /run/containerd /var/lib/kubelet /var/lib/cni /var/lib/trawl /var/log/containers /var/log/pods \
      /var/log/containers/* /var/lib/containerd /etc/cni 2>/dev/null | sed 's/^/path /' || true
  } | sort -u
}

# new_traces BEFORE AFTER: what is there now and was not. With TRAWL_TEST_SHARED_MACHINE set, only what bears
# the marks of the names under test ($3, a regular expression), because others make links and mounts meanwhile.
new_traces() { comm -13 "$1" "$2" | { if [ -n "${TRAWL_TEST_SHARED_MACHINE:-}" ]; then grep -E "$3" || true; else cat; fi; }; }

# processes_of STATE_ROOT: pid and command line of each process that names it in arguments or environment.
processes_of() {
  local p
  for p in /proc/[0-9]*; do
    [ "${p#/proc/}" != $$ ] || continue
    tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -qF "$1/" && echo "${p#/proc/} $(tr '\0' ' ' <"$p/cmdline" | cut -c1-120)"
  done 2>/dev/null
  true
}

# namespaces_of_node PID: every namespace, of any kind, in which a descendant of that process lives and we do not.
namespaces_of_node() {
  local p ns
  for p in /proc/[0-9]*; do
    in_tree "${p#/proc/}" "$1" || continue
    for ns in "$p"/ns/*; do readlink "$ns"; done
  done 2>/dev/null | sort -u | comm -23 - <(for ns in /proc/self/ns/*; do readlink "$ns"; done | sort -u)
}
# in_tree PID ANCESTOR
in_tree() {
  local pid=$1
  while [ "${pid:-0}" -gt 1 ]; do
    [ "$pid" != "$2" ] || return 0
    pid=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status" 2>/dev/null)
  done
  return 1
}
# namespaces_alive FILE: those listed in FILE in which some process still lives.
namespaces_alive() {
  local ns
  for ns in /proc/[0-9]*/ns/*; do readlink "$ns"; done 2>/dev/null | sort -u | comm -12 - "$1"
}
