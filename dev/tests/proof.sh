#!/usr/bin/env bash
# The demo's own proof must be able to fail: an office with a wire in place of Trawl, and captures spoilt on purpose.
# Images must be the same twice. Prints one line per law and ends with 'N passed, M failed'.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$HERE/checks.sh"
PROGRAM=dev/tests
for lib in common process packages office conversation; do
  # shellcheck disable=SC1090 # our own libraries
  . "${HERE%/tests}/lib/$lib.sh"
done
need_root
PACKAGES_kernel+=(dnsmasq-base socat)
install_packages demo

NODE=trawl-proof-$$ PEER=tproof$$ PORT=9000
FILTER="host $DESK and host $FILES and tcp port $PORT"
S=$(mktemp -d)
cleanup() {
  local program
  for program in sender wire; do stop_process "$program"; done
  office_down "$PEER"
  ip link delete "$PEER" 2>/dev/null || true
  [ ! -e "/run/netns/$NODE" ] || ip netns delete "$NODE"
  rm -rf "$S"
}
trap cleanup EXIT
[ ! -e "/run/netns/$(office_ns switch)" ] || die "the office of a demo is open: close it with 'dev/demo --down'"

record() { spawn "$1" nsenter --net="/run/netns/$2" tcpdump -i "$3" -B 16384 -s 4096 -U -w "$S/$1.pcap" "${@:4}"; }
lost() { sed -n 's/^\([0-9]*\) packets dropped by kernel/\1/p' "$S/logs/$1.log"; }

one_conversation() {
  ip netns add "$NODE"
  ip link add "$PEER" type veth peer name mirror0 netns "$NODE"
  ip link set "$PEER" up
  ip -n "$NODE" link set mirror0 up
  office_up "$PEER"
  record wire "$NODE" mirror0
  record sender "$(office_ns desk)" eth0 "$FILTER"
  head -c 1048576 /dev/urandom >"$S/file"
  sleep 1
  succeeds "a file crosses the office whole" office_transfer "$S/file" $PORT
  sleep 1
  stop_process wire; stop_process sender
  equal "neither end lost a packet" "$(lost wire) $(lost sender)" "0 0"
}

proof_of() { same_conversation "$S/sender.pcap" "$S/$1" "$FILTER" "$DESK"; }

the_proof() {
  tcpdump -r "$S/wire.pcap" -w "$S/right.pcap" "$FILTER" 2>/dev/null
  local middle
  middle=$(($(count_frames "$S/right.pcap") / 2))
  succeeds "the conversation as the mirror carried it is accepted" proof_of right.pcap
  refuses "a capture with the other conversations in it is refused" proof_of wire.pcap
  editcap -F pcap "$S/right.pcap" "$S/hole.pcap" "$middle"
  refuses "a capture that lacks one packet is refused" proof_of hole.pcap
  editcap -F pcap -r "$S/right.pcap" "$S/one.pcap" "$middle"
  mergecap -a -F pcap -w "$S/twice.pcap" "$S/right.pcap" "$S/one.pcap"
  refuses "a capture that holds one packet twice is refused" proof_of twice.pcap
  editcap -F pcap -r "$S/right.pcap" "$S/first.pcap" "1-$middle"
  editcap -F pcap -r "$S/right.pcap" "$S/last.pcap" "$((middle + 1))-1000000"
  mergecap -a -F pcap -w "$S/order.pcap" "$S/last.pcap" "$S/first.pcap"
  refuses "a capture in another order is refused" proof_of order.pcap
  editcap -F pcap -s 60 "$S/right.pcap" "$S/short.pcap"
  refuses "a capture of shortened packets is refused" proof_of short.pcap
  tcpdump -r "$S/right.pcap" -w "$S/none.pcap" 'udp' 2>/dev/null
  refuses "an empty capture is refused" proof_of none.pcap
}

after_work() {
  office_down "$PEER"
  equal "closing the office leaves no namespace" "$(find /run/netns -name 'trawl-office-*' 2>/dev/null | wc -l)" 0
  succeeds "the sensor's cable outlives the switch" ip link show "$PEER"
}

images() {
  local part
  mkdir "$S/bin"
  for part in captured operator gateway runner reporter sensor; do cp /usr/bin/jq "$S/bin/trawl-$part"; done
  succeeds "programs are packed into images" "${HERE%/tests}/images" --out "$S/a" --binaries "$S/bin"
  touch "$S/bin"/*
  succeeds "programs are packed again" "${HERE%/tests}/images" --out "$S/b" --binaries "$S/bin"
  equal "the same programs give the same digests" "$(cat "$S/a/images.env")" "$(cat "$S/b/images.env")"
  equal "every image is named by digest" "$(grep -cE '^[A-Z]+_IMAGE=localhost/trawl/[a-z]+@sha256:[0-9a-f]{64}$' "$S/a/images.env")" 6
  rm "$S/bin/trawl-runner"
  refuses "a missing program is named, not skipped" "${HERE%/tests}/images" --out "$S/c" --binaries "$S/bin"
}

one_conversation
the_proof
after_work
images
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" = 0 ]
