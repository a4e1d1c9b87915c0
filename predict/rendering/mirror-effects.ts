import { type DisruptionAction, type DisruptionCause, formatActions } from '../../api/disruption-action.ts';
import type { MirrorKind } from '../../api/disruption-policy.ts';
import type {
  ImageContentSourcePolicy,
  ImageDigestMirrorSet,
  ImageTagMirrorSet,
} from '../../api/image-sources.ts';
import { by } from '../../api/order.ts';
import { mirrorRuleChanges } from '../../disruption/registries-conf-change.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';

export type MirrorObject = ImageContentSourcePolicy | ImageDigestMirrorSet | ImageTagMirrorSet;

const REGISTRIES_CONF = '/etc/containers/registries.conf';

/** What the change of a mirror object requires of a pool's nodes. */
export interface MirrorEffect {
  /** The rendered config that brings it. */
  readonly config: string;
  readonly actions: readonly DisruptionAction[];
  readonly rule: string;
}

/** @returns sources that a mirror object has rules for. */
function sourcesOf(object: MirrorObject): readonly string[] {
  const { spec } = object;
  const rules =
    ('repositoryDigestMirrors' in spec && spec.repositoryDigestMirrors) ||
    ('imageDigestMirrors' in spec && spec.imageDigestMirrors) ||
    ('imageTagMirrors' in spec && spec.imageTagMirrors) ||
    [];
  return rules.map(({ source }) => source);
}

/**
 * Finds the effect of a mirror object on the change from one config to another, and what the change of registries.conf
 * requires of a node.
 *
 * @param transition from that config.
 * @returns undefined for an object whose rules don't change.
 */
export function mirrorEffect(
  object: MirrorObject & { readonly kind: string },
  from: NodeConfig,
  to: NodeConfig,
  transition: { readonly causes: readonly DisruptionCause[] },
): MirrorEffect | undefined {
  const changes = mirrorRuleChanges(textOf(from), textOf(to));
  const sources = sourcesOf(object);
  const touched = changes.some(
    ({ kind, source }) => kind === (object.kind as MirrorKind) && sources.includes(source),
  );
  const cause = transition.causes.find(({ subject }) => subject === REGISTRIES_CONF);
  if (!touched || cause === undefined) return undefined;
  return { config: to.name, actions: cause.actions, rule: cause.rule };
}

function textOf(config: NodeConfig): string | undefined {
  const file = config.files.get(REGISTRIES_CONF);
  return file === undefined ? undefined : Buffer.from(file.contents).toString('utf8');
}

/**
 * @param before the object's annotation as it is, for the other pools.
 * @returns the annotation with a pool's effect: JSON, the summary first.
 */
export function formatEffects(before: string | undefined, pool: string, effect: MirrorEffect): string {
  const pools = { ...readPools(before), [pool]: { ...effect, actions: formatActions(effect.actions) } };
  const sorted = Object.fromEntries(Object.entries(pools).toSorted(by(([name]) => name)));
  const summary = Object.entries(sorted).map(([name, { actions }]) => `${name}: ${actions}`);
  return JSON.stringify({ summary: summary.join('; '), pools: sorted });
}

interface PoolEffect {
  readonly config: string;
  readonly actions: string;
  readonly rule: string;
}

/** An annotation that can't be read was written by somebody else, and is replaced. */
function readPools(text: string | undefined): Readonly<Record<string, PoolEffect>> {
  if (text === undefined) return {};
  try {
    const { pools } = JSON.parse(text) as { readonly pools?: Readonly<Record<string, PoolEffect>> };
    return pools ?? {};
  } catch {
    return {};
  }
}
