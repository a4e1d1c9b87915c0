import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import type { SettingValues } from '../../api/pool-settings/table.ts';
import { type Digest, digestInName } from '../../api/references.ts';
import {
  type BaseVulnerabilities,
  formatCounts,
  hasSeverity,
  type LeastSeverity,
  reachesSeverity,
  SEVERITIES,
} from '../../api/vulnerabilities.ts';
import type { NodeState } from '../pools/node-state.ts';
import { hasCondition } from '../pools/same-content.ts';
import type { Hold, StartHold } from './hold.ts';

/** Of an update that is held for what it brings. */
const BROUGHT = 'VulnerabilitiesBrought';
/** The same while nobody can say. */
const UNKNOWN = 'VulnerabilitiesUnknown';

/** The base images of a pool's image, and what they bring in the place of others. */
export interface TargetBases {
  /** Of the image, and after it of each in an index. */
  readonly bases: readonly Digest[];
  readonly compared: readonly BaseVulnerabilities[];
}

/** @returns what builds record of the base images of an image, as far as they succeeded. */
export function targetBases(builds: readonly MachineOSBuild[], image: string): TargetBases {
  const own = builds.filter(
    (build) => build.status?.digestedImagePushSpec === image && hasCondition(build, 'Succeeded'),
  );
  const named = own.flatMap(({ status }) => [
    status?.baseImage,
    ...(status?.instances ?? []).map(({ baseImage }) => baseImage),
  ]);
  return {
    bases: named.flatMap((base) => digestInName(base) ?? []),
    compared: own.flatMap(({ status }) => status?.vulnerabilities ?? []),
  };
}

interface Awaiting {
  readonly settings: Pick<SettingValues, 'holds'>;
  readonly gateInputs: { readonly targetBases?: TargetBases | undefined };
  readonly nodes: readonly {
    readonly node: Pick<Node, 'metadata'>;
    readonly machineConfigNode: MachineConfigNode | undefined;
  }[];
}

/**
 * Nodes wait whose update brings a vulnerability that the pool must not get, and those of which nobody can say. What
 * has the same base image as the node doesn't wait: an update of configuration brings none. A new node waits, too: it
 * takes pods with the target.
 */
export const vulnerabilities = {
  kind: 'start',
  reasons: { [BROUGHT]: 'others', [UNKNOWN]: 'others' },
  hold: (
    { settings: { holds }, gateInputs: { targetBases: target }, nodes }: Awaiting,
    states: readonly NodeState[],
  ): StartHold | undefined => {
    const least = holds.vulnerabilities;
    if (least === undefined || target === undefined) return undefined;
    if (isAccepted(target.bases, holds.acceptedBaseImages ?? [])) return undefined;
    const runs = new Map(
      nodes.map(({ node, machineConfigNode }) => [
        node.metadata.name,
        digestInName(machineConfigNode?.status?.baseImage),
      ]),
    );
    const held = states.flatMap(({ name }) => {
      const hold = baseHold(runs.get(name), target, least);
      return hold === undefined ? [] : [{ name, hold }];
    });
    const [first] = held.toSorted((a, b) => rankOf(a.hold) - rankOf(b.hold));
    return first && { hold: first.hold, held: new Set(held.map(({ name }) => name)) };
  },
} as const;

/** Which architecture a node takes is not known here: an index is accepted by its own digest, or by all that it has. */
function isAccepted([whole, ...instances]: readonly Digest[], accepted: readonly string[]): boolean {
  const isIn = (base: Digest) => accepted.includes(base);
  return (whole !== undefined && isIn(whole)) || (instances.length > 0 && instances.every(isIn));
}

/** What is known to be brought is said before what nobody knows. */
function rankOf({ reason }: Hold): number {
  return reason === BROUGHT ? 0 : 1;
}

function baseHold(
  from: Digest | undefined,
  { bases, compared }: TargetBases,
  least: LeastSeverity,
): Hold | undefined {
  if (from !== undefined && bases.includes(from)) return undefined;
  if (from === undefined) return unknown('it is not known which base image the node runs', bases);
  const own = compared.filter((each) => digestInName(each.from) === from);
  if (own.length === 0)
    return unknown(`the builder has not compared the reports of ${from} and the new base image yet`, bases);
  const bad = own.find(({ brought }) => brought !== undefined && hasSeverity(brought, least));
  if (bad !== undefined) return brings(bad, least, bases);
  const missing = own.find(({ result }) => result === 'NoReport');
  return missing && unknown(missing.message, bases);
}

/** Ids that a message names. */
const NAMED = 3;

function brings(
  { brought = {}, worst = [] }: BaseVulnerabilities,
  least: LeastSeverity,
  bases: readonly Digest[],
): Hold {
  const counts = Object.fromEntries(
    SEVERITIES.filter((severity) => reachesSeverity(severity, least)).map((severity) => [
      severity,
      brought[severity] ?? 0,
    ]),
  );
  const named = worst
    .filter(({ severity }) => reachesSeverity(severity, least))
    .slice(0, NAMED)
    .map(({ id, package: name }) => (name === '' ? id : `${id} (${name})`));
  const why = `the new base image brings ${formatCounts(counts)}, such as ${named.join(', ')}`;
  return { reason: BROUGHT, message: message(why, bases) };
}

function unknown(why: string, bases: readonly Digest[]): Hold {
  return {
    reason: UNKNOWN,
    message: message(`it is not known what the new base image brings: ${why}`, bases),
  };
}

function message(why: string, bases: readonly Digest[]): string {
  const field = fieldOf('holds');
  return `updates wait for vulnerabilities (${field}): ${why}; to take it all the same, add ${bases[0] ?? 'its digest'} to ${field}.acceptedBaseImages`;
}
