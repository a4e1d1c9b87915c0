import { posix } from 'node:path';
import { imageLabels, nodePaths } from '../../api/names.ts';
import { decideEqualOptIn, decideOptIn, rebootBecause as optInReboots } from '../../disruption/opt-in.ts';
import { handedOverTo } from '../host/certificates/owned-paths.ts';
import { HostTree } from '../host-files/host-tree.ts';
import type { NodeDeployment } from '../os/backend.ts';
import { type Current, nodeConfigOf } from '../records/current.ts';
import { mergeManaged, readManagedPaths } from '../records/managed-paths.ts';
import { desiredTree } from '../standard/desired-tree.ts';
import { carriedBy, verifyManaged } from '../standard/managed-content.ts';
import { LiveApplyRefused } from '../tree/tree-change.ts';
import { type LivePlan, planLiveApply } from '../tree-sync/live-plan.ts';
import { contentOfConfigs } from './own-content.ts';
import { type Preparation, type Requirements, requireReboot } from './preparation.ts';
import type { DeploymentChange } from './update.ts';

type StandardCurrent = Extract<Current, { mode: 'Standard' }>;
type OptInPreparation = Pick<Preparation, 'backend' | 'root' | 'signal'>;

/** An image on the disk, and how it is deployed. */
interface FetchedOptIn {
  readonly change: DeploymentChange;
  readonly labels: NodeDeployment['labels'];
}

/**
 * Works out what an image asks of a node in standard mode. What runs stays the next boot.
 *
 * @param fetched the image.
 * @returns no reboot where the running root has the image's content already, but for what the layer adds of its own; in any
 *   doubt a reboot.
 * @throws what OsBackend.status and tool throw, RecordError, PrepareRefused.
 */
export async function requirementsOfOptIn(
  preparation: OptInPreparation,
  current: StandardCurrent,
  { change, labels }: FetchedOptIn,
): Promise<Requirements> {
  const optIn = decideOptIn(
    {
      config: current.config,
      base: current.baseImage ?? '',
      osBackend: (await preparation.backend.tool(preparation.signal)).name,
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
  const { backend, signal } = preparation;
  const staged = await backend.stage(image, { ...extra, signal });
  try {
    return await findDifference(preparation, current, staged);
  } finally {
    await backend.unstage(signal);
  }
}

/** @returns what tells the running root from the image, as a clause; undefined where it is the layer alone. */
async function findDifference(
  { backend, root, signal }: OptInPreparation,
  current: StandardCurrent,
  staged: NodeDeployment,
): Promise<string | undefined> {
  // The force file permits what was changed by hand; a reboot puts it right.
  const [drift] = await verifyManaged(root, current, signal);
  if (drift !== undefined) return `${drift.path} is not as ${current.config} has it`;
  const content = await carriedBy(staged.root);
  if (content === undefined) return 'the image carries no rendered config';
  const { booted } = await backend.status(signal);
  const managed = mergeManaged(
    await handedOverTo(root, staged.root),
    await contentOfConfigs({ root, current, again: false, signal }, undefined),
    await readManagedPaths(root),
  );
  try {
    const plan = await planLiveApply({ root, booted, staged, managed }, signal);
    const ofLayer = await realPlaces(root, [
      ...(await desiredTree({ root }, content.config, content.delivery)).keys(),
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

/** @returns a path that would change and that the layer of the image does not bring; directories above its own are its own. */
function foreignChange({ usr, etc }: LivePlan, ofLayer: ReadonlySet<string>) {
  const own = new Set([...ofLayer].flatMap(withParents));
  return [...usr, ...etc].find(({ kind, path }) => kind === 'remove' || !own.has(path))?.path;
}

function withParents(name: string): readonly string[] {
  return name === '/' ? [] : [name, ...withParents(posix.dirname(name))];
}
