import { watchdogPaths } from './watchdog-files.ts';

export interface Watch {
  /** The deployment that the watchdog may roll back from, and no other. */
  readonly deployment: string;
  /** How long after boot a daemon has to be there. */
  readonly limitSeconds: number;
  /** OsBackend.rollbackScript */
  readonly rollbackScript: string;
  /** OsBackend.bootScript */
  readonly bootScript: string;
}

/**
 * How often a deployment in which no daemon starts is rolled back at most, if the bootloader boots it again each time.
 */
const MOST_TRIES = 3;

/**
 * The whole wait is at most so many limits, however long the API server is away: a broken network looks like that, too.
 */
const LONGEST_IN_LIMITS = 4;

/** The kubelet's own name first; then those of distributions whose one service is the kubelet, too. */
const KUBELETS = ['kubelet', 'k3s', 'k3s-agent', 'rke2-server', 'rke2-agent', 'k0scontroller', 'k0sworker'];

/** Without its container runtime a kubelet ends again, or never starts: then the runtime's log has the cause. */
const RUNTIMES = ['containerd', 'crio', 'docker', 'cri-docker'];

/**
 * Where kubelets keep the address of the API server: kubeadm's; OpenShift's and most clouds'; those of distributions.
 */
const KUBECONFIGS = [
  '/etc/kubernetes/kubelet.conf',
  '/var/lib/kubelet/kubeconfig',
  '/var/lib/rancher/k3s/agent/kubelet.kubeconfig',
  '/var/lib/rancher/rke2/agent/kubelet.kubeconfig',
  '/var/lib/k0s/kubelet.conf',
];

/** Not ordered after anything that a broken system may wait for, such as the network or basic.target. */
export const watchdogUnit = `[Unit]
Description=Boots the former operating system where Shale's daemon does not come up in this one
DefaultDependencies=no
After=local-fs.target
Conflicts=shutdown.target
Before=shutdown.target

[Service]
ExecStart=/bin/sh ${watchdogPaths.script}
Restart=on-failure
RestartSec=60
PrivateMounts=yes
`;

/** What decides how long to wait: of what is seen of the host and of the API server, without a look at either. */
const DECISIONS = `
# Whether time counts: not while the node could start a daemon and the API server gives it no pods.
# $1: the kubelet; $2: the container runtime: active, inactive, none. $3: the API server: answers, silent, unknown.
counts() {
  case "$1 $2 $3" in
    'active active silent' | 'active none silent') return 1 ;;
  esac
}
# $1: seconds since the beginning. $2: those of them that do not count. Whether to wait on.
waits() { [ $(($1 - $2)) -lt "$limit" ] && [ "$1" -lt "$longest" ]; }
`;

const OBSERVATIONS = `uptime() { read -r up _ </proc/uptime && echo "\${up%%.*}"; }
knows_booted() { [ -n "$(booted)" ]; }
# The first of these units that the host has.
present() {
  for unit in "$@"; do
    state=$(systemctl show --property=LoadState --value "$unit.service")
    if [ -n "$state" ] && [ "$state" != not-found ]; then
      echo "$unit.service"
      return
    fi
  done
}
kubelet() { present ${KUBELETS.join(' ')}; }
runtime() { present ${RUNTIMES.join(' ')}; }
state() {
  if [ -z "$1" ]; then echo none; elif systemctl is-active --quiet "$1"; then echo active; else echo inactive; fi
}
# The API server's address, as the kubelet has it.
server() {
  for file in ${KUBECONFIGS.join(' ')}; do
    [ -r "$file" ] || continue
    sed -n 's/^ *server: *"\\{0,1\\}\\([^" ]*\\).*/\\1/p' "$file" | head -n 1
    return
  done
}
# An answer is enough, also one that refuses. Without a program that can ask nothing is known.
# $1: the address.
api() {
  case "$1" in
    http://* | https://*) ;;
    *) echo unknown && return ;;
  esac
  if command -v curl >/dev/null; then
    case "$(curl -sk --noproxy '*' --max-time 4 -o /dev/null -w '%{http_code}' "$1/livez")" in
      000 | 5??) echo silent ;;
      *) echo answers ;;
    esac
  elif command -v bash >/dev/null; then
    address=\${1#*://}
    address=\${address%%/*}
    port=\${address##*:}
    host=\${address%":$port"}
    [ "$host" != "$address" ] || port=443
    host=\${host#[}
    if timeout 4 bash -c ': <"/dev/tcp/$0/$1"' "\${host%]}" "$port" 2>/dev/null; then echo answers; else echo silent; fi
  else
    echo unknown
  fi
}
`;

