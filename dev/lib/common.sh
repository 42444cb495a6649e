# shellcheck shell=bash
# Shared ground of the dev scripts: messages, names, locks, state directories and waiting.

DEV_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Where every named control plane, cluster and S3 server keeps its files.
STATE_ROOT=${TRAWL_DEV_STATE:-/var/tmp/trawl-dev}
# Machine-wide register of the indices in use. It lies in /run because a reboot frees them all.
INDEX_DIR=/run/trawl-dev

# The addresses of clusters are never behind a proxy, whatever the environment asks for.
export NO_PROXY="${NO_PROXY:+$NO_PROXY,}localhost,127.0.0.0/8,10.77.0.0/16,10.78.0.0/16,10.79.0.0/16"
export no_proxy=$NO_PROXY

say() { printf '%s: %s\n' "${PROGRAM:-dev}" "$*" >&2; }
die() { say "$*"; exit 1; }
usage_error() { say "$*"; say "see 'dev/$PROGRAM_NAME --help'"; exit 2; }
need_root() { [ "$(id -u)" = 0 ] || die "must run as root: it makes network namespaces, mounts and cgroups (try 'sudo $0')"; }

# Milliseconds since the epoch.
now_ms() { echo $(($(date +%s%N) / 1000000)); }
seconds_since() { local d=$(($(now_ms) - $1)); printf '%d.%d s' $((d / 1000)) $((d % 1000 / 100)); }

# Fails unless NAME may be used in host names, paths and namespace names.
check_name() {
  [[ $1 =~ ^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$ ]] ||
    die "--name '$1': use 1 to 15 characters of a-z, 0-9 and '-', with no '-' at either end"
}

# Sets NAME and S (its state directory). A Unix socket path holds 107 bytes; the longest suffix used below S has 32.
select_state() {
  NAME=$1; check_name "$NAME"; S=$STATE_ROOT/$NAME
  [ ${#S} -le 72 ] || die "state directory $S has ${#S} bytes, at most 72 fit in front of a Unix socket name: set TRAWL_DEV_STATE to a shorter path"
}

# Locks this name against other runs. The lock is the directory itself, so that no lock file outlives 'down'.
lock_state() {
  local held
  while :; do
    mkdir -p "$S"
    exec 9<"$S"
    flock -n 9 || { say "waiting for another run on --name $NAME"; flock 9; }
    held=$(stat -Lc %d:%i /proc/self/fd/9)
    [ "$(stat -c %d:%i "$S" 2>/dev/null)" = "$held" ] && return 0
  done
}

# Runs a command while holding the machine-wide lock (index register, shared sysctls, shared mount points).
with_machine_lock() {
  local rc=0
  exec 8</run
  flock 8
  "$@" || rc=$?
  exec 8<&-
  return $rc
}

# wait_for SECONDS WHAT PROCESS-OR-EMPTY COMMAND...: polls; gives up early when the named process is dead.
wait_for() {
  local limit=$1 what=$2 process=$3 start told=; shift 3; start=$(now_ms)
  until "$@" >/dev/null 2>&1; do
    if [ -n "$process" ] && ! alive "$process"; then
      why "$process"; die "$process ended while waiting for $what"
    fi
    if [ $(($(now_ms) - start)) -gt $((limit * 1000)) ]; then
      [ -z "$process" ] || why "$process"
      die "gave up after $limit s waiting for $what"
    fi
    if [ -z "$told" ] && [ $(($(now_ms) - start)) -gt 1000 ]; then
      say "waiting for: $what"; told=1
    fi
    sleep 0.1
  done
  say "$what ($(seconds_since "$start"))"
}

# Prints KEY=value safely quoted for 'eval' and for 'source'.
env_line() { printf '%s=%q\n' "$1" "$2"; }

# write_if_changed FILE: standard input becomes the file; an equal file is not touched, for some programs watch theirs.
write_if_changed() {
  cat >"$1.new"
  if cmp -s "$1.new" "$1"; then rm -f "$1.new"; else mv "$1.new" "$1"; fi
}
