import { errorMessage } from '../api/error-message.ts';
import type { ConfigMap } from '../api/kubernetes.ts';
import { type LabelSelector, matchesSelector, parseLabelSelector } from '../api/label-selector.ts';
import { type KubernetesObject, ObjectName } from '../api/object.ts';
import { DigestedPullspecSchema, TaggedPullspecSchema } from '../api/references.ts';

/** Whether images are signed and nodes verify them. */
export type Signing = 'required' | 'disabled';

/** What the ConfigMap `on-cluster-layering` asks for. */
export type SwitchState =
  | { readonly kind: 'off' }
  | { readonly kind: 'on'; readonly settings: SwitchSettings }
  /** Can't be read: the previous settings remain in effect. */
  | { readonly kind: 'invalid'; readonly problems: readonly SwitchProblem[] };

export interface SwitchSettings {
  /** Where a pool's images go, with `{pool}` for the pool's name: `host[:port]/repository`. */
  readonly imageRepository: string;
  readonly pushSecret?: string;
  readonly pullSecret?: string;
  /** The base image for pools whose MachineConfigs set no osImageURL. */
  readonly baseImage?: string;
  /** Names of the pools that are layered. */
  readonly pools?: readonly string[];
  /** Labels of further pools that are layered. Without names and labels every pool is. */
  readonly poolSelector?: LabelSelector;
}

export interface SwitchProblem {
  /** Key of the ConfigMap's data. */
  readonly key: string;
  readonly problem: string;
}

const KEYS = [
  'enabled',
  'imageRepository',
  'pushSecret',
  'pullSecret',
  'baseImage',
  'pools',
  'poolSelector',
  'signing',
] as const;
type Key = (typeof KEYS)[number];

/**
 * Reads the switch.
 *
 * @param configMap the ConfigMap, or undefined when there is none, which means off.
 * @returns off for `enabled` absent or "false"; on with its settings; or every problem at once. An unknown key is a
 *   problem, because a misspelled one would otherwise be ignored silently.
 */
export function readSwitch(configMap: ConfigMap | undefined): SwitchState {
  const data = configMap?.data ?? {};
  const problems: SwitchProblem[] = [];
  for (const key of Object.keys(data).sort()) {
    if (!KEYS.includes(key as Key))
      problems.push({ key, problem: `unknown key; known are ${KEYS.join(', ')}` });
  }
  const enabled = data['enabled'] ?? 'false';
  if (enabled !== 'true' && enabled !== 'false') {
    problems.push({ key: 'enabled', problem: `is ${JSON.stringify(enabled)}; expected "true" or "false"` });
  }
  // Off needs no settings: an admin must be able to switch off whatever else the ConfigMap says.
  if (enabled === 'false') return { kind: 'off' };
  const settings = readSettings(data, problems);
  return problems.length > 0 ? { kind: 'invalid', problems } : { kind: 'on', settings };
}

/**
 * Only the word `disabled` switches signing off: a missing or misspelt value does not.
 *
 * @param configMap the switch, whether layering is on or off: an admin's own MachineOSConfigs are signed as well.
 */
export function readSigning(configMap: ConfigMap | undefined): Signing {
  return configMap?.data?.['signing']?.trim() === 'disabled' ? 'disabled' : 'required';
}

function readSettings(data: Readonly<Record<string, string>>, problems: SwitchProblem[]): SwitchSettings {
  const text = (key: Key): string | undefined => {
    const value = data[key]?.trim();
    return value === '' ? undefined : value;
  };
  const name = (key: Key): string | undefined => {
    const value = text(key);
    if (value !== undefined && !ObjectName.safeParse(value).success) {
      problems.push({ key, problem: `is ${JSON.stringify(value)}; expected the name of a Secret` });
    }
    return value;
  };
  const imageRepository = text('imageRepository') ?? '';
  // Any name of a pool makes the same kind of reference.
  if (!TaggedPullspecSchema.safeParse(`${imageRepository.replaceAll('{pool}', 'pool')}:latest`).success) {
    problems.push({
      key: 'imageRepository',
      problem: `is ${JSON.stringify(imageRepository)}; expected host[:port]/repository, where {pool} stands for the pool's name`,
    });
  }
  const pools = text('pools')
    ?.split(/[\s,]+/)
    .filter((pool) => pool !== '');
  for (const pool of pools ?? []) {
    if (!ObjectName.safeParse(pool).success) {
      problems.push({
        key: 'pools',
        problem: `${JSON.stringify(pool)} is not the name of a MachineConfigPool`,
      });
    }
  }
  const signing = text('signing');
  if (signing !== undefined && signing !== 'required' && signing !== 'disabled') {
    problems.push({
      key: 'signing',
      problem: `is ${JSON.stringify(signing)}; expected "required" or "disabled"`,
    });
  }
  const baseImage = text('baseImage');
  if (baseImage !== undefined && !isImage(baseImage)) {
    problems.push({
      key: 'baseImage',
      problem: `is ${JSON.stringify(baseImage)}; expected host[:port]/repository:tag or host[:port]/repository@sha256:…`,
    });
  }
  const optional = <K extends string, V>(key: K, value: V | undefined) =>
    value === undefined ? {} : { [key]: value };
  return {
    imageRepository,
    ...optional('pushSecret', name('pushSecret')),
    ...optional('pullSecret', name('pullSecret')),
    ...optional('baseImage', baseImage),
    ...optional('pools', pools),
    ...optional('poolSelector', readSelector(text('poolSelector'), problems)),
  };
}

function isImage(text: string): boolean {
  return [TaggedPullspecSchema, DigestedPullspecSchema].some((schema) => schema.safeParse(text).success);
}

function readSelector(text: string | undefined, problems: SwitchProblem[]): LabelSelector | undefined {
  if (text === undefined) return undefined;
  try {
    return parseLabelSelector(text);
  } catch (error) {
    problems.push({ key: 'poolSelector', problem: errorMessage(error) });
    return undefined;
  }
}

/** @returns whether the switch layers a pool. */
export function takesPool(
  { pools, poolSelector }: SwitchSettings,
  { metadata: { name, labels = {} } }: Pick<KubernetesObject, 'metadata'>,
): boolean {
  if (pools === undefined && poolSelector === undefined) return true;
  return (
    pools?.includes(name) === true || (poolSelector !== undefined && matchesSelector(poolSelector, labels))
  );
}
