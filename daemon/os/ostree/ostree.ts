import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OsCommandError, type RunOsCommand, shellWords } from '../os-command.ts';
import type { OstreeDeployment } from './deployments.ts';

/**
 * The commands of ostree(1) that the backend needs, one function each: what it passes and how long it may take. ostree
 * 2022.7 (Debian 12) has all of them.
 */
export interface Ostree {
  /**
   * `ostree --version`: whether it makes a composefs of what it deploys. One that was built without, as Debian 12's,
   * deploys what demands one and says nothing.
   */
  makesComposefs(signal: AbortSignal): Promise<boolean>;
  /**
   * `ostree commit`: stores a directory as a commit and gives it the ref, as its last step. The directory is consumed.
   */
  commit(options: CommitOptions, signal: AbortSignal): Promise<void>;
  /** `ostree checkout -H`: hard links into the repository, so nothing in it may be changed in place. */
  checkout(options: CheckoutOptions, signal: AbortSignal): Promise<void>;
  /**
   * `ostree ls --checksum`: what is directly in these directories of a commit. A directory's checksum is of everything
   * below it, with its modes and labels.
   *
   * @param ref or a commit. @returns checksums by absolute path. @throws OsCommandError, also when a directory is
   *   missing.
   */
  checksums(
    ref: string,
    directories: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>>;
  /** `ostree refs --delete`; nothing is run for none. */
  deleteRefs(refs: readonly string[], signal: AbortSignal): Promise<void>;
  /** `ostree admin deploy`: makes a commit the next boot, with /etc merged now or, when staged, at shutdown. */
  deploy(options: DeployOptions, signal: AbortSignal): Promise<void>;
  /** `ostree admin undeploy`. @param index in boot order. */
  undeploy(index: number, signal: AbortSignal): Promise<void>;
  /**
   * `ostree admin prepare-soft-reboot` (ostree 2025.3): mounts the first deployment in boot order at /run/nextroot. It
   * refuses one with another kernel, initramfs or kernel arguments, and any host without composefs. What was prepared
   * before is reset. Prepared twice without that, ostree 2026.4 mounts one root on the other and can undo neither.
   */
  prepareSoftReboot(signal: AbortSignal): Promise<void>;
  /**
   * `ostree admin cleanup`: deletes what an interrupted command left, and the objects that neither a ref nor a
   * deployment needs (ostree-sysroot-cleanup.c, `ostree_sysroot_cleanup_prune_repo`).
   */
  cleanup(signal: AbortSignal): Promise<void>;
}

interface CommitOptions {
  readonly ref: string;
  readonly directory: string;
  /** An archive that is laid over the directory. */
  readonly overlay?: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The root of a tree by whose SELinux policy the files are labelled, whatever labels they have. */
  readonly selinuxPolicy?: string;
}

interface CheckoutOptions {
  readonly ref: string;
  /** Created; must not exist. */
  readonly destination: string;
  readonly subpath?: string;
}

/**
 * When a deployment becomes the next boot: at once (`written`), or on a host that ostree has booted at shutdown
 * (`staged`, by `--stage`) or only when it is staged again (`locked`, by `--lock-finalization`, which no help lists
 * before 2023.8).
 */
export type DeployMethod = 'written' | 'staged' | 'locked';

interface DeployOptions {
  readonly osName: string;
  readonly ref: string;
  readonly originFile: string;
  /** All of them, without `ostree=`. */
  readonly kernelArguments: readonly string[];
  /** Absent: `written`. */
  readonly how?: DeployMethod;
  /** Keep all other deployments (`--retain`); otherwise ostree deletes all but the booted one. */
  readonly retain?: boolean;
}

/** Commands that only read or unlink: seconds even on slow disks. */
const SHORT_MS = 120_000;
/** Commands that write or link a whole operating system, with fsync of each object. */
const LONG_MS = 1_800_000;

/** Epoch: a commit's checksum covers its time, and the same image has to give the same commit on every node. */
const COMMIT_TIME = '1970-01-01T00:00:00Z';

/**
 * @param sysroot the physical root, as the commands see it. `/` for the one that the commands' own root was booted
 *   from: only there ostree knows which deployment is booted, and can stage.
 */
export function ostree(runOnce: RunOsCommand, sysroot: string): Ostree {
  const run = retryRemount(runOnce);
  const repo = `--repo=${path.posix.join(sysroot, 'ostree/repo')}`;
  const admin = (command: string) => ['ostree', 'admin', command, `--sysroot=${sysroot}`] as const;
  return {
    makesComposefs: async (signal) => {
      const output = await run(['ostree', '--version'], { timeoutMs: SHORT_MS, signal });
      return /^ *- composefs$/m.test(output);
    },
    commit: async ({ ref, directory, overlay, metadata, selinuxPolicy }, signal) => {
      const pairs = Object.entries(metadata).map(([key, value]) => `--add-metadata-string=${key}=${value}`);
      const options = [
        ...['--consume', '--link-checkout-speedup', '--parent=none', `--timestamp=${COMMIT_TIME}`],
        ...(selinuxPolicy === undefined ? [] : [`--selinux-policy=${selinuxPolicy}`]),
      ];
      const trees = [`--tree=dir=${directory}`, ...(overlay === undefined ? [] : [`--tree=tar=${overlay}`])];
      await run(
        [
          'ostree',
          'commit',
          repo,
          `--branch=${ref}`,
          ...options,
          ...pairs,
          '--tar-autocreate-parents',
          ...trees,
        ],
        { timeoutMs: LONG_MS, signal },
      );
    },
    checkout: async ({ ref, destination, subpath }, signal) => {
      const part = subpath === undefined ? [] : [`--subpath=${subpath}`];
      await run(['ostree', 'checkout', repo, '-H', ...part, ref, destination], {
        timeoutMs: LONG_MS,
        signal,
      });
    },
    checksums: async (ref, directories, signal) => {
      const output = await run(['ostree', 'ls', repo, '--checksum', ref, ...directories], {
        timeoutMs: SHORT_MS,
        signal,
      });
      return parseChecksums(output);
    },
    deleteRefs: async (refs, signal) => {
      if (refs.length === 0) return;
      await run(['ostree', 'refs', repo, '--delete', ...refs], { timeoutMs: SHORT_MS, signal });
    },
    deploy: async (options, signal) => {
      await run(deployCommand(sysroot, options), { timeoutMs: LONG_MS, signal });
    },
    undeploy: async (index, signal) => {
      await run([...admin('undeploy'), String(index)], { timeoutMs: SHORT_MS, signal });
    },
    prepareSoftReboot: async (signal) => {
      for (const argument of ['--reset', '0'])
        await run([...admin('prepare-soft-reboot'), argument], { timeoutMs: SHORT_MS, signal });
    },
    cleanup: async (signal) => {
      await run([...admin('cleanup')], { timeoutMs: LONG_MS, signal });
    },
  };
}

/** `d00755 0 0 0 <contents> <metadata> /usr/lib`; a file has one checksum, a link's path is followed by its target. */
const LISTED = /^[d-]\d+ +\d+ +\d+ +\d+ (?<checksum>[0-9a-f]{64}(?: [0-9a-f]{64})?) (?<path>\/.*)$/;

/** @returns what `ostree ls --checksum` says of files and directories. */
export function parseChecksums(output: string): ReadonlyMap<string, string> {
  const checksums = new Map<string, string>();
  for (const line of output.split('\n')) {
    const { path: name, checksum } = LISTED.exec(line)?.groups ?? {};
    if (name !== undefined && checksum !== undefined) checksums.set(name, checksum);
  }
  return checksums;
}

/** @param sysroot as for `ostree`. @returns the command line of `ostree admin deploy`. */
function deployCommand(
  sysroot: string,
  { osName, ref, originFile, kernelArguments, how = 'written', retain = false }: DeployOptions,
): [string, ...string[]] {
  return [
    'ostree',
    ...['admin', 'deploy', `--sysroot=${sysroot}`],
    ...(how === 'written' ? [] : ['--stage']),
    ...(how === 'locked' ? ['--lock-finalization'] : []),
    ...(retain ? ['--retain'] : []),
    `--os=${osName}`,
    `--origin-file=${originFile}`,
    '--karg-none',
    ...kernelArguments.map((argument) => `--karg-append=${argument}`),
    ref,
  ];
}

interface RollbackPlaces {
  /** The physical root as the host's own commands name it to ostree, and where they see it. */
  readonly commandSysroot: string;
  readonly sysroot: string;
}

/**
 * The commands by which a host makes a deployment that it no longer runs the next boot, with the kernel arguments and
 * the origin that it had. ostree has no command that boots it as it is (before 2024), so it is deployed again.
 *
 * ostree merges /etc from what runs by then, in which files that were Shale's are the other image's own; so these are
 * taken from the deployment's former /etc, each whole or not at all.
 *
 * @param deployment to roll back to. @param keep absolute paths below /etc.
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
# $1: a directory below /etc.
like_before() {
  chown --reference="$former$1" "$next$1" && chmod --reference="$former$1" "$next$1"
}
# $1: a directory below /etc, which is made with those above it where they are missing.
make_directory() {
  [ -d "$next$1" ] || { make_directory "\${1%/*}" && mkdir "$next$1" && like_before "$1"; }
}
# $1: the path below /etc that is to be as it was.
as_before() {
  if [ -d "$former$1" ] && [ ! -L "$former$1" ]; then
    make_directory "$1" && like_before "$1"
  elif [ -e "$former$1" ] || [ -L "$former$1" ]; then
    make_directory "\${1%/*}" && cp -a "$former$1" "$next$1.shale-new" && mv -fT "$next$1.shale-new" "$next$1"
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

/** The kernel refuses the mount for moments only; what lasts longer needs the daemon's next attempt. */
const ATTEMPTS = 5;
const PAUSE_MS = 200;

/**
 * On a host whose /sysroot is read-only each ostree command first remounts it for itself. On busy machines the kernel
 * refused that now and then with EBUSY (seen with ostree 2022.7 and Linux 6). ostree has done nothing by then, so the
 * command is run again.
 *
 * @returns a runner that does so; every other failure, and the last of these, reaches the caller.
 */
export function retryRemount(run: RunOsCommand): RunOsCommand {
  return async (command, options) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await run(command, options);
      } catch (error) {
        if (attempt === ATTEMPTS || !isBusyRemount(error)) throw error;
        await delay(PAUSE_MS, undefined, { signal: options.signal });
      }
    }
  };
}

/** ostree, src/ostree/ot-main.c: "Remounting /sysroot read-write". */
function isBusyRemount(error: unknown): boolean {
  return (
    error instanceof OsCommandError &&
    error.stderr.includes('Remounting /sysroot read-write: Device or resource busy')
  );
}
