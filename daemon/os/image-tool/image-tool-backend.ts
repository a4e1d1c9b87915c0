import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../../api/names.ts';
import type { DigestedPullspec } from '../../../api/references.ts';
import { sameList } from '../../../machineconfig/diff.ts';
import { samePackages } from '../../../machineconfig/os-packages.ts';
import { PrepareRefused } from '../../records/current.ts';
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
import { type OsTool, osTool } from '../os-tool.ts';
import { OSTREE_BOOT_SCRIPT } from '../ostree/boot-script.ts';
import { requireBootableRoot } from '../ostree/bootable-root.ts';
import { readOrigin } from '../ostree/deployments.ts';
import { describeDeployment, keepImageRecords } from '../ostree/image-record.ts';
import { argumentsToStage, noteExtraArguments } from '../ostree/kernel-arguments.ts';
import { type DeployMethod, type Ostree, ostree } from '../ostree/ostree.ts';
import { demandsComposefs } from '../ostree/prepare-root.ts';
import { resetManagedPaths } from '../ostree/reset-managed-paths.ts';
import { endLock, lockStaged } from '../ostree/run-notes.ts';
import { bringImage, type ImageToolHost, UnexpectedDeploymentError } from './bring-image.ts';
import {
  type HostDeployments,
  hostDeployments,
  type PlacedDeployment,
  stagedOf,
} from './host-deployments.ts';
import { type ImageRoot, imageRoot, notedImageRoot, noteImageRoot } from './noted-root.ts';
import { removePackageRepository } from './package-repository.ts';

interface RootOfImage extends ImageRoot {
  readonly booted: PlacedDeployment;
  readonly isBooted: boolean;
}

/** What is needed to deploy a commit, even after the deployment that it was read from was deleted. */
interface Deployable extends Pick<PlacedDeployment, 'id' | 'osName' | 'commit' | 'kernelArguments'> {
  readonly origin: string;
}

async function deployable(from: PlacedDeployment): Promise<Deployable> {
  const { id, osName, commit, kernelArguments, directory } = from;
  return { id, osName, commit, kernelArguments, origin: await readOrigin(directory) };
}

/**
 * Hosts whose images bootc or rpm-ostree brings. The tool pulls and stages; the deployment is then staged again by
 * ostree, from the same commit and origin, with exactly the kernel arguments that Shale wants: neither tool can be told
 * all of them, and bootc keeps those of an old image when the new one has none
 * (docs/explanation/os-backends-in-detail.md).
 */
export class ImageToolBackend implements OsBackend {
  readonly #options: ImageToolHost;
  readonly #ostree: Ostree;
  readonly #tool: (signal: AbortSignal) => Promise<OsTool>;
  /** Shale's own directory: the physical root is read-only to all but ostree on most of these hosts. */
  readonly #state: string;

  constructor(options: ImageToolHost) {
    this.#options = options;
    this.#ostree = ostree(options.run, '/');
    const { name, deployPackages } = options.tool;
    this.#tool = osTool(options.run, { name, installsPackages: deployPackages !== undefined });
    this.#state = path.join(options.root, nodePaths.state);
  }

  tool(signal: AbortSignal): Promise<OsTool> {
    return this.#tool(signal);
  }

