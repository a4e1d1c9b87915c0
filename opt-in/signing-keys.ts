import { signingKeyName } from '../api/image-signing.ts';
import type { ConfigMap } from '../api/kubernetes.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { annotations, SIGNING_KEYS_CONFIG_MAP } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';

/** The key in the layering switch. Only the word `disabled` switches signing off: a missing or misspelt value does not. */
export const SIGNING_SETTING = 'signing';

/** Whether images are signed and nodes verify them. */
export type Signing = 'required' | 'disabled';

/** @param configMap the layering switch, whether layering is on or off: an admin's own MachineOSConfigs are signed as well. */
export function readSigning(configMap: ConfigMap | undefined): Signing {
  return configMap?.data?.[SIGNING_SETTING]?.trim() === 'disabled' ? 'disabled' : 'required';
}

/**
 * Decides what the ConfigMap of public keys contains. It is the operator's alone, so a key that nothing explains is removed.
 * After a rotation the previous key stays as long as a build exists that may have been signed with it: until then a node may
 * roll back to such an image.
 *
 * @param observed.current the public key in PEM that images are signed with now.
 * @returns the ConfigMap's content; undefined when it needs no change.
 */
export function decideSigningKeys(observed: {
  readonly signing: Signing;
  readonly published: ConfigMap | undefined;
  readonly current: string;
  readonly builds: readonly MachineOSBuild[];
  readonly now: Date;
}): NewObject<ConfigMap> | undefined {
  const { signing, published } = observed;
  const desired = signing === 'disabled' ? noKeys : keysInForce(observed);
  const present = { data: published?.data ?? {}, retired: retiredIn(published) };
  if (published !== undefined && sameKeys(present, desired)) return undefined;
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: SIGNING_KEYS_CONFIG_MAP,
      annotations: { [annotations.retiredSigningKeys]: JSON.stringify(desired.retired) },
    },
    data: desired.data,
  };
}

interface PublishedKeys {
  /** Public keys in PEM by name. */
  readonly data: Readonly<Record<string, string>>;
  /** When a key was replaced by another one. */
  readonly retired: Readonly<Record<string, string>>;
}

const noKeys: PublishedKeys = { data: {}, retired: {} };

function keysInForce({
  published,
  current,
  builds,
  now,
}: Pick<Parameters<typeof decideSigningKeys>[0], 'published' | 'current' | 'builds' | 'now'>): PublishedKeys {
  const name = signingKeyName(current);
  const before = retiredIn(published);
  const kept = Object.entries(published?.data ?? {}).flatMap(([key, pem]) => {
    if (key === name || key !== signingKeyName(pem)) return [];
    const retired = before[key] ?? retirement(builds, now);
    const isNeeded = builds.some((build) => createdAt(build) <= Date.parse(retired));
    return isNeeded ? [{ key, pem, retired }] : [];
  });
  return {
    data: { [name]: current, ...Object.fromEntries(kept.map(({ key, pem }) => [key, pem])) },
    retired: Object.fromEntries(kept.map(({ key, retired }) => [key, retired])),
  };
}

/**
 * Every build that exists now may have been signed with the key: also if the operator's clock is behind the API server's,
 * which stamps builds.
 */
function retirement(builds: readonly MachineOSBuild[], now: Date): string {
  return new Date(Math.max(now.getTime(), ...builds.map(createdAt))).toISOString();
}

/** @returns ms since the epoch, in whole seconds. A build without a time counts as old. */
function createdAt({ metadata }: MachineOSBuild): number {
  return metadata.creationTimestamp === undefined ? 0 : Date.parse(metadata.creationTimestamp);
}

function retiredIn(published: ConfigMap | undefined): Readonly<Record<string, string>> {
  const text = published?.metadata.annotations?.[annotations.retiredSigningKeys];
  if (text === undefined) return {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== 'object' || parsed === null) return {};
    const times = Object.entries(parsed).filter(([, time]) => typeof time === 'string');
    return Object.fromEntries(times) as Record<string, string>;
  } catch {
    // Written by hand: the times start again, which keeps a key for longer.
    return {};
  }
}

function sameKeys(a: PublishedKeys, b: PublishedKeys): boolean {
  const canonical = ({ data, retired }: PublishedKeys) =>
    JSON.stringify([data, retired].map((each) => Object.entries(each).sort()));
  return canonical(a) === canonical(b);
}
