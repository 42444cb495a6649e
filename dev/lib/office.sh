# shellcheck shell=bash
# A small office: one switch, one desk, two servers, each in a network namespace of its own, with real programs
# talking. The switch mirrors the desk's port into the cable that leads to the sensor's NIC.
#
#   desk 192.0.2.11 ──┐
#   web  192.0.2.21 ──┤ switch ──(mirror of the desk's port)──► MIRROR_PEER ══ sensor's NIC
#   files 192.0.2.22 ─┘
#
# Callers have set S (a directory for pids and logs) and sourced process.sh.

DESK=192.0.2.11 WEB=192.0.2.21 FILES=192.0.2.22
OFFICE_HOSTS=(desk web files)
# A cable keeps the order of the frames in each direction. A virtual one does so only while all that sends and
# receives runs on the same CPU: each CPU has a queue of its own.
OFFICE_CPU=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)

office_ns() { echo "trawl-office-$1"; }
# in_office HOST COMMAND...
in_office() { local ns; ns=$(office_ns "$1"); shift; taskset -c "$OFFICE_CPU" nsenter --net="/run/netns/$ns" "$@"; }
# office_program NAME HOST COMMAND...: the same, in the background.
office_program() {
  local name=$1 ns
  ns=$(office_ns "$2"); shift 2
  spawn "office-$name" taskset -c "$OFFICE_CPU" nsenter --net="/run/netns/$ns" "$@"
}

# plug HOST ADDRESS: a cable between a host and its port of the switch. The hosts' offloads are off, so that what
# a host sends is what travels: whole frames with their checksums, none larger than the link allows.
plug() {
  local ns
  ns=$(office_ns "$1")
  ip netns add "$ns"
  ip link add eth0 netns "$ns" type veth peer name "port-$1" netns "$(office_ns switch)"
  ip -n "$ns" addr add "$2/24" dev eth0
  ip -n "$ns" link set lo up
  in_office "$1" ethtool -K eth0 tx off rx off tso off gso off gro off sg off >/dev/null 2>&1 || true
  in_office switch ethtool -K "port-$1" tx off rx off tso off gso off gro off >/dev/null 2>&1 || true
  ip -n "$(office_ns switch)" link set "port-$1" master bridge up
  ip -n "$ns" link set eth0 up
}

# office_up MIRROR_PEER: builds it and starts the everyday conversations.
office_up() {
  local switch direction
  switch=$(office_ns switch)
  office_down "$1"
  ip netns add "$switch"
  ip -n "$switch" link add bridge type bridge stp_state 0
  ip -n "$switch" link set bridge up
  plug desk "$DESK"; plug web "$WEB"; plug files "$FILES"

  ip link set "$1" netns "$switch"
  ip -n "$switch" link set "$1" up
  tc -n "$switch" qdisc add dev port-desk clsact
  for direction in ingress egress; do
    tc -n "$switch" filter add dev port-desk "$direction" protocol all u32 match u32 0 0 action mirred egress mirror dev "$1"
  done

  mkdir -p "$S/web"
  echo 'The minutes of the last meeting.' >"$S/web/index.html"
  office_program web web busybox httpd -f -p "$WEB:80" -h "$S/web"
  office_program dns web dnsmasq --keep-in-foreground --conf-file=/dev/null \
    --pid-file= --user=root --no-resolv --no-hosts --listen-address="$WEB" --bind-interfaces --address="/intranet.example/$WEB"
  wait_for 10 "the web server of the office" office-web in_office desk curl -fsS -m 2 "http://$WEB/"
  wait_for 10 "the name server of the office" office-dns in_office desk busybox nslookup -type=a intranet.example "$WEB"
  office_program browser desk bash -c \
    "while sleep 0.2; do curl -fsS -m 2 -o /dev/null http://$WEB/; done"
  office_program resolver desk bash -c \
    "while sleep 0.2; do busybox nslookup -type=a intranet.example $WEB >/dev/null; done"
}

# office_transfer FILE PORT: sends a file from the desk to the file server, and checks that it arrived whole.
office_transfer() {
  rm -f "$S/received"
  office_program files files socat -u "TCP-LISTEN:$2,bind=$FILES" "CREATE:$S/received"
  wait_for 10 "the file server of the office" office-files listening files "$2"
  in_office desk socat -u "FILE:$1" "TCP:$FILES:$2"
  for _ in {1..100}; do
    cmp -s "$1" "$S/received" && break
    sleep 0.05
  done
  stop_process office-files
  cmp "$1" "$S/received"
}
listening() { [ -n "$(in_office "$1" ss -Hltn "sport = :$2")" ]; }

# office_down MIRROR_PEER: pulls the cable first, so that it outlives the switch.
office_down() {
  local host program
  for program in resolver browser files dns web; do stop_process "office-$program"; done
  if [ -e "/run/netns/$(office_ns switch)" ] && ip -n "$(office_ns switch)" link show "$1" >/dev/null 2>&1; then
    ip -n "$(office_ns switch)" link set "$1" netns $$
    ip link set "$1" up
  fi
  for host in "${OFFICE_HOSTS[@]}" switch; do
    [ ! -e "/run/netns/$(office_ns "$host")" ] || ip netns delete "$(office_ns "$host")"
  done
}