  async status(signal: AbortSignal): Promise<OsStatus> {
    const { booted, next, previous } = await this.#deployments(signal);
    const [staged] = next;
    const [rollback] = previous;
    return {
      booted: await this.#describe(booted),
      staged: staged && (await this.#describe(staged)),
      rollback: rollback && (await this.#describe(rollback)),
    };
  }

  /**
   * Staged by ostree and locked, so that the grant finds a deployment. ostree has one staged deployment: what was
   * applied live has it, and is replaced. The next boot is the booted deployment then, as after a loss of power: it has
   * booted before, and nobody knows of the other whether it will.
   */
  async fetch(image: DigestedPullspec, options: StageOptions): Promise<FetchedImage> {
    const { signal } = options;
    const [first] = (await this.#deployments(signal)).next;
    if (first?.image === image) return this.stage(image, options);
    const before = first?.isStaged === true ? await deployable(first) : undefined;
    await lockStaged(this.#options.root);
    try {
      return await this.#place(image, interruptible(options), 'locked');
    } catch (error) {
      if (!signal.aborted) await this.#undoFetch(before, signal).catch(() => undefined);
      throw error;
    }
  }

  stage(image: DigestedPullspec, options: StageOptions): Promise<NodeDeployment> {
    return this.#place(image, options, 'staged');
  }

  async #place(
    image: DigestedPullspec,
    options: StageOptions,
    how: Exclude<DeployMethod, 'written'>,
  ): Promise<NodeDeployment> {
    const { extraPackages, signal } = options;
    if (this.#options.tool.deployPackages === undefined) {
      refusePackages(this.#options.tool.name, extraPackages);
    }
    const context = { ...this.#options, stateDirectory: this.#state };
    const isLocked = how === 'locked';
    const noted = await notedImageRoot(this.#state, image);
    if (noted !== undefined) {
      const { booted } = await this.#deployments(signal);
      await this.#nextArguments(image, options, { ...noted, booted, isBooted: booted.image === image });
    }
    const { from, deployments } = await bringImage(context, image, options, { locked: isLocked });
    const { booted, next, locked } = deployments;
    const root = await imageRoot(from.directory);
    const isBooted = from.commit === booted.commit;
    const kernelArguments = await this.#nextArguments(image, options, { ...root, booted, isBooted }).catch(
      async (error: unknown) => {
        if (!(error instanceof PrepareRefused)) throw error;
        await noteImageRoot(this.#state, image, root);
        // Somebody could finalize by hand what is locked.
        if (locked !== undefined) await this.#ostree.undeploy(0, signal);
        else if (!isLocked) await this.#dropNext(deployments, signal);
        throw error;
      },
    );
    const isWanted = (deployment: PlacedDeployment) =>
      deployment.image === image &&
      samePackages(deployment.packages, from.packages) &&
      sameList(deployment.kernelArguments, kernelArguments);
    const first = isLocked ? locked : next[0];
    if (first?.isStaged === true && isWanted(first)) return this.#describe(first);
    if (isWanted(booted) && options.evenIfBooted !== true) {
      await this.#dropNext(deployments, signal);
      return this.#describe(booted);
    }
    const { osName } = booted;
    await noteExtraArguments(this.#state, { image, kernelArguments }, options.extraKernelArguments.add);
    return this.#deploy({ ...(await deployable(from)), osName, kernelArguments, how }, signal);
  }

  /** @throws PrepareRefused where the image's root can't be booted with them. */
  async #nextArguments(
    image: DigestedPullspec,
    { extraKernelArguments: extra, signal }: StageOptions,
    { booted, isBooted, kernelArguments: stagedImage, rootConfigurations: configurations }: RootOfImage,
  ): Promise<readonly string[]> {
    const kernelArguments = await argumentsToStage(this.#state, { booted, stagedImage, extra });
    const host = { ostree: this.#ostree, root: this.#options.root, booted };
    await requireBootableRoot(host, { image, configurations, kernelArguments, isBooted }, signal);
    return kernelArguments;
  }

  async unstage(signal: AbortSignal): Promise<void> {
    await this.#dropNext(await this.#deployments(signal), signal);
  }

  async finalizeStaged(managed: ReadonlyMap<string, string>, signal: AbortSignal): Promise<NodeDeployment> {
    const { booted, next } = await this.#deployments(signal);
    const [staged] = next;
    if (staged === undefined) throw nothingStaged(this.#options.sysroot);
    // At shutdown ostree would take what Shale wrote for the admin's edits. So it is merged now, and put right.
    const fresh = await this.#deploy({ ...(await deployable(staged)), how: 'written' }, signal);
    const { root } = this.#options;
    await resetManagedPaths({ root, booted: await this.#describe(booted), staged: fresh }, managed, signal);
    return fresh;
  }

  async prepareSoftReboot(signal: AbortSignal): Promise<void> {
    const { next, locked } = await this.#deployments(signal);
    const [first] = next;
    const canSoftReboot = first !== undefined && (await this.#canSoftReboot(first));
    if (!canSoftReboot || locked !== undefined) {
      throw new SoftRebootRefused(
        `${this.#options.tool.name} does not report that ${first?.id ?? 'the booted deployment'} supports a soft reboot, or its root is no composefs (prepare-root.conf)`,
      );
    }
    // `bootc switch --soft-reboot=required` is for what is staged, and this is written; it asks ostree for the same.
    await this.#ostree.prepareSoftReboot(signal);
  }

  async rollback(signal: AbortSignal): Promise<void> {
    const deployments = await this.#deployments(signal);
    const [previous] = deployments.previous;
    if (previous === undefined) {
      const [first] = deployments.next;
      // The tools swap the two; asked again they would swap them back.
      if (first !== undefined && !first.isStaged) return;
      throw nothingBefore(this.#options.sysroot);
    }
    await this.#dropNext(deployments, signal);
    await this.#options.tool.rollback(signal);
  }

  /** Both tools boot the former deployment with the /etc that it had. */
  async rollbackScript(_keep: readonly string[], signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    return this.#options.tool.rollbackScript;
  }

  async bootScript(signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    return OSTREE_BOOT_SCRIPT;
  }

  async cleanup(signal: AbortSignal): Promise<void> {
    const deployments = await this.#deployments(signal);
    // Fetched, and never granted.
    if (deployments.locked !== undefined) await this.#ostree.undeploy(0, signal);
    await endLock(this.#options.root);
    const before = deployments.locked === undefined ? deployments : await this.#deployments(signal);
    const previous = before.previous.map((deployment, index) => ({ deployment, index }));
    for (const { deployment, index } of previous.slice(1).reverse()) {
      if (!deployment.isPinned) await this.#ostree.undeploy(before.countBeforeBooted + 1 + index, signal);
    }
    await this.#ostree.cleanup(signal);
    await this.#options.tool.cleanup(signal);
    await removePackageRepository(this.#options.root);
    const { booted, next, previous: kept } = await this.#deployments(signal);
    const images = [booted, ...next, ...kept].flatMap(({ image }) => (image === undefined ? [] : [image]));
    await keepImageRecords(this.#state, images);
  }

  async #deploy(
    deploy: Deployable & { readonly how: DeployMethod },
    signal: AbortSignal,
  ): Promise<NodeDeployment> {
    const { osName, commit, origin, kernelArguments, how } = deploy;
    const originFile = path.join(this.#state, 'origin');
    await mkdir(this.#state, { recursive: true, mode: 0o700 });
    await writeFile(originFile, origin);
    await this.#ostree.deploy(
      {
        osName,
        ref: commit,
        originFile: this.#options.commandPath(originFile),
        kernelArguments,
        how,
      },
      signal,
    );
    // ostree 2023.7 removes its lock when it replaces the staged deployment; later versions also record it there.
    if (how === 'locked') await lockStaged(this.#options.root);
    else await endLock(this.#options.root);
    const { next, locked } = await this.#deployments(signal);
    const first = how === 'locked' ? locked : next[0];
    if (first === undefined || first.commit !== commit) {
      throw new UnexpectedDeploymentError(
        how === 'locked'
          ? `ostree admin deploy ${commit}: it is not the deployment that is locked`
          : `ostree admin deploy ${commit}: it is not the next deployment to boot`,
      );
    }
    return this.#describe(first);
  }

  async #dropNext({ countBeforeBooted }: HostDeployments, signal: AbortSignal): Promise<void> {
    if (countBeforeBooted > 0) await this.#options.tool.dropNext(countBeforeBooted, signal);
    await endLock(this.#options.root);
  }

  /**
   * A lock without anything staged would lock what an admin stages. What was staged by half of a fetch is locked,
   * whatever became of its lock.
   *
   * @param before what was staged and the next boot before the fetch, and is again. Its commit is still there: bootc
   *   deletes images when it has staged another one, and no sooner.
   */
  async #undoFetch(before: Deployable | undefined, signal: AbortSignal): Promise<void> {
    const { root } = this.#options;
    const staged = stagedOf(await this.#deployments(signal));
    if (staged !== undefined && staged.id !== before?.id) return lockStaged(root);
    await endLock(root);
    if (staged === undefined && before !== undefined)
      await this.#deploy({ ...before, how: 'staged' }, signal);
  }

  #deployments(signal: AbortSignal): Promise<HostDeployments> {
    return hostDeployments(this.#options, signal);
  }

  async #describe(deployment: PlacedDeployment): Promise<NodeDeployment> {
    const described = await describeDeployment(this.#state, deployment);
    return (await this.#canSoftReboot(deployment)) ? { ...described, canSoftReboot: true } : described;
  }

  /** bootc reports it of roots that ostree refuses (status.rs, has_soft_reboot_capability). */
  async #canSoftReboot({ canSoftReboot, directory, kernelArguments }: PlacedDeployment): Promise<boolean> {
    // /etc of what is staged is merged at shutdown only.
    const etc = path.join(this.#options.root, 'etc');
    return canSoftReboot === true && (await demandsComposefs({ directory, etc, kernelArguments }));
  }
}
