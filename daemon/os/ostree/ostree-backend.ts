import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { sameList } from '../../../machineconfig/diff.ts';
import {
  type FetchedImage,
  interruptible,
  type NodeDeployment,
  nothingBefore,
  nothingStaged,
  type OsBackend,
  type OsStatus,
  refusePackages,
  SoftRebootRefused,
  type StageOptions,
} from '../backend.ts';
import { underSignaturePolicy } from '../image-policy/policed-source.ts';
import { osCommandRunner } from '../os-command.ts';
import type { OsHost } from '../os-host.ts';
import { type OsTool, osTool } from '../os-tool.ts';
import { canSoftReboot } from '../soft-reboot/ostree.ts';
import { OSTREE_BOOT_SCRIPT } from './boot-script.ts';
import { requireBootableRoot } from './bootable-root.ts';
import { formatOrigin, listDeployments, type OstreeDeployment, SysrootError } from './deployments.ts';
import {
  describeDeployment,
  imageRef,
  keepImageRecords,
  layerRef,
  REFS,
  readImageRecord,
  stateDirectory,
} from './image-record.ts';
import type { ImageSource } from './image-source.ts';
import { importImage } from './import-image.ts';
import { argumentsToStage, noteExtraArguments } from './kernel-arguments.ts';
import { type Ostree, ostree, ostreeRollbackScript } from './ostree.ts';
import { listRefs } from './refs.ts';
import { resetManagedPaths } from './reset-managed-paths.ts';

interface OstreeBackendOptions
  extends Pick<OsHost, 'root' | 'sysroot' | 'source'>,
    Partial<Pick<OsHost, 'run' | 'commandPath'>> {
  /** @returns the booted deployment's directory, as the daemon sees it. */
  readonly bootedDirectory: () => Promise<string>;
  /**
   * The sysroot as the commands name it: `/` on a host that ostree has booted, or they would look for its bootloader
   * entries in the physical root, where a /boot with a file system of its own is empty. Otherwise the sysroot's own
   * path.
   */
  readonly commandSysroot?: string;
}

/** A sysroot's deployments, distinguished by their part in booting. */
interface Deployments {
  readonly all: readonly OstreeDeployment[];
  readonly bootedIndex: number;
  readonly booted: OstreeDeployment;
  readonly staged: OstreeDeployment | undefined;
  readonly rollback: OstreeDeployment | undefined;
}

/** Hosts that have only `ostree`: Shale pulls the image itself, ostree keeps and boots it. */
export class OstreeBackend implements OsBackend {
  readonly #options: OstreeBackendOptions;
  readonly #ostree: Ostree;
  readonly #source: ImageSource;
  readonly #commandPath: (place: string) => string;
  readonly #tool: (signal: AbortSignal) => Promise<OsTool>;

  constructor(options: OstreeBackendOptions) {
    this.#options = options;
    this.#source = underSignaturePolicy(options.root, options.source);
    this.#commandPath = options.commandPath ?? ((place) => place);
    const run = options.run ?? osCommandRunner();
    this.#tool = osTool(run, { name: 'ostree', installsPackages: false });
    this.#ostree = ostree(run, options.commandSysroot ?? this.#commandPath(options.sysroot));
  }

  tool(signal: AbortSignal): Promise<OsTool> {
    return this.#tool(signal);
  }

