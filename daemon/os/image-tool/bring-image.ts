import type { DigestedPullspec } from '../../../api/references.ts';
import { changePackages, type PackageSet, samePackages } from '../../../machineconfig/os-packages.ts';
import { asksForPackages, type ExtraPackages, type StageOptions } from '../backend.ts';
import type { OsHost } from '../os-host.ts';
import { requireSpace, type SourceLayer, spaceNeeded } from '../ostree/image-source.ts';
import { listRefs } from '../ostree/refs.ts';
import { lockStaged } from '../ostree/run-notes.ts';
import { acceptRecorded, describeIfPossible, keepDescription } from './described-images.ts';
import {
  type HostDeployments,
  hostDeployments,
  type PlacedDeployment,
  stagedOf,
} from './host-deployments.ts';
import type { ImageTool } from './image-tool.ts';
import { withPackageRepository } from './package-repository.ts';
import { withPullProgress } from './pull-progress.ts';
import { demandsSignatures, sharePullSecret } from './pull-settings.ts';

/** The command of the tool succeeded, but the host is not in the expected state. */
export class UnexpectedDeploymentError extends Error {
  override readonly name = 'UnexpectedDeploymentError';
}

/** A host of an image tool. */
export interface ImageToolHost extends OsHost {
  readonly tool: ImageTool;
}

interface BringContext extends ImageToolHost {
  /** Where the records of images lie. */
  readonly stateDirectory: string;
}

interface BroughtImage {
  /** What to deploy it from. */
  readonly from: PlacedDeployment;
  readonly deployments: HostDeployments;
}

/**
 * Sees to it that a deployment of an image with its packages is on the disk; the tool is asked only where none is.
 *
 * @param locked whether what the tool stages is to be locked, so that it is not the next boot.
 * @throws UnexpectedDeploymentError, and what the tool and the source throw.
 */
export async function bringImage(
  context: BringContext,
  image: DigestedPullspec,
  { extraPackages, accept, signal, onProgress = () => undefined }: StageOptions,
  { locked }: { readonly locked: boolean },
): Promise<BroughtImage> {
  const { root, pullSecretFile, tool } = context;
  const before = await hostDeployments(context, signal);
  const { booted, countBeforeBooted } = before;
  const packages =
    extraPackages === undefined ? booted.packages : changePackages(booted.packages, extraPackages);
  const there = deploymentOf(before, image, packages);
  if (there !== undefined) {
    await describeIfPossible(context, image, signal);
    await acceptRecorded(context, image, accept);
    return { from: there, deployments: before };
  }
  const layers = await missingLayers(context, before, image, signal);
  await acceptRecorded(context, image, accept);
  await sharePullSecret(root, pullSecretFile);
  // The tool goes on from what is staged.
  if (asksForPackages(extraPackages) && countBeforeBooted > 0) await tool.dropNext(countBeforeBooted, signal);
  else if (locked && !tool.keepsLock && stagedOf(before) !== undefined) await tool.dropNext(1, signal);
  // It went with what was dropped.
  if (locked) await lockStaged(root);
  const arrived = async () => {
    const refs = await listRefs(context.sysroot, LAYER_REFS);
    return (layer: SourceLayer) => refs.has(layerRefOf(layer.digest));
  };
  await withPullProgress({ layers, arrived, onProgress, signal }, () =>
    byTool(context, { image, packages, extraPackages, locked }, signal),
  );
  // Whatever a tool has done with the lock.
  if (locked) await lockStaged(root);
  const deployments = await hostDeployments(context, signal);
  const from = deployments.locked ?? deployments.next[0];
  if (from?.image === image && samePackages(from.packages, packages)) return { from, deployments };
  const staged = from === undefined ? 'nothing' : `${from.image ?? from.id}${formatPackages(from.packages)}`;
  throw new UnexpectedDeploymentError(
    `${tool.name} has staged ${staged}; expected ${image}${formatPackages(packages)}`,
  );
}

/** @returns what is to be fetched of an image; room for it is there. */
async function missingLayers(
  context: BringContext,
  before: HostDeployments,
  image: DigestedPullspec,
  signal: AbortSignal,
): Promise<readonly SourceLayer[]> {
  const { source, sysroot } = context;
  if (deploymentOf(before, image) !== undefined) {
    await describeIfPossible(context, image, signal);
    return [];
  }
  const described = await source.open(image, signal);
  await keepDescription(context, image, described);
  const refs = await listRefs(sysroot, LAYER_REFS);
  const missing = described.layers.filter(({ digest }) => !refs.has(layerRefOf(digest)));
  await requireSpace(sysroot, spaceNeeded(missing));
  return missing;
}

interface StagingRequest {
  readonly image: DigestedPullspec;
  /** All that the deployment is to have beside the image. */
  readonly packages: PackageSet;
  readonly extraPackages: ExtraPackages | undefined;
  readonly locked: boolean;
}

async function byTool(
  context: BringContext,
  { image, packages, extraPackages, locked }: StagingRequest,
  signal: AbortSignal,
): Promise<void> {
  const { tool, root } = context;
  const mustBeSigned = await demandsSignatures(root);
  if (extraPackages === undefined || !asksForPackages(extraPackages)) {
    return tool.pull(image, { mustBeSigned, locked, signal });
  }
  const { remove: former, repository } = extraPackages;
  const deploy = async () => tool.deployPackages?.(image, { packages, former, mustBeSigned, signal });
  try {
    if (repository === undefined) await deploy();
    else await withPackageRepository(context, repository, deploy, signal);
  } catch (error) {
    // What was prepared by then is locked; an interrupted one goes with the next try.
    if (!signal.aborted) await dropPrepared(context, signal).catch(() => undefined);
    throw error;
  }
}

async function dropPrepared(context: BringContext, signal: AbortSignal): Promise<void> {
  const { countBeforeBooted } = await hostDeployments(context, signal);
  if (countBeforeBooted > 0) await context.tool.dropNext(countBeforeBooted, signal);
}

/**
 * The next boot's first: its files are what is to be booted, whatever was changed in others.
 *
 * @param packages any, unless given.
 */
function deploymentOf(
  { locked, next, booted, previous }: HostDeployments,
  image: DigestedPullspec,
  packages?: PackageSet,
): PlacedDeployment | undefined {
  const fetched = locked === undefined ? [] : [locked];
  return [...fetched, ...next, booted, ...previous].find(
    (deployment) =>
      deployment.image === image && (packages === undefined || samePackages(deployment.packages, packages)),
  );
}

function formatPackages({ installed, removed }: PackageSet): string {
  const words = [
    ...(installed.length === 0 ? [] : [`with ${installed.join(', ')}`]),
    ...(removed.length === 0 ? [] : [`without ${removed.join(', ')}`]),
  ];
  return words.map((each) => ` ${each}`).join('');
}

/** Where ostree's container code keeps the layers that it has (ostree-rs-ext, container::store). */
export const LAYER_REFS = 'ostree/container/blob';

/**
 * @param digest of a layer as it is fetched.
 * @returns the ref that an image tool gives a layer: `_` and two hexadecimal digits and `_` for what no ref may have
 *   (ostree-rs-ext, refescape).
 */
export function layerRefOf(digest: string): string {
  return `${LAYER_REFS}/${digest.replace(':', '_3A_')}`;
}
