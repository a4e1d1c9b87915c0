import { isDeepStrictEqual } from 'node:util';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { noun } from '../../api/plural.ts';
import { diffNodeConfigs } from '../../machineconfig/diff.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { configsWith, type Subject } from '../../machineconfig/owners.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { readableNodeConfig } from '../../predict/objects/cluster-state.ts';
import { type OfflineCluster, offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { type OfflineRendering, renderOffline } from '../../predict/objects/offline-rendering.ts';
import { objectsAfter, type PoolWrite, type WantedContent } from './wanted-content.ts';
import type { WorkloadState } from './workload-state.ts';

type Rendering = Extract<OfflineRendering, { readonly ok: true }>;

/** Whether a pool can have what is wanted of it: the config that the operator renders then, or why not. */
export type Renderable =
  | { readonly kind: 'renderable'; readonly rendering: Rendering }
  | { readonly kind: 'impossible'; readonly why: string };

/**
 * Renders a pool as the operator will once the writes are done.
 *
 * Another MachineConfig of the pool may have the same file, and then that one's content is what nodes get: nobody would
 * ever be done. A custom pool inherits the MachineConfigs and the stream of `worker` (MCO, "Custom pools"), and its
 * nodes would be updated, too, by whoever decides about them.
 */
export function renderable(
  workload: WorkloadState,
  pool: MachineConfigPool,
  wanted: WantedContent,
  writes: readonly PoolWrite[],
): Renderable {
  const after = offlineCluster(objectsAfter(workload.objects, writes), { isLive: true });
  const { name } = pool.metadata;
  const own = after.pools.find(({ metadata }) => metadata.name === name);
  if (own === undefined) return { kind: 'impossible', why: `MachineConfigPool ${name} is not valid` };
  const rendering = renderOffline(after, own);
  if (!rendering.ok)
    return {
      kind: 'impossible',
      why: `the pool ${name} can't be rendered: ${rendering.problems.join('; ')}`,
    };
  const why = overridden(wanted, rendering) ?? inheritedBy(workload, name, after);
  return why === undefined ? { kind: 'renderable', rendering } : { kind: 'impossible', why };
}

/** @returns which other pools with nodes would change as well; undefined where none would. */
function inheritedBy(
  { objects, machineConfigNodes }: WorkloadState,
  own: string,
  after: OfflineCluster,
): string | undefined {
  const populated = new Set(machineConfigNodes.map(({ spec }) => spec.pool.name));
  const others = after.pools.filter(({ metadata: { name } }) => name !== own && populated.has(name));
  if (others.length === 0) return undefined;
  const before = offlineCluster(objects, { isLive: true });
  const changed = others.filter((pool) => {
    const then = before.pools.find(({ metadata }) => metadata.name === pool.metadata.name);
    return then !== undefined && renderedName(before, then) !== renderedName(after, pool);
  });
  if (changed.length === 0) return undefined;
  const names = changed.map(({ metadata }) => metadata.name).join(' and ');
  return `the nodes of ${names} would change as well, because ${noun(changed.length, 'that pool inherits', 'those pools inherit')} from ${own}`;
}

/** @returns undefined for a pool that can't be rendered, and so keeps what it has. */
function renderedName(cluster: OfflineCluster, pool: MachineConfigPool): string | undefined {
  const rendering = renderOffline(cluster, pool);
  return rendering.ok ? rendering.rendered.metadata.name : undefined;
}

/** @returns why the rendered config doesn't have what is wanted; undefined where it does. */
function overridden({ config, stream }: WantedContent, rendering: Rendering): string | undefined {
  if (stream !== undefined && rendering.rendered.metadata.annotations?.[annotations.osImageStream] !== stream)
    return `osImageURL of ${othersWith({ kind: 'field', subject: 'osImageURL' }, undefined, rendering)} overrides the stream ${stream}`;
  if (config === undefined) return undefined;
  const parsed = parseNodeConfig(config);
  if (!parsed.ok) return `it is not valid: ${parsed.problems.map(formatProblem).join('; ')}`;
  const lost = lostSubject(parsed.config, rendering.config);
  if (lost === undefined) return undefined;
  if (!rendering.configs.some(({ metadata }) => metadata.name === config.metadata.name))
    return `the machineConfigSelector of the pool does not select MachineConfig ${config.metadata.name}`;
  return `${othersWith(lost, config, rendering)} overrides ${lost.subject}`;
}

/** @returns the first thing of a config that another one doesn't have. */
function lostSubject(wanted: NodeConfig, has: NodeConfig): Subject | undefined {
  const file = [...wanted.files].find(([path, each]) => !isDeepStrictEqual(has.files.get(path), each));
  if (file !== undefined) return { kind: 'file', subject: file[0] };
  const keys = [...wanted.sshKeys].find(([user, own]) =>
    own.some((key) => has.sshKeys.get(user)?.includes(key) !== true),
  );
  if (keys !== undefined) return { kind: 'sshKey', subject: keys[0] };
  const isOther = wanted.osImageURL !== '' && wanted.osImageURL !== has.osImageURL;
  return isOther ? { kind: 'field', subject: 'osImageURL' } : undefined;
}

function othersWith(subject: Subject, own: MachineConfig | undefined, { configs }: Rendering): string {
  const others = configsWith(subject, configs).filter((name) => name !== own?.metadata.name);
  return others.length === 0 ? 'another MachineConfig' : `MachineConfig ${others.join(' and ')}`;
}

/** What a pool's nodes are to run. */
export type RenderedTarget =
  | { readonly kind: 'rendered'; readonly config: string }
  | { readonly kind: 'awaited'; readonly why: string }
  /** Somebody has to act. */
  | { readonly kind: 'stuck'; readonly why: string };

/** @returns whether the operator has rendered what the pool's MachineConfigs say now. */
export function renderedTarget(
  { rendered }: WorkloadState,
  { metadata: { name, annotations: own }, spec, status }: MachineConfigPool,
  rendering: Rendering,
): RenderedTarget {
  const failed = status?.conditions?.find(({ type }) => type === 'RenderDegraded');
  if (failed?.status === 'True')
    return { kind: 'stuck', why: `the pool ${name} can't be rendered: ${failed.message}` };
  const config = spec.configuration?.name ?? '';
  const target = rendered.get(config);
  const has = readableNodeConfig(target);
  const streams = [target, rendering.rendered].map(
    (each) => each?.metadata.annotations?.[annotations.osImageStream],
  );
  const isSame = has !== undefined && diffNodeConfigs(has, rendering.config).length === 0;
  if (!isSame || streams[0] !== streams[1])
    return { kind: 'awaited', why: `the pool ${name} is about to be rendered` };
  if (own?.[annotations.rollback] !== undefined)
    return {
      kind: 'stuck',
      why: `the pool ${name} is rolled back and stays there until its annotation ${annotations.rollback} is removed`,
    };
  return { kind: 'rendered', config };
}