  async status(signal: AbortSignal): Promise<OsStatus> {
    signal.throwIfAborted();
    const { booted, staged, rollback } = await this.#deployments();
    return {
      booted: await this.#describe(booted),
      staged: staged && (await this.#describe(staged)),
      rollback: rollback && (await this.#describe(rollback)),
    };
  }

  /** Nothing is deployed: what ostree deploys is the first in the boot order, or lost with the next deployment. */
  async fetch(image: DigestedPullspec, options: StageOptions): Promise<FetchedImage> {
    const { labels, booted, kernelArguments } = await this.#import(image, interruptible(options));
    const isSoft = await this.#canSoftReboot(booted, imageRef(image), options.signal);
    return { labels, kernelArguments, ...(isSoft ? { canSoftReboot: true } : {}) };
  }

  async stage(image: DigestedPullspec, options: StageOptions): Promise<NodeDeployment> {
    const { signal, extraKernelArguments: extra } = options;
    const { booted, staged, kernelArguments } = await this.#import(image, options);
    const isWanted = (deployment: OstreeDeployment) =>
      deployment.image === image && sameList(deployment.kernelArguments, kernelArguments);
    if (staged !== undefined && isWanted(staged)) return this.#describe(staged);
    if (isWanted(booted) && options.evenIfBooted !== true) {
      await this.unstage(signal);
      return this.#describe(booted);
    }
    await noteExtraArguments(stateDirectory(this.#options.sysroot), { image, kernelArguments }, extra.add);
    return this.#describe(
      await this.#deploy({ osName: booted.osName, ref: imageRef(image), image, kernelArguments }, signal),
    );
  }

  /** Imports an image that isn't. @returns it as it is to be deployed, and what is deployed. */
  async #import(image: DigestedPullspec, options: StageOptions) {
    const { accept, signal, onProgress } = options;
    refusePackages('ostree', options.extraPackages);
    const context = {
      ostree: this.#ostree,
      sysroot: this.#options.sysroot,
      commandPath: this.#commandPath,
      source: this.#source,
    };
    const { booted, staged } = await this.#deployments();
    const isBooted = booted.image === image;
    const record = await importImage(context, image, {
      withRoot: !isBooted,
      signal,
      accept,
      onProgress,
    });
    const kernelArguments = await argumentsToStage(stateDirectory(this.#options.sysroot), {
      booted,
      stagedImage: record.kernelArguments,
      extra: options.extraKernelArguments,
    });
    const { rootConfigurations: configurations = [] } = record;
    const host = { ostree: this.#ostree, root: this.#options.root, booted };
    await requireBootableRoot(host, { image, configurations, kernelArguments, isBooted }, signal);
    return { labels: record.labels, booted, staged, kernelArguments };
  }

  async unstage(signal: AbortSignal): Promise<void> {
    for (let { bootedIndex } = await this.#deployments(); bootedIndex > 0; bootedIndex -= 1) {
      await this.#ostree.undeploy(0, signal);
    }
  }

  async finalizeStaged(managed: ReadonlyMap<string, string>, signal: AbortSignal): Promise<NodeDeployment> {
    const { booted, staged } = await this.#deployments();
    if (staged === undefined) throw nothingStaged(this.#options.sysroot);
    // Deployed again: ostree merges /etc at this moment only, and edits made since staging count.
    const { osName, image, kernelArguments } = staged;
    const ref = image === undefined ? staged.commit : imageRef(image);
    const fresh = await this.#deploy({ osName, ref, image, kernelArguments }, signal);
    const described = await this.#describe(fresh);
    const places = { root: this.#options.root, booted: await this.#describe(booted), staged: described };
    await resetManagedPaths(places, managed, signal);
    return described;
  }

  async prepareSoftReboot(signal: AbortSignal): Promise<void> {
    const { booted, staged } = await this.#deployments();
    if (staged === undefined || !(await this.#canSoftReboot(booted, staged.commit, signal))) {
      throw new SoftRebootRefused(
        `ostree can't soft-reboot into ${staged?.id ?? 'the booted deployment'}; expected ostree 2025.3, systemd 254, composefs without a signature (enabled = yes in prepare-root.conf), and the booted deployment's kernel, initramfs and SELinux policy`,
      );
    }
    await this.#ostree.prepareSoftReboot(signal);
  }

  async #canSoftReboot(
    { commit, kernelArguments }: OstreeDeployment,
    next: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const host = { tool: await this.#tool(signal), ostree: this.#ostree, root: this.#options.root };
    return canSoftReboot(host, { booted: commit, next, kernelArguments }, signal);
  }

  async rollback(signal: AbortSignal): Promise<void> {
    const { rollback, staged } = await this.#deployments();
    if (rollback === undefined) {
      // Asked before: it is the next boot already, and ostree has deleted what it was made from.
      if (staged !== undefined) return;
      throw nothingBefore(this.#options.sysroot);
    }
    const { osName, commit, image, kernelArguments } = rollback;
    await this.#deploy({ osName, ref: commit, image, kernelArguments }, signal);
  }

  async rollbackScript(keep: readonly string[], signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const { booted } = await this.#deployments();
    const sysroot = this.#commandPath(this.#options.sysroot);
    return ostreeRollbackScript(
      { sysroot, commandSysroot: this.#options.commandSysroot ?? sysroot },
      booted,
      keep,
    );
  }

  async bootScript(signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    return OSTREE_BOOT_SCRIPT;
  }

  async cleanup(signal: AbortSignal): Promise<void> {
    const { all, bootedIndex } = await this.#deployments();
    for (let index = all.length - 1; index > bootedIndex + 1; index -= 1)
      await this.#ostree.undeploy(index, signal);
    // The first is what is staged.
    for (let index = bootedIndex - 1; index > 0; index -= 1) await this.#ostree.undeploy(index, signal);
    await this.#keepRefsOf(await this.#deployments(), signal);
    await this.#ostree.cleanup(signal);
  }

  async #keepRefsOf({ all }: Deployments, signal: AbortSignal): Promise<void> {
    const images = all.flatMap(({ image }) => (image === undefined ? [] : [image]));
    const keep = new Set(images.map(imageRef));
    for (const image of images) {
      const record = await readImageRecord(stateDirectory(this.#options.sysroot), image);
      for (const diffId of record?.layers ?? []) keep.add(layerRef(diffId));
    }
    const refs = [...(await listRefs(this.#options.sysroot, REFS))].sort();
    await this.#ostree.deleteRefs(
      refs.filter((ref) => !keep.has(ref)),
      signal,
    );
    await keepImageRecords(stateDirectory(this.#options.sysroot), images);
  }

  /**
   * Makes a commit the next boot, with /etc merged from the booted deployment. What was staged before goes first: in a
   * sysroot that isn't this process's own root, ostree takes the first deployment for the one to merge from.
   */
  async #deploy(
    deploy: {
      readonly osName: string;
      readonly ref: string;
      readonly image: DigestedPullspec | undefined;
      readonly kernelArguments: readonly string[];
    },
    signal: AbortSignal,
  ): Promise<OstreeDeployment> {
    await this.unstage(signal);
    const { osName, ref, image, kernelArguments } = deploy;
    const directory = stateDirectory(this.#options.sysroot);
    const originFile = path.join(directory, 'origin');
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFile(originFile, formatOrigin(ref, image));
    await this.#ostree.deploy(
      { osName, ref, originFile: this.#commandPath(originFile), kernelArguments },
      signal,
    );
    const { booted, staged } = await this.#deployments();
    return staged ?? booted;
  }

  async #deployments(): Promise<Deployments> {
    const { sysroot, root } = this.#options;
    const all = await listDeployments(sysroot, path.join(root, 'boot'));
    const directory = await this.#options.bootedDirectory();
    const bootedIndex = all.findIndex((deployment) => deployment.directory === directory);
    const booted = all[bootedIndex];
    if (booted === undefined) {
      const known = all.map(({ id }) => id).join(', ');
      throw new SysrootError(`${directory} is booted but not among the deployments of ${sysroot}: ${known}`);
    }
    return {
      all,
      bootedIndex,
      booted,
      staged: bootedIndex > 0 ? all[0] : undefined,
      rollback: all[bootedIndex + 1],
    };
  }

  #describe(deployment: OstreeDeployment): Promise<NodeDeployment> {
    return describeDeployment(stateDirectory(this.#options.sysroot), deployment);
  }
}
