import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../../api/machine-os-build.ts';
import { conditionIsTrue } from '../../../cluster/update-object.ts';
import type { History } from '../history/history.ts';
import { replay } from '../history/replay.ts';
import type { Violation } from './violation.ts';

/** A node that says Updated has the bytes of its rendered config. */
export function checkBytes({ events }: History): readonly Violation[] {
  return events.flatMap((event) =>
    event.what === 'bytes' && event.differences.length > 0
      ? [
          {
            invariant: 'bytes',
            at: event.at,
            message: `node ${event.node} says that it runs ${event.config}: ${event.differences.join('; ')}`,
          },
        ]
      : [],
  );
}

/** Where an image comes from. */
interface Origin {
  readonly pool: string;
  readonly config: string;
}

/** A node gets and stages only images of its own pool that were built of the config that it is to run. */
export function checkImages(history: History): readonly Violation[] {
  const violations: Violation[] = [];
  const built = new Map<string, Origin>();
  const assigned = new Map<string, Set<string>>();
  for (const { event } of replay(history)) {
    if (event.what !== 'object' || event.type === 'DELETED') continue;
    if (event.object.kind === 'MachineOSBuild') {
      const { spec, status } = event.object as MachineOSBuild;
      const origin = { pool: spec.machineOSConfig.name, config: spec.machineConfig.name };
      if (status?.digestedImagePushSpec !== undefined) built.set(status.digestedImagePushSpec, origin);
    }
    if (event.object.kind !== 'MachineConfigNode') continue;
    const node = event.object as MachineConfigNode;
    const own = assigned.get(node.metadata.name) ?? new Set();
    assigned.set(node.metadata.name, own);
    const problems = imageProblems(node, built, own);
    const name = `node ${node.metadata.name}`;
    violations.push(
      ...problems.map((problem) => ({ invariant: 'images', at: event.at, message: `${name}: ${problem}` })),
    );
  }
  return violations;
}

/** @param own the images that the node was assigned so far, to which its present one is added. */
function imageProblems(
  { spec, status }: MachineConfigNode,
  built: ReadonlyMap<string, Origin>,
  own: Set<string>,
): readonly string[] {
  const problems: string[] = [];
  const image = spec.configImage?.desiredImage;
  if (image !== undefined && !own.has(image)) {
    own.add(image);
    const origin = built.get(image);
    if (origin === undefined) problems.push(`is assigned ${image}, which no build has pushed`);
    else if (origin.pool !== spec.pool.name || origin.config !== spec.configVersion.desired)
      problems.push(
        `is assigned ${image} of pool ${origin.pool} and ${origin.config}, but it is to run ${spec.configVersion.desired} of pool ${spec.pool.name}`,
      );
  }
  const staged = status?.plan?.staged === true ? status.plan.image : undefined;
  if (staged !== undefined && !own.has(staged))
    problems.push(`staged ${staged}, which it was never assigned`);
  return problems;
}

/**
 * What boots without a grant is not taken for an update that was granted: a node that says Updated there says
 * `withoutGrant`, too.
 */
export function checkBoots(history: History): readonly Violation[] {
  const violations: Violation[] = [];
  const nodes = new Map<string, NodePast>();
  const pastOf = (name: string): NodePast => {
    const past = nodes.get(name) ?? { booted: undefined, granted: new Set(), ungranted: undefined };
    nodes.set(name, past);
    return past;
  };
  for (const { event } of replay(history)) {
    if (event.what === 'boot') {
      const past = pastOf(event.node);
      const isNew = past.booted !== undefined && event.image !== past.booted.image;
      const wasGranted = event.image === undefined || past.granted.has(event.image);
      past.ungranted = isNew && !wasGranted ? event : undefined;
      past.booted = event;
    }
    if (event.what !== 'object' || event.object.kind !== 'MachineConfigNode') continue;
    const node = event.object as MachineConfigNode;
    const past = pastOf(node.metadata.name);
    for (const image of mayRun(node)) past.granted.add(image);
    const { ungranted } = past;
    if (ungranted === undefined || !claimsUpdate(node, ungranted)) continue;
    past.ungranted = undefined;
    const message = `node ${node.metadata.name} booted ${ungranted.image} without a grant, and counts as updated to it`;
    violations.push({ invariant: 'boots', at: event.at, message });
  }
  return violations;
}

/** @returns images that the node was granted, or that it has run as its stock image and may roll back to. */
function mayRun({ spec, status }: MachineConfigNode): readonly string[] {
  const granted = spec.grant === undefined ? [] : [spec.grant.image, spec.osImage];
  return [...granted, status?.baseImage].filter((image) => image !== undefined);
}

function claimsUpdate(
  { status }: MachineConfigNode,
  { bootID, image }: NonNullable<NodePast['ungranted']>,
): boolean {
  return (
    status?.bootID === bootID &&
    status.configImage?.currentImage === image &&
    conditionIsTrue(status.conditions, 'Updated') &&
    status.lastUpdate?.withoutGrant !== true
  );
}

interface NodePast {
  booted: { readonly image: string | undefined } | undefined;
  readonly granted: Set<string>;
  /** The present boot, where nobody granted what it booted. */
  ungranted: { readonly image: string | undefined; readonly bootID: string } | undefined;
}
