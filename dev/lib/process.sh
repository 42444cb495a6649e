# shellcheck shell=bash
# Background processes that survive the script, found again by pid, start time and boot.

boot_id() { cat /proc/sys/kernel/random/boot_id; }
# Start time of a pid in clock ticks since boot: field 22 of stat, counted after the name that may hold spaces.
start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
process_state() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f1; }

record_pid() { mkdir -p "$S/pids"; echo "$2 $(start_time "$2") $(boot_id)" >"$S/pids/$1"; }

# pid_of NAME: prints the pid if that very process still runs; a reused pid has another start time.
pid_of() {
  local pid start boot
  read -r pid start boot 2>/dev/null <"$S/pids/$1" || return 1
  [ "$boot" = "$(boot_id)" ] && [ -n "$start" ] && [ "$(start_time "$pid")" = "$start" ] || return 1
  [ "$(process_state "$pid")" != Z ] || return 1
  echo "$pid"
}
alive() { pid_of "$1" >/dev/null 2>&1; }

# spawn NAME COMMAND...: starts a process in a session of its own, output in $S/logs/NAME.log; keeps a living one.
spawn() {
  local name=$1; shift
  alive "$name" && return 0
  mkdir -p "$S/logs" "$S/pids"
  [ ! -e "$S/logs/$name.log" ] || mv "$S/logs/$name.log" "$S/logs/$name.previous.log"
  # The locks must not be inherited: a daemon would hold them for ever.
  setsid "$@" >"$S/logs/$name.log" 2>&1 </dev/null 8<&- 9<&- &
  record_pid "$name" $!
}

# stop_process NAME [SECONDS]: TERM, then KILL; forgets the pid file.
stop_process() {
  local name=$1 limit=${2:-10} pid i
  if pid=$(pid_of "$name"); then
    kill -TERM "$pid" 2>/dev/null || true
    for ((i = 0; i < limit * 20; i++)); do
      alive "$name" || break
      sleep 0.05
    done
    ! alive "$name" || kill -KILL "$pid" 2>/dev/null || true
    for ((i = 0; i < 100; i++)); do
      alive "$name" || break
      sleep 0.05
    done
  fi
  rm -f "$S/pids/$name"
}

# why NAME: prints the log line that tells why it failed: the last fatal or error line, else the last line.
why() {
  local log=$S/logs/$1.log line
  [ -s "$log" ] || { say "$1 wrote nothing to $log"; return 0; }
  line=$(grep -E '^[FE][0-9]{4} |"level":"(fatal|error|panic)"|level=(fatal|error)|^(Error|error|panic|fatal)' "$log" | tail -1 || true)
  [ -n "$line" ] || line=$(tail -1 "$log")
  say "$1 says: ${line:0:600}"
  say "whole log: $log"
}

# kill_strays: ends our servers that still name this state directory although their pid files are gone, as when
# somebody deleted the directory. Only the programs that we start are looked at.
kill_strays() {
  local p argv word program
  for p in /proc/[0-9]*; do
    mapfile -d '' -t argv 2>/dev/null <"$p/cmdline" || continue
    program=${argv[0]:-}
    case ${program##*/} in
      etcd | kube-* | kubelet | containerd | versitygw | unshare | nsenter) ;;
      *) continue ;;
    esac
    for word in "${argv[@]}"; do
      case $word in
        "$S" | "$S"/* | *="$S"/* | *=unix://"$S"/*) kill -KILL "${p#/proc/}" 2>/dev/null || true; break ;;
      esac
    done
  done
}
