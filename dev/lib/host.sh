# shellcheck shell=bash
# What clusters change on the machine as a whole. The first saves it, the last puts it back.

# The kubelet sets these to its own taste for every process of the machine.
SHARED_SYSCTLS=(kernel.panic kernel.panic_on_oops vm.overcommit_memory)
# Mount points of a node (lib/node-init covers each with a directory of its own cluster).
NODE_MOUNT_POINTS=(/run/trawl /run/containerd /var/lib/kubelet /var/lib/cni /var/lib/trawl /var/log/containers /var/log/pods)
NODE_USERS=$INDEX_DIR/nodes

host_prepare_locked() {
  local d key
  mkdir -p "$NODE_USERS"
  if [ ! -e "$NODE_USERS/saved" ]; then
    # 'ip netns add' turns this directory into a mount for good; remember whether it was one before.
    mountpoint -q /run/netns || echo /run/netns >"$NODE_USERS/made"
    for d in "${NODE_MOUNT_POINTS[@]}"; do
      [ -e "$d" ] || { mkdir -p "$d"; echo "$d" >>"$NODE_USERS/made"; }
    done
    for key in "${SHARED_SYSCTLS[@]}"; do echo "$key=$(sysctl -n "$key")"; done >"$NODE_USERS/saved"
  fi
  touch "$NODE_USERS/$INDEX"
}

host_restore_locked() {
  local d line
  rm -f "$NODE_USERS/$INDEX"
  [ -d "$NODE_USERS" ] || return 0
  [ -z "$(find "$NODE_USERS" -name '[0-9]*')" ] || return 0
  if [ -e "$NODE_USERS/saved" ]; then
    while read -r line; do sysctl -qw "$line"; done <"$NODE_USERS/saved"
  fi
  if [ -e "$NODE_USERS/made" ]; then
    while read -r d; do
      # Somebody else's namespaces or files keep their directory.
      if [ "$d" = /run/netns ] && [ -z "$(ls -A /run/netns 2>/dev/null)" ]; then umount /run/netns 2>/dev/null || true; fi
      rmdir "$d" 2>/dev/null || true
    done <"$NODE_USERS/made"
  fi
  rm -rf "$NODE_USERS"
}

# cgroup_dirs: the cgroup of the node, one directory per hierarchy (v1), or the only one (v2).
cgroup_dirs() {
  local d
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    echo "/sys/fs/cgroup/$CGROUP"
  else
    for d in /sys/fs/cgroup/*/; do
      [ ! -e "$d/cgroup.procs" ] || echo "$d$CGROUP"
    done
  fi
}

cgroups_up() {
  local d f c
  while read -r d; do
    mkdir -p "$d"
    # A new v1 cpuset is empty, and an empty one takes no process.
    for f in cpuset.cpus cpuset.mems; do
      if [ -e "$d/$f" ] && [ ! -e "$d/cgroup.controllers" ] && [ -z "$(cat "$d/$f")" ]; then cat "${d%/*}/$f" >"$d/$f"; fi
    done
  done < <(cgroup_dirs)
  [ -e /sys/fs/cgroup/cgroup.controllers ] || return 0
  for d in /sys/fs/cgroup "/sys/fs/cgroup/$CGROUP"; do
    while read -r c; do echo "+$c" >"$d/cgroup.subtree_control" 2>/dev/null || true; done < <(tr ' ' '\n' <"$d/cgroup.controllers")
  done
}

cgroups_gone() {
  local d
  while read -r d; do
    [ ! -d "$d" ] || find "$d" -depth -type d -exec rmdir {} + 2>/dev/null || true
    [ ! -d "$d" ] || return 1
  done < <(cgroup_dirs)
}

# Kills what still runs in the node's cgroups: only pods of this cluster are ever put there.
cgroups_kill() {
  local d pid
  while read -r d; do
    [ -d "$d" ] || continue
    while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done < <(find "$d" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u)
  done < <(cgroup_dirs)
}
