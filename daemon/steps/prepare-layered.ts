import { posix } from 'node:path';
import { annotations, imageLabels, nodePaths } from '../../api/names.ts';
import { imageRebootsBecause } from '../../disruption/image-reboots.ts';
import { decideEqualOptIn, decideOptIn, rebootBecause as optInReboots } from '../../disruption/opt-in.ts';
import { findTransition, parseTransitionLabel } from '../../disruption/transitions.ts';
import { RegistryError } from '../../image/registry/registry-error.ts';
import { verifyContent } from '../content/drift/verify-content.ts';
import { desiredTree } from '../content/entries/desired-tree.ts';
import { type LivePlan, planLiveApply } from '../content/live/live-plan.ts';
import { carriedBy, standardContent } from '../content/managed-content.ts';
import { HostTree } from '../files/host-tree.ts';
import { LiveApplyRefused } from '../files/tree-change.ts';
import { isRemoval } from '../files/write-step.ts';
import { handedOverTo } from '../host/certificates/owned-paths.ts';
import type { FetchedImage, NodeDeployment } from '../os/backend.ts';
import { withRebootChoice } from '../reboot/choose-reboot.ts';
import { basesOf, nodeConfigOf, PrepareRefused, type StandardCurrent } from '../records/current.ts';
import { mergeManaged, readManagedPaths } from '../records/managed-paths.ts';
import { contentOfConfigs } from './own-content.ts';
import {
  contentOfImage,
  fetchTarget,
  type Preparation,
  type Requirements,
  refuseChangedDisk,
  refuseUnknownOwners,
  refuseUnwritable,
  requireReboot,
} from './preparation.ts';
import {
  basisOf,
  type DeploymentChange,
  imageChange,
  type PreparedUpdate,
  reboots,
  type Target,
} from './update.ts';

type LayeredTarget = Extract<Target, { mode: 'Layered' }>;
/** What a node in standard mode is compared by. */
interface OptInPreparation extends Pick<Preparation, 'signal' | 'held'> {
  readonly ports: Pick<Preparation['ports'], 'backend' | 'host'>;
}

/**
 * Brings a layered image to the disk and reads from its label what it asks of this node. Not disruptive.
 *
 * @throws PrepareRefused when the image is not in the registry or not signed, or its labels do not name the config that
 *   the operator assigned, for a disk that somebody has changed; and what staging throws.
 */
export async function prepareLayered(
  preparation: Preparation,
  target: LayeredTarget,
): Promise<PreparedUpdate> {
  try {
    return await prepareImage(preparation, target);
  } catch (error) {
    const missing = missingIn(error);
    throw missing === undefined ? error : notThere(preparation, target, missing);
  }
}

/** @returns what a registry says that doesn't have something; undefined for every other failure. */
function missingIn(error: unknown): RegistryError | undefined {
  if (error instanceof RegistryError && error.status === 404) return error;
  return error instanceof Error ? missingIn(error.cause) : undefined;
}

/** Somebody has to act: trying again brings nothing back. */
function notThere({ spec }: Preparation, { image }: LayeredTarget, error: RegistryError): PrepareRefused {
  const rebuild = `kubectl annotate machineosconfig ${spec.pool.name} ${annotations.rebuild}=VALUE --overwrite`;
  return new PrepareRefused(
    `${image} is not in the registry, or the node's pull secret doesn't show it: ${error.message}. If it was deleted there, build it again: ${rebuild}, with a value that it has not had`,
    { cause: error },
  );
}

async function prepareImage(preparation: Preparation, target: LayeredTarget): Promise<PreparedUpdate> {
  const { current, spec } = preparation;
  await refuseChangedDisk(preparation);
  const change = imageChange(current, target);
  await preparation.admit(target.image);
  const accept = (labels: NodeDeployment['labels']) => refuseOtherConfig(labels, target);
  const fetched = await fetchTarget(preparation, change, { evenIfBooted: false, accept });
  refuseOtherConfig(fetched.labels, target);
  await refuseUnfit(preparation, target, fetched);
  const actions = await asHostTakes(preparation, target, await actionsOf(preparation, target, fetched));
  const required = reboots({ plan: actions })
    ? await withRebootChoice(
        preparation,
        actions,
        await fetchTarget(preparation, change, { evenIfBooted: true, accept }),
      )
    : actions;
  return {
    plan: { config: target.config, image: target.image, staged: true, ...required },
    next: {
      version: 1,
      mode: 'Layered',
      config: target.config,
      image: target.image,
      ...basesOf(fetched.labels),
    },
    ...basisOf(spec),
  };
}

/** A target doesn't decide what an image is: an image that doesn't name the target's config is not it. */
function refuseOtherConfig(labels: NodeDeployment['labels'], { config, image }: LayeredTarget): void {
  const built = labels[imageLabels.renderedConfig];
  if (built === config) return;
  throw new PrepareRefused(
    built === undefined
      ? `${image} has no label ${imageLabels.renderedConfig}; expected ${config}: it was not built by Shale, or its registry can't be read`
      : `${image} was built from ${built}; expected ${config}`,
  );
}

/** What would fail on this node is refused here, and not once the node is drained. */
async function refuseUnfit(
  preparation: Preparation,
  { config }: LayeredTarget,
  { labels }: FetchedImage,
): Promise<void> {
  const { current, ports, signal } = preparation;
  const { root } = ports.host;
  const to = await contentOfImage(preparation, config);
  if (to === undefined) return;
  const { baseImage } = basesOf(labels);
  if (baseImage !== undefined && baseImage === current?.baseImage) await refuseUnknownOwners(root, to);
  await refuseUnwritable(root, { current, to }, signal);
}

