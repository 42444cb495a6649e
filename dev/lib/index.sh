# shellcheck shell=bash
# One small number per name, from which all its ports, subnets and link names follow.

MAX_INDEX=99

# Sets INDEX and what follows from it. $1 = the number.
use_index() {
  INDEX=$1
  API_PORT=$((26400 + INDEX * 10)); ETCD_PORT=$((API_PORT + 1)); ETCD_PEER_PORT=$((API_PORT + 2))
  KCM_PORT=$((API_PORT + 3)); SCHEDULER_PORT=$((API_PORT + 4)); S3_PORT=$((API_PORT + 5))
  HOST_IP=10.77.$INDEX.1; NODE_IP=10.77.$INDEX.2
  POD_CIDR=10.78.$INDEX.0/24; SERVICE_CIDR=10.79.$INDEX.0/24; API_SERVICE_IP=10.79.$INDEX.1
  HOST_LINK=trawl-n$INDEX; MIRROR_PEER=trawl-m$INDEX
}

# find_index: sets INDEX when this state directory owns one.
find_index() {
  local f
  for f in "$INDEX_DIR"/[0-9]*; do
    if [ -f "$f" ] && [ "$(cat "$f")" = "$S" ]; then
      use_index "${f##*/}"; return 0
    fi
  done
  return 1
}

# find_lost_index: the index that this state once had, if nobody has taken it since (the register was emptied).
find_lost_index() {
  local i
  i=$(cat "$S/index" 2>/dev/null) && [ ! -e "$INDEX_DIR/$i" ] && use_index "$i"
}

index_is_free() {
  local i=$1 port
  [ ! -e "$INDEX_DIR/$i" ] || return 1
  for port in 0 1 2 3 4 5; do
    [ -z "$(ss -Hltn "sport = :$((26400 + i * 10 + port))")" ] || return 1
  done
  [ ! -e "/sys/class/net/trawl-n$i" ] && [ ! -e "/sys/class/net/trawl-m$i" ] || return 1
  [ -z "$(ip -4 route show root 10.77."$i".0/24)$(ip -4 route show root 10.78."$i".0/24)$(ip -4 route show root 10.79."$i".0/24)" ]
}

claim_index_locked() {
  local i
  ! find_index || return 0
  mkdir -p "$INDEX_DIR"
  for ((i = 1; i <= MAX_INDEX; i++)); do
    index_is_free "$i" || continue
    echo "$S" >"$INDEX_DIR/$i"; echo "$i" >"$S/index"; use_index "$i"; return 0
  done
  die "no free index of 1..$MAX_INDEX: each names a port range and three subnets; see $INDEX_DIR and bring down what you do not need"
}
claim_index() { with_machine_lock claim_index_locked; }

release_index_locked() {
  ! find_index || rm -f "$INDEX_DIR/$INDEX"
  rmdir "$INDEX_DIR" 2>/dev/null || true
}
release_index() { with_machine_lock release_index_locked; }
