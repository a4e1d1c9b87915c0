import path from 'node:path';
import { nodePaths } from '../../../api/names.ts';
import type { DigestedPullspec } from '../../../api/references.ts';
import type { Relabel } from '../../host/selinux-labels.ts';
import { PrepareRefused } from '../../records/current.ts';
import {
  type FetchedImage,
  interruptible,
  type NodeDeployment,
  nothingBefore,
  nothingStaged,
  type OsBackend,
  type OsStatus,
  refuseKernelArguments,
  refusePackages,
  SoftRebootRefused,
  type StageOptions,
} from '../backend.ts';
import { bootcRollback, ROLLBACK_COMMAND } from '../bootc/bootc.ts';
import { UnexpectedDeploymentError } from '../image-tool/bring-image.ts';
import { acceptRecorded, describeIfPossible } from '../image-tool/described-images.ts';
import { OsCommandError, type RunOsCommand, shellWords } from '../os-command.ts';
import type { OsHost } from '../os-host.ts';
import { type OsTool, osTool } from '../os-tool.ts';
import { keepImageRecords } from '../ostree/image-record.ts';
import { resetManagedPaths } from '../ostree/reset-managed-paths.ts';
import { forgetNextRoot, prepareNextRoot } from '../soft-reboot/bootc-composefs.ts';
import { COMPOSEFS_BOOT_SCRIPT } from './boot-arguments.ts';
import { dropStagedEntries, durably, sync } from './boot-entries.ts';
import { bringIntoComposefs } from './bring-image.ts';
import type { ComposefsDeployment } from './composefs-host.ts';
import type { TreesHost } from './deployment-trees.ts';
import { forgetStaged, lockFinalization, markStaged, unlockFinalization } from './finalization-lock.ts';
import { mergeNextEtc } from './merge-next-etc.ts';
import { type Arranged, ObservedHost } from './observed-host.ts';
import { setupRootObstacle } from './setup-root.ts';

const NAME = 'bootc';
/** /etc is merged, and the bootloader's entries are exchanged (bootc-finalize-staged.service: TimeoutStopSec=5m). */
const FINALIZE_TIMEOUT_MS = 300_000;
/** Objects that no deployment needs any more are also deleted from the repository. */
const DELETE_TIMEOUT_MS = 600_000;

interface ComposefsBackendOptions extends OsHost, TreesHost {
  readonly relabel: Relabel;
}

/**
 * Hosts whose bootc keeps deployments in composefs, with systemd-boot and BLS entries. bootc does everything by its own
 * commands; only when it finalizes, and what becomes of /etc afterwards, Shale decides
 * (docs/explanation/os-backends-in-detail.md).
 */
export class ComposefsBackend implements OsBackend {
  readonly #options: ComposefsBackendOptions;
  readonly #observed: ObservedHost;
  readonly #tool: (signal: AbortSignal) => Promise<OsTool>;
  readonly #state: string;
  /** Runs commands that change what the bootloader has. */
  readonly #bootc: RunOsCommand;

