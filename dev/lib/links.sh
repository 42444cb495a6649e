# shellcheck shell=bash
# The network of a node: its namespace, the link to the host, and the mirror NIC whose far end is outside.

MIRROR_IFACE=mirror0
in_netns() { nsenter --net="/run/netns/$NETNS" "$@"; }

# No address of its own may appear on a mirror, or its neighbour discovery would be captured as traffic.
quiet_link() {
  $1 sysctl -qew "net.ipv6.conf.$2.disable_ipv6=1"
  $1 ip link set dev "$2" up
}

# A merged or half-checksummed frame is none that ever was on a wire.
no_offloads() {
  local feature
  for feature in rx tx sg tso gso gro rxvlan txvlan; do
    $1 ethtool -K "$2" $feature off >/dev/null || die "cannot turn off $feature on $2"
  done
}

links_up() {
  if [ ! -e "/run/netns/$NETNS" ]; then ip netns add "$NETNS"; fi
  in_netns sysctl -qw net.ipv4.ip_forward=1
  # Not there when the kernel runs without IPv6.
  in_netns sysctl -qew net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
  in_netns ip link set lo up
  if [ ! -e "/sys/class/net/$HOST_LINK" ]; then
    ip link add "$HOST_LINK" type veth peer name eth0 netns "$NETNS"
    quiet_link '' "$HOST_LINK"
    ip addr add "$HOST_IP/24" dev "$HOST_LINK"
    in_netns ip addr add "$NODE_IP/24" dev eth0
    in_netns ip link set eth0 up
    in_netns ip route add default via "$HOST_IP"
    # From the host to the pods and to the ClusterIPs of this cluster, which kube-proxy resolves on the node.
    ip route add "$POD_CIDR" via "$NODE_IP"
    ip route add "$SERVICE_CIDR" via "$NODE_IP"
  fi
  if [ ! -e "/sys/class/net/$MIRROR_PEER" ]; then
    ip link add "$MIRROR_PEER" numtxqueues 1 numrxqueues 1 type veth peer name $MIRROR_IFACE numtxqueues 1 numrxqueues 1 netns "$NETNS"
    quiet_link '' "$MIRROR_PEER"
    quiet_link in_netns $MIRROR_IFACE
    no_offloads '' "$MIRROR_PEER"
    no_offloads in_netns $MIRROR_IFACE
  fi
}

links_down() {
  local link
  for link in "$HOST_LINK" "$MIRROR_PEER"; do
    [ ! -e "/sys/class/net/$link" ] || ip link del "$link"
  done
  [ ! -e "/run/netns/$NETNS" ] || ip netns del "$NETNS"
}
