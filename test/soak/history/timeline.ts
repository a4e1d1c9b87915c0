import type { Lease, Node } from '../../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../../api/machine-os-build.ts';
import { annotations } from '../../../api/names.ts';
import type { Condition, KubernetesObject } from '../../../api/object.ts';
import type { History, HistoryEvent, ObjectVersion } from './history.ts';
import { replay } from './replay.ts';

/** @returns a history for people: one line for each fault, each boot, and each change of an object that matters. */
export function timeline(history: History): readonly string[] {
  const lines: string[] = [];
  for (const { event, before } of replay(history)) {
    const text = event.what === 'object' ? describeVersion(event, before) : describeEvent(event);
    if (text !== undefined) lines.push(`${seconds(event.at)} ${text}`);
  }
  return lines;
}

/** @param at ms since the campaign began. @returns it in seconds, in columns. */
export function seconds(at: number): string {
  return `${(at / 1000).toFixed(2).padStart(9)}s`;
}

/** Annotations of a Node that say who holds it. */
const SIGNS = [annotations.cordonedByShale, annotations.plannedMaintenance, annotations.poweredOff];

const PHASES = { begins: '>>>', ends: '<<<', fails: '!!!' } as const;

function describeEvent(event: Exclude<HistoryEvent, ObjectVersion>): string | undefined {
  switch (event.what) {
    case 'fault':
      return `${PHASES[event.phase]} ${event.fault} ${event.subject} ${event.details}`.trimEnd();
    case 'started':
      return `process ${event.pod} (${event.pid}) started`;
    case 'ended': {
      const how = event.code === null ? `signal ${event.signal}` : `exit code ${event.code}`;
      return `process ${event.pod} (${event.pid}) ended: ${how}${event.expected ? '' : ', by itself'}`;
    }
    case 'raw line':
      return `log of ${event.pod}: ${event.line}`;
    case 'boot':
      return `disk of ${event.node}: booted ${short(event.image ?? 'no image')} (${event.bootID})`;
    case 'bytes':
      return event.differences.length === 0
        ? undefined
        : `disk of ${event.node}: not as ${event.config} says: ${event.differences.join('; ')}`;
    case 'disk':
      return undefined;
    case 'edit':
      return `--- edit ${event.token} of MachineConfig ${event.machineConfig}`;
    case 'admin cordon':
      return `--- an admin ${event.cordoned ? 'cordoned' : 'uncordoned'} ${event.node}`;
    case 'secret found':
      return `a secret is in ${event.where}`;
    case 'leaked images':
      return event.images.length === 0 ? undefined : `images of no object: ${event.images.join(', ')}`;
    case 'calm':
      return `=== calm (${event.mode})`;
  }
}

function describeVersion(
  { type, object }: ObjectVersion,
  before: KubernetesObject | undefined,
): string | undefined {
  const { kind, metadata } = object;
  const state = stateOf(object);
  if (state === undefined) return undefined;
  if (type === 'DELETED') return `${kind} ${metadata.name}: deleted`;
  const was = new Set(before === undefined ? [] : stateOf(before));
  const changed = state.filter((line) => !was.has(line));
  return changed.length === 0 ? undefined : `${kind} ${metadata.name}: ${changed.join(', ')}`;
}

/** @returns what matters of an object, in words; undefined for kinds that say nothing of a rollout. */
function stateOf(object: KubernetesObject): readonly string[] | undefined {
  switch (object.kind) {
    case 'MachineConfigNode':
      return nodeState(object as MachineConfigNode);
    case 'MachineConfigPool': {
      const { spec, status } = object as MachineConfigPool;
      const paused = spec.paused === true ? ['paused'] : ['not paused'];
      return [
        `config ${short(spec.configuration?.name ?? 'none')}`,
        ...paused,
        ...conditions(status?.conditions, ['Updated', 'Degraded', 'NodeDegraded', 'RenderDegraded']),
      ];
    }
    case 'MachineOSBuild': {
      const { status } = object as MachineOSBuild;
      const image = status?.digestedImagePushSpec;
      return [
        ...conditions(status?.conditions, ['Building', 'Succeeded', 'Failed', 'Interrupted']),
        ...(image === undefined ? [] : [`image ${short(image)}`]),
      ];
    }
    case 'Node': {
      const { metadata, spec, status } = object as Node;
      return [
        spec?.unschedulable === true ? 'cordoned' : 'schedulable',
        ...(spec?.taints ?? []).map(({ key }) => `taint ${key}`),
        ...SIGNS.filter((sign) => metadata.annotations?.[sign] !== undefined),
        ...(metadata.deletionTimestamp === undefined ? [] : ['being deleted']),
        ...conditions(status?.conditions as readonly Condition[] | undefined, ['Ready']),
      ];
    }
    case 'Machine':
    case 'NodeMaintenance':
      return [object.metadata.deletionTimestamp === undefined ? 'there' : 'being deleted'];
    case 'Lease':
      return [`held by ${(object as Lease).spec?.holderIdentity ?? 'nobody'}`];
    default:
      return undefined;
  }
}

function nodeState({ spec, status }: MachineConfigNode): readonly string[] {
  const { plan, lastUpdate } = status ?? {};
  return [
    `pool ${spec.pool.name}`,
    `desired ${target(spec.configVersion.desired, spec.configImage?.desiredImage)}`,
    spec.grant === undefined ? 'no grant' : `granted ${spec.grant.level} for ${short(spec.grant.config)}`,
    `runs ${target(status?.configVersion?.current ?? 'nothing', status?.configImage?.currentImage)}`,
    ...(spec.heldBy === undefined ? [] : [`held: ${spec.heldBy}`]),
    ...(plan === undefined
      ? []
      : [
          `plans ${target(plan.config, plan.image)}${plan.staged ? ', staged' : ''}: ${plan.actions.map(({ type }) => type).join(' ')}`,
        ]),
    ...(lastUpdate === undefined
      ? []
      : [`last update ${short(lastUpdate.config)} ${lastUpdate.result} ${lastUpdate.finishedAt}`]),
    ...conditions(status?.conditions, ['Updated', 'NodeDegraded']),
  ];
}

function target(config: string, image: string | undefined): string {
  return image === undefined ? short(config) : `${short(config)} in ${short(image)}`;
}

function conditions(all: readonly Condition[] | undefined, types: readonly string[]): readonly string[] {
  return (all ?? [])
    .filter(({ type }) => types.includes(type))
    .map(({ type, status, reason, message }) =>
      status === 'True' && type !== 'Updated' && type !== 'Ready'
        ? `${type}=${status} (${reason}: ${message})`
        : `${type}=${status}`,
    );
}

/** @returns a name with its hash cut to what people tell apart. */
function short(name: string): string {
  return name.replace(/([0-9a-f]{8})[0-9a-f]{24,56}/g, '$1');
}
