import type { MachineConfigNodeSpec, UpdatePlan } from '../../api/machine-config-node.ts';
import { present } from '../../api/present.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { NodePorts } from '../host/host.ts';
import type { FetchedImage, OsBackend, StageOptions } from '../os/backend.ts';
import type { VerifiedImage } from '../os/image-policy/policy-entries.ts';
import { type Current, PrepareRefused } from '../records/current.ts';
import type { JournalEntry } from '../records/journal.ts';
import { readLeftOut } from '../records/left-out.ts';
import { formatDrifts, isForced } from '../standard/drift.ts';
import { verifyWithLabels } from '../standard/label-drift.ts';
import { byCause, managedContent } from '../standard/managed-content.ts';
import { chooseReboot, planReboot } from './choose-reboot.ts';
import type { DeploymentChange } from './update.ts';
import { reboots } from './update.ts';

/** What preparing a target needs to know. */
export interface Preparation {
  readonly client: ApiClient;
  /** Of Shale's objects. */
  readonly namespace: string;
  readonly signatures: NodePorts['signatures'];
  readonly backend: OsBackend;
  /** The running root. */
  readonly root: string;
  readonly wrongLabels: NodePorts['wrongLabels'];
  readonly spec: MachineConfigNodeSpec;
  readonly current: Current | undefined;
  /** What the kernel was started with; undefined where that isn't known. */
  readonly runningArguments: readonly string[] | undefined;
  /** An update that left the running system between two states: only a reboot is a way out. */
  readonly stuck: JournalEntry | undefined;
  /** Has the host's own tools take only images that these keys signed; none: any. Called before anything is staged. */
  readonly policeImages: (images: readonly VerifiedImage[]) => Promise<void>;
  readonly onProgress: (bytesDone: number, bytesTotal: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Brings the image of a deployment to the disk. What the node boots next stays what it is until the grant.
 *
 * @param options `evenIfBooted` for a target that is reached by a reboot: see StageOptions.
 * @throws what OsBackend.fetch throws.
 */
export function fetchTarget(
  { backend, onProgress, signal }: Pick<Preparation, 'backend' | 'onProgress' | 'signal'>,
  { image, ...extra }: DeploymentChange,
  options: Pick<StageOptions, 'evenIfBooted' | 'accept'>,
): Promise<FetchedImage> {
  return backend.fetch(image, { ...extra, ...options, onProgress, signal });
}

/**
 * A node whose disk somebody else has changed is not updated (MCO, validateOnDiskState): told here, before anything is
 * cordoned or drained for an update that would not be carried out.
 *
 * @throws PrepareRefused, and what verifyWithLabels throws.
 */
export async function refuseChangedDisk({
  root,
  wrongLabels,
  current,
  stuck,
  signal,
}: Pick<Preparation, 'root' | 'wrongLabels' | 'current' | 'stuck' | 'signal'>): Promise<void> {
  if (stuck !== undefined || (await isForced(root))) return;
  const content = await managedContent(root, current);
  const drifts = await verifyWithLabels({ root, wrongLabels }, content, signal);
  const { byHand } = byCause(drifts, await readLeftOut(root));
  if (byHand.length > 0) throw new PrepareRefused(formatDrifts(byHand));
}

/** What a target asks of the node, and who says so. */
export type Requirements = Pick<UpdatePlan, 'actions' | 'causes' | 'source' | 'softReboot'>;

/**
 * @param next what an update that reboots will boot; undefined where that is the booted deployment.
 * @returns what it asks, with how it reboots. @throws what OsBackend.status throws.
 */
export async function withRebootChoice(
  preparation: Pick<Preparation, 'backend' | 'spec' | 'stuck' | 'runningArguments' | 'signal'>,
  required: Requirements,
  next: FetchedImage | undefined,
): Promise<Requirements> {
  const { backend, spec, stuck, signal } = preparation;
  if (spec.softReboot !== true || !reboots({ plan: required })) return required;
  const { booted } = await backend.status(signal);
  const { causes } = required;
  const running = present({ running: preparation.runningArguments });
  return planReboot(
    required,
    chooseReboot({ isAllowed: true, isStuck: stuck !== undefined, causes, booted, next, ...running }),
  );
}

/** @returns what is asked where no transition and no policy can be followed. @param why as text, for the status. */
export function requireReboot(why: string): Requirements {
  return { actions: [{ type: 'Reboot' }], causes: [], source: why };
}
