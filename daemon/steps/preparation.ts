import path from 'node:path';
import { MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigNodeSpec, UpdatePlan } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { carriedConfig } from '../../machineconfig/rendered-annotations.ts';
import { type Drift, formatDrifts, isForced } from '../content/drift/drift.ts';
import { type ComparedHost, verifyWithLabels } from '../content/drift/label-drift.ts';
import { desiredTree, type ManagedContent, UnknownAccountError } from '../content/entries/desired-tree.ts';
import { byCause, managedContent } from '../content/managed-content.ts';
import { checkContent } from '../content/write/write-content.ts';
import { NoRoomError } from '../content/write/write-log.ts';
import { PathError } from '../files/host-file-error.ts';
import type { NodePorts } from '../host/host.ts';
import type { FetchedImage, StageOptions } from '../os/backend.ts';
import type { RebootKind } from '../reboot/reboot-words.ts';
import { type Current, nodeConfigOf, PrepareRefused } from '../records/current.ts';
import type { JournalEntry } from '../records/journal.ts';
import { readLeftOut } from '../records/left-out.ts';
import type { DeploymentChange } from './update.ts';

/** What preparing a target needs to know. Nothing that runs is changed by it. */
export interface Preparation {
  readonly spec: MachineConfigNodeSpec;
  readonly current: Current | undefined;
  /** What the kernel was started with; undefined where that isn't known. */
  readonly runningArguments: readonly string[] | undefined;
  /** An update that left the running system between two states: only a reboot is a way out. */
  readonly stuck: JournalEntry | undefined;
  readonly client: ApiClient;
  readonly ports: ComparedHost & Pick<NodePorts, 'backend'>;
  /**
   * Called before anything is staged. Ensures that the cluster signed an image, and has the host's own tools take no
   * other; `any`: they may take any.
   *
   * @throws PrepareRefused for an image that isn't signed.
   */
  readonly admit: (image: DigestedPullspec | 'any') => Promise<void>;
  readonly onProgress: (bytesDone: number, bytesTotal: number) => void;
  /** Aborted once somebody else holds the node: what is being fetched is given up, and nothing else is begun. */
  readonly held: AbortSignal;
  readonly signal: AbortSignal;
}

/**
 * Brings the image of a deployment to the disk. What the node boots next stays what it is until the grant.
 *
 * @param options `evenIfBooted` for a target that is reached by a reboot: see StageOptions.
 * @throws what OsBackend.fetch throws.
 */
export function fetchTarget(
  { ports, onProgress, held, signal }: Preparation,
  { image, ...extra }: DeploymentChange,
  options: Pick<StageOptions, 'evenIfBooted' | 'accept'>,
): Promise<FetchedImage> {
  return ports.backend.fetch(image, { ...extra, ...options, onProgress, interrupt: held, signal });
}

/** Nothing is staged, because somebody has changed the node's disk. */
export class ChangedDisk extends PrepareRefused {
  readonly drifts: readonly Drift[];

  constructor(drifts: readonly Drift[]) {
    super(formatDrifts(drifts));
    this.drifts = drifts;
  }
}

/**
 * A node whose disk somebody else has changed is not updated (MCO, validateOnDiskState): reported here, before anything
 * is cordoned or drained for an update that would not be carried out.
 *
 * @throws ChangedDisk, and what verifyWithLabels throws.
 */
export async function refuseChangedDisk({
  ports,
  current,
  stuck,
  signal,
}: Pick<Preparation, 'current' | 'stuck' | 'signal'> & { readonly ports: ComparedHost }): Promise<void> {
  const { root } = ports.host;
  if (stuck !== undefined || (await isForced(root))) return;
  const content = await managedContent(root, current);
  const drifts = await verifyWithLabels(ports, content, signal);
  const { byHand } = byCause(drifts, await readLeftOut(root));
  if (byHand.length > 0) throw new ChangedDisk(byHand);
}

/**
 * Refuses content that could not be written to this node as it is: found while the target is staged, before anything is
 * cordoned or drained for an update that would fail. What is in /etc of another deployment is not known yet, so on the
 * way from or to an image only the state that all deployments share is looked at.
 *
 * @param root the running root. @param to the target's content. @throws PrepareRefused, the file system's errors.
 */
export async function refuseUnwritable(
  root: string,
  { current, to }: { readonly current: Current | undefined; readonly to: ManagedContent },
  signal: AbortSignal,
): Promise<void> {
  const from = await managedContent(root, current);
  const isWithinStandard = to.delivery === 'Standard' && current?.mode !== 'Layered';
  const place = { root, stateDir: path.join(root, nodePaths.state) };
  try {
    const scope = isWithinStandard ? {} : ({ scope: 'state' } as const);
    await checkContent(place, { from, to, ...scope }, signal);
  } catch (error) {
    const isRefusal =
      error instanceof UnknownAccountError || error instanceof PathError || error instanceof NoRoomError;
    if (!isRefusal) throw error;
    throw new PrepareRefused(`${to.config.name} can't be written to this node: ${error.message}`, {
      cause: error,
    });
  }
}

/**
 * Refuses an image with a file of an owner that the node doesn't know. An image of another base may bring the owner
 * along, so this is asked where the base stays.
 *
 * @param root the running root. @throws PrepareRefused
 */
export async function refuseUnknownOwners(root: string, to: ManagedContent): Promise<void> {
  const desired = [...(await desiredTree({ root }, to)).values()];
  const unknown = desired.flatMap(({ unknownOwner }) => unknownOwner ?? []);
  if (unknown.length === 0) return;
  throw new PrepareRefused(`${to.config.name} can't be written to this node: ${unknown.join('; ')}`);
}

/**
 * @param name of a rendered config. @returns what an image of it brings; undefined where the cluster has the config no
 *   more.
 * @throws PrepareRefused when it can't be read, ApiError.
 */
export async function contentOfImage(
  { client, signal }: Pick<Preparation, 'client' | 'signal'>,
  name: string,
): Promise<ManagedContent | undefined> {
  const rendered = await client.find(MachineConfigs, name, { signal });
  return rendered && { delivery: 'Layered', config: nodeConfigOf(carriedConfig(rendered)) };
}

/** What a target asks of the node, and who says so. */
export type Requirements = Pick<UpdatePlan, 'actions' | 'causes' | 'source'> & RebootKind;

/** @returns what is asked where no transition and no policy can be followed. @param why as text, for the status. */
export function requireReboot(why: string): Requirements {
  return { actions: [{ type: 'Reboot' }], causes: [], source: why };
}
