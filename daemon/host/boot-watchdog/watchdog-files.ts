import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../../api/names.ts';
import { removeRecord } from '../../records/durable-json.ts';
import { ignoreMissing } from '../../tree/tree-entry.ts';

/** The unit of the host that rolls back by itself where no daemon starts. */
export const WATCHDOG_UNIT = 'shale-boot-watchdog.service';

const UNITS = '/etc/systemd/system';

/** Where the watchdog has its things on the host. */
export const watchdogPaths = {
  script: `${UNITS}/shale-boot-watchdog.sh`,
  unit: `${UNITS}/${WATCHDOG_UNIT}`,
  wants: `${UNITS}/multi-user.target.wants`,
  /** What systemd starts it by. */
  link: `${UNITS}/multi-user.target.wants/${WATCHDOG_UNIT}`,
  /** The daemon's sign of life in this boot. */
  alive: '/run/shale/daemon',
  /** When it began to wait in this boot. */
  since: '/run/shale/boot-watchdog',
  /** What it has done, for the daemon of the former deployment (readMark). */
  mark: `${nodePaths.state}/boot-watchdog`,
} as const;

export interface Watch {
  /** The deployment that the watchdog may go back from, `<commit>.<serial>`, and no other. */
  readonly deployment: string;
  /** How long after boot a daemon has to be there. */
  readonly limitSeconds: number;
  /** OsBackend.rollbackScript */
  readonly rollbackScript: string;
}

/** A deployment in which no daemon comes up is left at most so often, where the bootloader brings it back each time. */
const MOST_TRIES = 3;

/** The kubelet's own name first; then those of distributions whose one service is the kubelet, too. */
const KUBELETS = ['kubelet', 'k3s', 'k3s-agent', 'rke2-server', 'rke2-agent', 'k0scontroller', 'k0sworker'];

/** Without its container runtime a kubelet ends again, or never starts: then the runtime's log has the cause. */
const RUNTIMES = ['containerd', 'crio', 'docker', 'cri-docker'];

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

/**
 * @returns the watchdog's program: a POSIX shell, systemd and the tool that keeps the host's operating system are all it
 *   needs. Seconds are counted by a clock that no one sets, from when it was first started in the boot.
 */
export function watchdogScript({ deployment, limitSeconds, rollbackScript }: Watch): string {
  return `# Written by Shale before it rebooted into the deployment below, and taken away when that update is over.
set -u
umask 077
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
deployment=${deployment}
limit=${limitSeconds}
alive=${watchdogPaths.alive}
since=${watchdogPaths.since}
mark=${watchdogPaths.mark}

uptime() { read -r up _ </proc/uptime && echo "\${up%%.*}"; }
booted() { ostree admin status --sysroot=/ | sed -n 's/^\\* [^ ]* \\([0-9a-f]*\\.[0-9]*\\).*/\\1/p'; }
next() {
  ostree admin status --sysroot=/ | grep -v '(staged)' |
    sed -n 's/^[* ] [^ ]* \\([0-9a-f]*\\.[0-9]*\\).*/\\1/p' | head -n 1
}
knows_booted() { [ -n "$(booted)" ]; }
# Another process may hold the lock of what it needs.
persist() {
  n=0
  until "$@"; do
    n=$((n + 1))
    [ "$n" -lt 10 ] || return 1
    sleep 15
  done
}
back() {
${rollbackScript}
}
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
# $1: how often it has gone back by now. A file is there whole or not at all.
tell() {
  reason=DaemonNeverStarted
  kubelet=$(present ${KUBELETS.join(' ')})
  [ -z "$kubelet" ] || systemctl is-active --quiet "$kubelet" || reason=KubeletNeverStarted
  runtime=$(present ${RUNTIMES.join(' ')})
  if [ -n "$runtime" ] && systemctl is-active --quiet "$runtime"; then runtime=; fi
  silent=\${runtime:-$kubelet}
  {
    echo "deployment $deployment"
    echo "bootID $(cat /proc/sys/kernel/random/boot_id)"
    echo "reason $reason"
    echo "unit $kubelet"
    echo "runtime $runtime"
    echo "limitSeconds $limit"
    echo "tries $1"
    echo "at $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo
    [ -z "$silent" ] || journalctl --boot --unit="$silent" --lines=10 --output=cat --no-pager 2>/dev/null
  } >"$mark.new" && sync && mv -f "$mark.new" "$mark" && sync
}

mkdir -p "\${since%/*}"
[ -s "$since" ] || uptime >"$since"
began=$(cat "$since")
while [ $(($(uptime) - began)) -lt "$limit" ]; do
  [ ! -e "$alive" ] || exit 0
  sleep 2
done
persist knows_booted || exit 1
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
    echo "went back \${tries} times, and is here again: stays"
    exit 0
  fi
  persist tell $((\${tries:-0} + 1)) || exit 1
fi
[ ! -e "$alive" ] || exit 0
echo "no daemon of Shale's in $limit s: goes back to what ran before"
if [ "$(next)" = "$deployment" ]; then persist back || exit 1; fi
sync
# Where a root is prepared for a soft reboot, systemctl would make one of it.
export SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT=1
systemctl reboot --message='shale: rolling back to the previous deployment because no daemon started' || systemctl reboot --force
`;
}

