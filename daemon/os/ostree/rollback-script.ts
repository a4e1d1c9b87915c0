import path from 'node:path';
import { shellWords } from '../os-command.ts';
import type { OstreeDeployment } from './deployments.ts';
import { deployCommand } from './ostree.ts';

interface RollbackPlaces {
  /** The physical root as the host's own commands name it to ostree, and where they see it. */
  readonly commandSysroot: string;
  readonly sysroot: string;
}

/**
 * The commands by which a host makes a deployment that it no longer runs the next boot, with the kernel arguments and the
 * origin that it had. ostree has no command that boots it as it is (before 2024), so it is deployed again.
 *
 * ostree merges /etc from what runs by then, in which files that were Shale's are the other image's own; so these are
 * taken from the deployment's former /etc, each whole or not at all.
 *
 * @param deployment to go back to. @param keep absolute paths below /etc.
 */
export function ostreeRollbackScript(
  { commandSysroot, sysroot }: RollbackPlaces,
  { osName, id, commit, kernelArguments }: OstreeDeployment,
  keep: readonly string[],
): string {
  const stateroot = path.posix.join(sysroot, 'ostree/deploy', osName, 'deploy');
  const former = path.posix.join(stateroot, id);
  const deploy = deployCommand(commandSysroot, {
    osName,
    ref: commit,
    originFile: `${former}.origin`,
    kernelArguments,
    retain: true,
  });
  const names = keep.filter((name) => name.startsWith('/etc/'));
  return `stateroot=${shellWords([stateroot])}
former=${shellWords([former])}
# $1: the path below /etc that is to be as it was.
as_before() {
  if [ -d "$former$1" ] && [ ! -L "$former$1" ]; then
    mkdir -p "$next$1"
  elif [ -e "$former$1" ] || [ -L "$former$1" ]; then
    mkdir -p "$next\${1%/*}" && cp -a "$former$1" "$next$1.shale-new" && mv -fT "$next$1.shale-new" "$next$1"
  elif [ ! -d "$next$1" ]; then
    rm -f "$next$1"
  fi
}
[ -d "$former" ] && ${shellWords(deploy)} || return 1
id=$(${shellWords(['ostree', 'admin', 'status', `--sysroot=${commandSysroot}`])} |
  sed -n 's/^[* ] [^ ]* \\([0-9a-f]*\\.[0-9]*\\).*/\\1/p' | head -n 1)
next=$stateroot/$id
[ -n "$id" ] && [ -d "$next/etc" ] || return 1
[ -w "$next/etc" ] || mount -o remount,rw ${shellWords([sysroot])} || return 1
${names.map((name) => `as_before ${shellWords([name])} || return 1\n`).join('')}`;
}
