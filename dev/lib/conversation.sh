# shellcheck shell=bash
# Proves what a capture file holds, against what the sender's own interface saw.

# frames FILE FILTER...: one line of text per frame: its first line's decoding and all its bytes, without time.
frames() {
  local file=$1; shift
  tcpdump -r "$file" -nn -t -S -xx "$@" 2>/dev/null | awk '/^\t0x/ { sub(/^\t0x[0-9a-f]+: */, ""); gsub(/ /, ""); hex = hex $0; next }
    { if (hex != "") print hex; hex = "" } END { if (hex != "") print hex }'
}
count_frames() { frames "$@" | wc -l; }

# same_conversation REFERENCE CAPTURE FILTER ADDRESS: fails with the reason unless the capture holds the frames of the
# reference that match FILTER and nothing else. Frames of one direction must be in the same order; between the
# directions the order depends on where one stands: the sender acknowledges a frame after the switch has seen the next.
same_conversation() {
  local reference=$1 capture=$2 filter=$3 address=$4 direction all foreign
  all=$(count_frames "$capture")
  foreign=$(count_frames "$capture" not \( "$filter" \))
  [ "$all" != 0 ] || { say "the capture holds no packet"; return 1; }
  [ "$foreign" = 0 ] || { say "the capture holds $foreign packets that do not match '$filter'"; return 1; }
  for direction in src dst; do
    if ! diff <(frames "$reference" "($filter) and $direction host $address") \
      <(frames "$capture" "$direction host $address") >"$S/difference"; then
      say "the packets with $direction host $address differ: $(count_frames "$reference" "($filter) and $direction host $address") at the sender, $(count_frames "$capture" "$direction host $address") in the capture"
      say "first difference: $(sed -n 2p "$S/difference" | cut -c1-160)"
      return 1
    fi
    printf '  %-3s host %s: %5d packets at the sender, %5d in the capture, equal byte for byte and in order\n' "$direction" "$address" \
      "$(count_frames "$reference" "($filter) and $direction host $address")" "$(count_frames "$capture" "$direction host $address")"
  done
}