/** @returns the watchdog's files by path, in the order in which to write them: what starts it comes last. */
export function watchdogFiles(watch: Watch): ReadonlyMap<string, string> {
  return new Map([
    [watchdogPaths.script, watchdogScript(watch)],
    [watchdogPaths.unit, watchdogUnit],
  ]);
}

/** Why the host rolled back by itself, as the reason of a condition. */
type WatchdogReason = 'KubeletNeverStarted' | 'DaemonNeverStarted';

/** What the boot watchdog has left on the disk: from which deployment the host went back, in which boot, and why. */
export interface WatchdogMark {
  /** `<commit>.<serial>` */
  readonly deployment: string;
  /** The kernel's id of the boot in which no daemon came up. */
  readonly bootID: string;
  readonly reason: WatchdogReason;
  /** In words, with the last lines of the unit that is to blame. */
  readonly why: string;
}

/** What a unit said last stands in a status and an event, for everybody to read: no more of it than helps. */
const LAST_CHARACTERS = 1_000;

/** @returns what a mark says; undefined for a text that is none. */
export function parseMark(text: string): WatchdogMark | undefined {
  const end = text.indexOf('\n\n');
  const header = end < 0 ? text : text.slice(0, end);
  const fields = new Map(header.split('\n').map((line) => splitOnce(line)));
  const [deployment, bootID, reason] = ['deployment', 'bootID', 'reason'].map((name) => fields.get(name));
  if (!deployment || !bootID || (reason !== 'KubeletNeverStarted' && reason !== 'DaemonNeverStarted')) {
    return undefined;
  }
  const said = end < 0 ? '' : lastWords(text.slice(end));
  return {
    deployment,
    bootID,
    reason,
    why: `${whatHappened(reason, fields)}; the host rolled back by itself${said === '' ? '' : `: ${said}`}`,
  };
}

function whatHappened(reason: WatchdogReason, fields: ReadonlyMap<string, string>): string {
  const [unit = '', runtime = ''] = [fields.get('unit'), fields.get('runtime')];
  const limit = `within ${fields.get('limitSeconds') ?? '?'} s of boot`;
  if (reason === 'KubeletNeverStarted') {
    return runtime === ''
      ? `${unit} was not running ${limit}, so no daemon could start`
      : `${runtime} was not running ${limit}, so neither ${unit} nor a daemon could start`;
  }
  if (runtime !== '') return `no daemon started ${limit}, because ${runtime} was not running`;
  return `no daemon started ${limit}${unit === '' ? '' : `, although ${unit} was running`}`;
}

/** @returns the end of a log in one line: as many whole lines as are shown, or the last words of the last one. */
function lastWords(log: string): string {
  const lines = log
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const last = lines.pop();
  if (last === undefined) return '';
  let said = last.length <= LAST_CHARACTERS ? last : `…${last.slice(-LAST_CHARACTERS).replace(/^\S+/, '')}`;
  for (const line of lines.toReversed()) {
    const longer = `${line}; ${said}`;
    if (longer.length > LAST_CHARACTERS) break;
    said = longer;
  }
  return said;
}

function splitOnce(line: string): [string, string] {
  const [key = '', ...value] = line.split(' ');
  return [key, value.join(' ')];
}

/** @param root the running root. @returns what the watchdog has left; undefined where it has done nothing. */
export async function readMark(root: string): Promise<WatchdogMark | undefined> {
  const text = await readFile(path.join(root, watchdogPaths.mark), 'utf8').catch(ignoreMissing);
  return text === undefined ? undefined : parseMark(text);
}

/** Removes it durably. None there: nothing done. */
export async function removeMark(root: string): Promise<void> {
  await removeRecord(path.join(root, watchdogPaths.mark));
}