  constructor(options: ComposefsBackendOptions) {
    this.#options = options;
    this.#tool = osTool(options.run, {
      name: NAME,
      installsPackages: false,
      setsKernelArguments: false,
      appliesLive: false,
    });
    this.#state = path.join(options.root, nodePaths.state);
    this.#bootc = durably(options.run);
    this.#observed = new ObservedHost({ ...options, stateDirectory: this.#state });
  }

  tool(signal: AbortSignal): Promise<OsTool> {
    return this.#tool(signal);
  }

  async status(signal: AbortSignal): Promise<OsStatus> {
    const { booted, next, previous } = await this.#observed.host(signal);
    return {
      booted: await this.#observed.describeBooted(booted, signal),
      staged: next && (await this.#observed.describe(next, signal)),
      rollback: previous && (await this.#observed.describe(previous, signal)),
    };
  }

  async fetch(image: DigestedPullspec, options: StageOptions): Promise<FetchedImage> {
    const { signal } = options;
    const host = await this.#accepted(image, options);
    if (host.booted.image === image) return this.#observed.describeBooted(host.booted, signal);
    if (host.staged?.image === image) return this.#stagedOf(image, signal);
    const there = [host.written, host.previous].find((each) => each?.image === image);
    if (there !== undefined) return this.#observed.describe(there, signal);
    return this.#bringLocked(image, host, options);
  }

  async stage(image: DigestedPullspec, options: StageOptions): Promise<NodeDeployment> {
    const { signal } = options;
    const host = await this.#accepted(image, options);
    if (host.booted.image === image) {
      await this.#drop(host, signal);
      return this.#observed.describeBooted(host.booted, signal);
    }
    if (host.staged?.image !== image && (host.written?.image === image || host.previous?.image === image)) {
      return this.#stageFormer(image, host, signal);
    }
    const staged =
      host.staged?.image === image
        ? await this.#stagedOf(image, signal)
        : await this.#bringLocked(image, host, options);
    await unlockFinalization(this.#options, signal);
    return staged;
  }

  async unstage(signal: AbortSignal): Promise<void> {
    await forgetNextRoot(this.#options, signal);
    await this.#drop(await this.#observed.host(signal), signal);
  }

  async finalizeStaged(managed: ReadonlyMap<string, string>, signal: AbortSignal): Promise<NodeDeployment> {
    const { booted, staged, next } = await this.#observed.host(signal);
    if (next === undefined) throw nothingStaged(this.#options.sysroot);
    const { root, relabel } = this.#options;
    const describedBooted = await this.#observed.describeBooted(booted, signal);
    const described = await this.#observed.describe(next, signal);
    // A shutdown that begins meanwhile would have bootc merge /etc once more, and take what Shale wrote for the admin's
    // edits.
    await lockFinalization(this.#options, signal);
    if (next === staged) {
      await this.#finalize(next, signal);
      await resetManagedPaths({ root, booted: describedBooted, staged: described }, managed, signal);
    } else {
      // What is staged beside it, and is locked, must not be finalized once the lock is gone.
      await forgetStaged(root);
      await mergeNextEtc({ root, next: described.root, relabel }, managed, signal);
      await sync(this.#options.run, signal);
    }
    await unlockFinalization(this.#options, signal);
    return described;
  }

  async prepareSoftReboot(signal: AbortSignal): Promise<void> {
    const { written } = await this.#observed.host(signal);
    // What is staged has an /etc that is not merged yet, and `bootc switch --soft-reboot` boots it all the same.
    if (written?.canSoftReboot !== true) {
      throw new SoftRebootRefused(
        `bootc does not report that ${written?.verity ?? 'the booted deployment'} supports a soft reboot; expected a finalized deployment with the booted one’s kernel, initramfs, kernel arguments and SELinux policy`,
      );
    }
    await prepareNextRoot(this.#options, written.verity, signal);
  }

  async rollback(signal: AbortSignal): Promise<void> {
    await forgetNextRoot(this.#options, signal);
    const { previous, written } = await this.#observed.host(signal);
    if (previous === undefined) {
      // bootc swaps the two; asked again it would swap them back.
      if (written !== undefined) return sync(this.#options.run, signal);
      throw nothingBefore(this.#options.sysroot);
    }
    await bootcRollback(this.#bootc, signal);
    await unlockFinalization(this.#options, signal);
  }

  /** bootc boots the former deployment with the /etc that it had. */
  async rollbackScript(_keep: readonly string[], signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    return shellWords(ROLLBACK_COMMAND);
  }

  async bootScript(signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    return COMPOSEFS_BOOT_SCRIPT;
  }

  async cleanup(signal: AbortSignal): Promise<void> {
    const host = await this.#observed.host(signal);
    // Fetched, and never granted.
    if (host.isLocked) await this.#dropStaged(host, signal);
    await unlockFinalization(this.#options, signal);
    const { booted, staged, written, previous } = await this.#observed.host(signal);
    // bootc itself deletes what no deployment needs whenever it stages or deletes one.
    const kept = [staged, written, previous].flatMap((each) => (each === undefined ? [] : [each]));
    await this.#observed.keepTrees(
      kept.map(({ verity }) => verity),
      signal,
    );
    const images = [booted, ...kept].flatMap(({ image }) => (image === undefined ? [] : [image]));
    await keepImageRecords(this.#state, images);
  }

  /**
   * @throws PackagesRefused, and what `accept` throws of an image that is
   * there.
   */
  async #accepted(image: DigestedPullspec, options: StageOptions): Promise<Arranged> {
    const { accept, evenIfBooted, extraKernelArguments, extraPackages, signal } = options;
    refusePackages(NAME, extraPackages);
    refuseKernelArguments(NAME, extraKernelArguments.add);
    await forgetNextRoot(this.#options, signal);
    const host = await this.#observed.host(signal);
    if (host.booted.image === image && evenIfBooted === true) {
      throw new Error(
        `${image} is booted, and bootc keeps one deployment for each content of an image in composefs`,
      );
    }
    const all = [host.booted, host.staged, host.written, host.previous];
    if (all.some((each) => each?.image === image)) {
      const context = { source: this.#options.source, stateDirectory: this.#state };
      await describeIfPossible(context, image, signal);
      await acceptRecorded(context, image, accept);
    }
    return host;
  }

  async #bringLocked(
    image: DigestedPullspec,
    before: Arranged,
    options: StageOptions,
  ): Promise<NodeDeployment> {
    const { signal } = options;
    const context = { ...this.#options, run: this.#bootc, stateDirectory: this.#state };
    try {
      await bringIntoComposefs(context, image, interruptible(options), () =>
        lockFinalization(this.#options, signal),
      );
      await markStaged(this.#options.root, 'locked');
      return await this.#stagedOf(image, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const unreadable = await this.#endFetch(before, signal).catch(() => undefined);
      if (unreadable === undefined) throw error;
      throw new PrepareRefused(
        `${image}: ${unreadable.message}; bootc reports nothing of the host as long as that is staged, so it was unstaged; expected an image that boots as the booted one, by BLS entries`,
        { cause: unreadable },
      );
    }
  }

  /**
   * @throws PrepareRefused; what is refused stays locked, so that bootc doesn't pull it again at the next attempt.
   */
  async #stagedOf(image: DigestedPullspec, signal: AbortSignal): Promise<NodeDeployment> {
    const staged = await this.#observed.describe(
      requireStaged(await this.#observed.host(signal), image),
      signal,
    );
    const why = await setupRootObstacle(staged.root);
    if (why === undefined) return staged;
    await lockFinalization(this.#options, signal);
    await markStaged(this.#options.root, 'locked');
    throw new PrepareRefused(`${image}: ${why}`);
  }

  /**
   * A deployment that is there and was finalized before is made the bootloader's first again, and keeps its /etc until
   * it is merged: `bootc switch` refuses its image, and a rollback must need no registry.
   */
  async #stageFormer(image: DigestedPullspec, host: Arranged, signal: AbortSignal): Promise<NodeDeployment> {
    if (host.written?.image === image) {
      if (host.staged !== undefined) await this.#dropStaged(host, signal);
    } else {
      // It drops what is staged.
      await bootcRollback(this.#bootc, signal);
    }
    await unlockFinalization(this.#options, signal);
    const { next } = await this.#observed.host(signal);
    if (next?.image === image) return this.#observed.describe(next, signal);
    throw new UnexpectedDeploymentError(
      `bootc rollback: ${next?.image ?? 'nothing'} is the next boot; expected ${image}`,
    );
  }

  async #finalize({ verity }: ComposefsDeployment, signal: AbortSignal): Promise<void> {
    const { root } = this.#options;
    await markStaged(root, 'toFinalize');
    await this.#bootc(['bootc', 'composefs-finalize-staged'], { timeoutMs: FINALIZE_TIMEOUT_MS, signal });
    const { written } = await this.#observed.host(signal);
    if (written?.verity !== verity) {
      throw new UnexpectedDeploymentError(
        `bootc composefs-finalize-staged: ${written?.verity ?? 'the booted deployment'} is the next boot; expected ${verity}`,
      );
    }
    await forgetStaged(root);
  }

  /** Has the next boot be the booted deployment. What was finalized stays as the deployment to roll back to. */
  async #drop(host: Arranged, signal: AbortSignal): Promise<void> {
    if (host.staged !== undefined) await this.#dropStaged(host, signal);
    if (host.written !== undefined) {
      await forgetStaged(this.#options.root);
      await bootcRollback(this.#bootc, signal);
    }
    await unlockFinalization(this.#options, signal);
  }

  async #dropStaged({ staged }: Arranged, signal: AbortSignal): Promise<void> {
    if (staged === undefined) return;
    const command = ['bootc', 'delete-deployment', staged.verity] as const;
    await this.#bootc([...command], { timeoutMs: DELETE_TIMEOUT_MS, signal });
    await forgetStaged(this.#options.root);
  }

  /**
   * What was staged before a fetch that failed is the next boot again, if it was and is there still; half of a fetch is
   * not.
   *
   * @returns why bootc reported nothing of the host with what it had staged, which is gone then; nothing where it
   *   reports.
   */
  async #endFetch(before: Arranged, signal: AbortSignal): Promise<OsCommandError | undefined> {
    const host = await this.#observed.host(signal).catch(asCommandError);
    if (host instanceof OsCommandError) {
      if (!(await dropStagedEntries(this.#options, signal))) return undefined;
      await this.#endFetch(before, signal);
      return host;
    }
    const { staged } = host;
    const isAsBefore = staged?.verity === before.staged?.verity && !before.isLocked;
    if (staged === undefined || isAsBefore) await unlockFinalization(this.#options, signal);
    return undefined;
  }
}

function asCommandError(error: unknown): OsCommandError {
  if (error instanceof OsCommandError) return error;
  throw error;
}

function requireStaged({ staged }: Arranged, image: DigestedPullspec): ComposefsDeployment {
  if (staged?.image === image) return staged;
  throw new UnexpectedDeploymentError(
    `bootc has staged ${staged?.image ?? staged?.verity ?? 'nothing'}; expected ${image}`,
  );
}
