# shellcheck shell=bash
# Arguments that dev/control-plane, dev/cluster and dev/s3 share: COMMAND [--name NAME] [...].

# parse_cli ARGUMENTS...: sets COMMAND, the name's state and REST; each script's own options are in REST.
parse_cli() {
  local name=default
  COMMAND=; REST=()
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) help; exit 0 ;;
      --name) [ $# -ge 2 ] || usage_error "--name needs a value"; name=$2; shift 2 ;;
      --name=*) name=${1#--name=}; shift ;;
      *) if [ -z "$COMMAND" ]; then COMMAND=$1; else REST+=("$1"); fi; shift ;;
    esac
  done
  [ -n "$COMMAND" ] || { help >&2; exit 2; }
  select_state "$name"
}
no_more_arguments() { [ ${#REST[@]} = 0 ] || usage_error "unexpected argument '${REST[0]}'"; }

# check_kind KIND: a name is either a control plane or a cluster, for they bind to different addresses.
check_kind() {
  local kind
  kind=$(cat "$S/kind" 2>/dev/null) || return 0
  [ "$kind" = "$1" ] || die "--name $NAME is already a $kind: choose another name, or run 'dev/$kind down --name $NAME'"
}

# begin_up KIND: locks the name, drops what an earlier boot left, and takes the index.
begin_up() {
  lock_state
  check_kind "$1"
  if ! find_index && [ -e "$S/kind" ]; then
    say "removing the stale state of $NAME (its index was freed, as by a reboot)"
    remove_all
    lock_state
  fi
  claim_index
  echo "$1" >"$S/kind"
}

require_up() {
  [ -e "$S/kind" ] && find_index || die "--name $NAME is not up; run 'dev/${1:-$PROGRAM_NAME} up --name $NAME'"
  check_kind "$1"
}

# forget_state: removes the directory and the index; the state root too, when this was the last.
forget_state() {
  kill_strays
  rm -rf --one-file-system "$S"
  release_index
  rmdir "$STATE_ROOT" 2>/dev/null || true
}