const PERSIST = `
# Another process may hold the lock of what it needs.
persist() {
  n=0
  until "$@"; do
    n=$((n + 1))
    [ "$n" -lt 10 ] || return 1
    sleep 15
  done
}
`;

/** The record of a rollback says what did not start, with the last lines of its log. */
const RECORD = `# $1: how often it has rolled back by now. A file is there whole or not at all.
tell() {
  reason=DaemonNeverStarted
  kubelet=$(kubelet)
  [ "$(state "$kubelet")" != inactive ] || reason=KubeletNeverStarted
  runtime=$(runtime)
  [ "$(state "$runtime")" != active ] || runtime=
  silent=\${runtime:-$kubelet}
  within=$limit
  [ "$away" -eq 0 ] || within=$elapsed
  {
    echo "deployment $deployment"
    echo "bootID $(cat /proc/sys/kernel/random/boot_id)"
    echo "reason $reason"
    echo "unit $kubelet"
    echo "runtime $runtime"
    echo "limitSeconds $within"
    echo "awaySeconds $away"
    echo "tries $1"
    echo "at $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo
    [ -z "$silent" ] || journalctl --boot --unit="$silent" --lines=10 --output=cat --no-pager 2>/dev/null
  } >"$mark.new" && sync && mv -f "$mark.new" "$mark" && sync
}

`;

/** The loop ends when the daemon starts, or when the counted time has passed. */
const WAIT = `mkdir -p "\${since%/*}"
[ -s "$since" ] || echo "$(uptime) 0" >"$since"
read -r began away <"$since"
now=$(uptime)
elapsed=$((now - began))
while waits "$elapsed" "$away"; do
  [ ! -e "$alive" ] || exit 0
  before=$now
  counted=yes
  counts "$(state "$(kubelet)")" "$(state "$(runtime)")" "$(api "$(server)")" || counted=no
  sleep 2
  now=$(uptime)
  if [ "$counted" = no ]; then
    away=$((away + now - before))
    echo "$began $away" >"$since"
  fi
  elapsed=$((now - began))
done
`;

/**
 * What follows when no daemon came up: the record first, so that a reboot at any moment leaves the reason behind. A
 * rollback that reported a failure may have done its work, and image tools that are asked again swap the deployments
 * back.
 */
const ROLL_BACK = `persist knows_booted || exit 1
# An /etc may be carried on to other deployments.
[ "$(booted)" = "$deployment" ] || exit 0
tries=0
told=
if grep -qxs "deployment $deployment" "$mark"; then
  tries=$(sed -n 's/^tries \\([0-9]\\)$/\\1/p' "$mark" | head -n 1)
  told=$(sed -n 's/^bootID //p' "$mark" | head -n 1)
fi
if [ "$told" != "$(cat /proc/sys/kernel/random/boot_id)" ]; then
  if [ "\${tries:-0}" -ge ${MOST_TRIES} ]; then
    echo "rolled back \${tries} times, and is here again: stays"
    exit 0
  fi
  persist tell $((\${tries:-0} + 1)) || exit 1
fi
[ ! -e "$alive" ] || exit 0
echo "no daemon of Shale's in $elapsed s: rolls back to what ran before"
back_once() { [ "$(next)" != "$deployment" ] || back; }
persist back_once || exit 1
sync
# Where a root is prepared for a soft reboot, systemctl would make one of it.
export SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT=1
systemctl reboot --message='shale: rolling back to the previous deployment because no daemon started' || systemctl reboot --force
`;

/**
 * @returns the watchdog's program: a POSIX shell, systemd and the tool that keeps the host's operating system are all
 *   it needs. Seconds are counted by a clock that no one sets, from when it was first started in the boot.
 */
export function watchdogScript({ deployment, limitSeconds, rollbackScript, bootScript }: Watch): string {
  return `# Written by Shale before it rebooted into the deployment below, and taken away when that update is over.
set -u
umask 077
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
deployment=${deployment}
limit=${limitSeconds}
longest=${limitSeconds * LONGEST_IN_LIMITS}
alive=${watchdogPaths.alive}
since=${watchdogPaths.since}
mark=${watchdogPaths.mark}
${DECISIONS}
${bootScript}${OBSERVATIONS}${PERSIST}back() {
${rollbackScript}
}
${RECORD}${WAIT}${ROLL_BACK}`;
}

/** @returns the watchdog's files by path, in the order in which to write them: what starts it comes last. */
export function watchdogFiles(watch: Watch): ReadonlyMap<string, string> {
  return new Map([
    [watchdogPaths.script, watchdogScript(watch)],
    [watchdogPaths.unit, watchdogUnit],
  ]);
}