/** A host that can't apply an image live takes a new one by a reboot, also where the change itself needs none. */
async function asHostTakes(
  { ports: { backend }, signal }: Preparation,
  { image }: LayeredTarget,
  asked: Requirements,
): Promise<Requirements> {
  const why = imageRebootsBecause(await backend.tool(signal));
  if (why === undefined || reboots({ plan: asked })) return asked;
  const { booted } = await backend.status(signal);
  return booted.image === image ? asked : { ...asked, ...requireReboot(why), causes: asked.causes };
}

async function actionsOf(
  preparation: Preparation,
  target: LayeredTarget,
  { labels }: FetchedImage,
): Promise<Requirements> {
  const { current, stuck, spec, signal } = preparation;
  const { backend } = preparation.ports;
  if (stuck !== undefined) {
    return requireReboot(`the live update to ${stuck.plan.config} was started and could not be finished`);
  }
  if (current === undefined) {
    const { booted } = await backend.status(signal);
    return booted.image === target.image
      ? { actions: [], causes: [], source: 'the node has booted this image' }
      : requireReboot('the node has no config that a transition could start from');
  }
  if (current.mode === 'Standard') {
    return requirementsOfOptIn(preparation, current, { change: imageChange(current, target), labels });
  }
  const label = parseTransitionLabel(labels[imageLabels.disruption]);
  const { config, baseImage: base = '' } = current;
  const transition = findTransition(label, { config, base }, spec.policyDigest);
  return transition.kind === 'known'
    ? { actions: [...transition.actions], causes: [...transition.causes], source: 'the label of the image' }
    : requireReboot(transition.why);
}

/**
 * Works out what an image asks of a node in standard mode. What runs stays the next boot.
 *
 * @param change how the image is deployed. @param labels of the image.
 * @returns no reboot where the running root has the image's content already, but for what the layer adds of its own; in
 *   any doubt a reboot.
 * @throws what OsBackend.status and tool throw, RecordError, PrepareRefused.
 */
export async function requirementsOfOptIn(
  preparation: OptInPreparation,
  current: StandardCurrent,
  { change, labels }: { readonly change: DeploymentChange; readonly labels: NodeDeployment['labels'] },
): Promise<Requirements> {
  const optIn = decideOptIn(
    {
      config: current.config,
      base: current.baseImage ?? '',
      osBackend: (await preparation.ports.backend.tool(preparation.signal)).name,
    },
    {
      config: labels[imageLabels.renderedConfig] ?? '',
      base: labels[imageLabels.baseImage],
      byEngine: labels[imageLabels.stockImage] !== undefined,
    },
  );
  if (optIn.kind === 'reboot') return requireReboot(optIn.why);
  const difference = await differenceFrom(preparation, current, change);
  if (difference !== undefined) return requireReboot(optInReboots(difference).why);
  const { actions, causes } = decideEqualOptIn(nodeConfigOf(current.rendered));
  return {
    actions: [...actions],
    causes: [...causes],
    source: 'the node has the content of the image already',
  };
}

/** The image has a tree to compare with only while it is deployed, and ostree deploys it as the next boot. */
async function differenceFrom(
  preparation: OptInPreparation,
  current: StandardCurrent,
  { image, ...extra }: DeploymentChange,
): Promise<string | undefined> {
  const { ports, held, signal } = preparation;
  const { backend } = ports;
  // From here on until it is unstaged the image is the next boot.
  held.throwIfAborted();
  const staged = await backend.stage(image, { ...extra, signal });
  try {
    return await findDifference(preparation, current, staged);
  } finally {
    await backend.unstage(signal);
  }
}

/** @returns what tells the running root from the image, as a clause; undefined where it is the layer alone. */
async function findDifference(
  { ports: { backend, host }, signal }: OptInPreparation,
  current: StandardCurrent,
  staged: NodeDeployment,
): Promise<string | undefined> {
  const { root } = host;
  // The force file permits what was changed by hand; a reboot puts it right.
  const [drift] = await verifyContent({ root }, standardContent(current), signal);
  if (drift !== undefined) return `${drift.path} is not as ${current.config} has it`;
  const content = await carriedBy(staged.root);
  if (content === undefined) return 'the image carries no rendered config';
  const { booted } = await backend.status(signal);
  const managed = mergeManaged(
    await handedOverTo(root, staged.root),
    await contentOfConfigs({ root, current, disk: 'AsRecorded', signal }, undefined),
    await readManagedPaths(root),
  );
  try {
    const plan = await planLiveApply({ root, booted, staged, managed }, signal);
    const ofLayer = await realPlaces(root, [
      ...(await desiredTree({ root }, content)).keys(),
      nodePaths.imageConfig,
      nodePaths.tmpfiles,
    ]);
    const foreign = foreignChange(plan, ofLayer);
    return foreign && `${foreign} is not the same in the image`;
  } catch (error) {
    if (error instanceof LiveApplyRefused) return `the image can't be applied live: ${error.message}`;
    throw error;
  }
}

/** A layer has its files where the links of the base lead, and the running root is one of that base. */
async function realPlaces(root: string, paths: readonly string[]): Promise<ReadonlySet<string>> {
  await using tree = new HostTree({ root });
  const places = new Set<string>();
  for (const each of paths) places.add((await tree.locate(each)).name);
  return places;
}

/**
 * @returns a path that would change and that the layer of the image does not bring; directories above its own are its
 * own.
 */
function foreignChange({ usr, etc }: LivePlan, ofLayer: ReadonlySet<string>) {
  const own = new Set([...ofLayer].flatMap(withParents));
  return [...usr, ...etc].find((step) => isRemoval(step) || !own.has(step.name))?.name;
}

function withParents(name: string): readonly string[] {
  return name === '/' ? [] : [name, ...withParents(posix.dirname(name))];
}
