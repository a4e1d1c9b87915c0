import type { DigestedPullspec } from '../../../api/references.ts';
import type { NodeDeployment } from '../backend.ts';
import { bootcStatus } from '../bootc/status.ts';
import { readImageRecord } from '../ostree/image-record.ts';
import { imageKernelArguments } from '../ostree/kernel-arguments.ts';
import { argumentsOfDeployment, bootedArguments } from './boot-arguments.ts';
import { arrangeHost, type ComposefsDeployment, type ComposefsHost } from './composefs-host.ts';
import { DeploymentTrees, type TreesHost } from './deployment-trees.ts';
import { isFinalizationLocked } from './finalization-lock.ts';

export interface HostToObserve extends TreesHost {
  /** Where the records of images lie. */
  readonly stateDirectory: string;
}

/** Those that an orderly reboot may take, as far as there are any. */
export interface Arranged extends ComposefsHost {
  readonly isLocked: boolean;
  /** What the next boot takes, when that is not the booted deployment. */
  readonly next: ComposefsDeployment | undefined;
}

/** What there is on a host whose bootc keeps deployments in composefs. To look at a deployment's tree it is mounted. */
export class ObservedHost {
  readonly #options: HostToObserve;
  readonly #trees: DeploymentTrees;

  constructor(options: HostToObserve) {
    this.#options = options;
    this.#trees = new DeploymentTrees(options);
  }

  /** @throws OsCommandError or an Error. */
  async host(signal: AbortSignal): Promise<Arranged> {
    const host = arrangeHost(await bootcStatus(this.#options.run, signal));
    const isLocked = host.staged?.isDownloadOnly === true || (await isFinalizationLocked(this.#options));
    const next = host.staged !== undefined && !isLocked ? host.staged : host.written;
    return { ...host, isLocked, next };
  }

  /** Also mounts the booted image's tree. @throws OsCommandError or an Error. */
  async describeBooted({ verity, image }: ComposefsDeployment, signal: AbortSignal): Promise<NodeDeployment> {
    return {
      id: verity,
      labels: await this.#labelsOf(image),
      root: await this.#trees.booted(signal),
      kernelArguments: await bootedArguments(this.#options.root),
      image,
    };
  }

  /** @param deployment that is not booted. @throws OsCommandError or an Error. */
  async describe(deployment: ComposefsDeployment, signal: AbortSignal): Promise<NodeDeployment> {
    const { verity, image, canSoftReboot } = deployment;
    const root = await this.#trees.of(verity, signal);
    return {
      id: verity,
      labels: await this.#labelsOf(image),
      root,
      kernelArguments: argumentsOfDeployment({
        booted: await bootedArguments(this.#options.root),
        bootedImage: await imageKernelArguments(this.#options.root),
        image: await imageKernelArguments(root),
      }),
      image,
      canSoftReboot,
    };
  }

  /** Unmounts the trees of all deployments but these. @throws OsCommandError or an Error. */
  keepTrees(verities: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#trees.keep(verities, signal);
  }

  async #labelsOf(image: DigestedPullspec | undefined): Promise<NodeDeployment['labels']> {
    if (image === undefined) return {};
    return (await readImageRecord(this.#options.stateDirectory, image))?.labels ?? {};
  }
}
