import path from 'node:path';
import type { RunOsCommand } from '../os-command.ts';
import { retryRemount } from './remount-retry.ts';

/**
 * The commands of ostree(1) that the backend needs, one function each: what it passes and how long it may take. ostree
 * 2022.7 (Debian 12) has all of them.
 */
export interface Ostree {
  /** `ostree commit`: stores a directory as a commit and gives it the ref, as its last step. The directory is consumed. */
  commit(options: CommitOptions, signal: AbortSignal): Promise<void>;
  /** `ostree checkout -H`: hard links into the repository, so nothing in it may be changed in place. */
  checkout(options: CheckoutOptions, signal: AbortSignal): Promise<void>;
  /** `ostree refs --list`. @returns all refs below a prefix, in full. */
  refs(prefix: string, signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** `ostree refs --delete`. */
  deleteRef(ref: string, signal: AbortSignal): Promise<void>;
  /** `ostree prune --refs-only`: deployments have refs of their own (`ostree/…`). */
  prune(signal: AbortSignal): Promise<void>;
  /** `ostree admin deploy`: makes a commit the next boot, with /etc merged now or, when staged, at shutdown. */
  deploy(options: DeployOptions, signal: AbortSignal): Promise<void>;
  /** `ostree admin undeploy`. @param index in boot order. */
  undeploy(index: number, signal: AbortSignal): Promise<void>;
  /**
   * `ostree admin prepare-soft-reboot` (ostree 2025.3): mounts a deployment at /run/nextroot. It refuses one with another
   * kernel, initramfs or kernel arguments, and any host without composefs. What was prepared before is reset.
   *
   * @param index in boot order.
   */
  prepareSoftReboot(index: number, signal: AbortSignal): Promise<void>;
  /** `ostree admin cleanup`: deletes what an interrupted command left. */
  cleanup(signal: AbortSignal): Promise<void>;
}

interface CommitOptions {
  readonly ref: string;
  readonly directory: string;
  /** An archive that is laid over the directory. */
  readonly overlay?: string;
  readonly metadata: Readonly<Record<string, string>>;
}

interface CheckoutOptions {
  readonly ref: string;
  /** Created; must not exist. */
  readonly destination: string;
  readonly subpath?: string;
}

interface DeployOptions {
  readonly osName: string;
  readonly ref: string;
  readonly originFile: string;
  /** All of them, without `ostree=`. */
  readonly kernelArguments: readonly string[];
  /** Written to the bootloader at shutdown only (`--stage`): on a host that ostree has booted. */
  readonly staged?: boolean;
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
 * @param sysroot the physical root, as the commands see it. `/` for the one that the commands' own root was booted from:
 *   only there ostree knows which deployment is booted, and can stage.
 */
export function ostree(runOnce: RunOsCommand, sysroot: string): Ostree {
  const run = retryRemount(runOnce);
  const repo = `--repo=${path.posix.join(sysroot, 'ostree/repo')}`;
  const admin = (command: string) => ['ostree', 'admin', command, `--sysroot=${sysroot}`] as const;
  return {
    commit: async ({ ref, directory, overlay, metadata }, signal) => {
      const pairs = Object.entries(metadata).map(([key, value]) => `--add-metadata-string=${key}=${value}`);
      const options = ['--consume', '--link-checkout-speedup', '--parent=none', `--timestamp=${COMMIT_TIME}`];
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
    refs: async (prefix, signal) => {
      const output = await run(['ostree', 'refs', repo, '--list', prefix], { timeoutMs: SHORT_MS, signal });
      return new Set(output.split('\n').filter((line) => line !== ''));
    },
    deleteRef: async (ref, signal) => {
      await run(['ostree', 'refs', repo, '--delete', ref], { timeoutMs: SHORT_MS, signal });
    },
    prune: async (signal) => {
      await run(['ostree', 'prune', repo, '--refs-only'], { timeoutMs: LONG_MS, signal });
    },
    deploy: async (options, signal) => {
      await run(deployCommand(sysroot, options), { timeoutMs: LONG_MS, signal });
    },
    undeploy: async (index, signal) => {
      await run([...admin('undeploy'), String(index)], { timeoutMs: SHORT_MS, signal });
    },
    prepareSoftReboot: async (index, signal) => {
      // Prepared twice, there would be one mount on the other.
      await run([...admin('prepare-soft-reboot'), '--reset'], { timeoutMs: SHORT_MS, signal });
      await run([...admin('prepare-soft-reboot'), String(index)], { timeoutMs: SHORT_MS, signal });
    },
    cleanup: async (signal) => {
      await run([...admin('cleanup')], { timeoutMs: LONG_MS, signal });
    },
  };
}

/** @param sysroot as for `ostree`. @returns the command line of `ostree admin deploy`. */
export function deployCommand(
  sysroot: string,
  { osName, ref, originFile, kernelArguments, staged = false, retain = false }: DeployOptions,
): [string, ...string[]] {
  return [
    'ostree',
    ...['admin', 'deploy', `--sysroot=${sysroot}`],
    ...(staged ? ['--stage'] : []),
    ...(retain ? ['--retain'] : []),
    `--os=${osName}`,
    `--origin-file=${originFile}`,
    '--karg-none',
    ...kernelArguments.map((argument) => `--karg-append=${argument}`),
    ref,
  ];
}
