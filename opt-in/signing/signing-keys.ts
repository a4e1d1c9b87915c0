import { signingKeyName } from '../../api/image-signing.ts';
import type { ConfigMap } from '../../api/kubernetes.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';

/**
 * The key in the layering switch. Only the word `disabled` switches signing off: a missing or misspelt value does not.
 */
export const SIGNING_SETTING = 'signing';

/** Whether images are signed and nodes verify them. */
export type Signing = 'required' | 'disabled';

/**
 * @param configMap the layering switch, whether layering is on or off: an admin's own MachineOSConfigs are signed as
 * well.
 */
export function readSigning(configMap: ConfigMap | undefined): Signing {
  return configMap?.data?.[SIGNING_SETTING]?.trim() === 'disabled' ? 'disabled' : 'required';
}

/**
 * Decides what the ConfigMap of public keys contains. It is the operator's alone, and what it has is no proof that the
 * operator wrote it: a key is published because it is that of the Secret, or because a build that succeeded says that
 * it was, when it signed the build's image. So a node can verify what it may roll back to, and a key that nothing
 * explains is removed. A build that was running at a rotation is signed again by the builder.
 *
 * @param observed.current the public key in PEM that images are signed with now.
 * @returns the ConfigMap's content; undefined when it needs no change.
 */
export function decideSigningKeys(observed: {
  readonly signing: Signing;
  readonly published: ConfigMap | undefined;
  readonly current: string;
  readonly builds: readonly MachineOSBuild[];
}): NewObject<ConfigMap> | undefined {
  const { signing, published } = observed;
  const data = signing === 'disabled' ? {} : keysInForce(observed);
  if (published !== undefined && sameKeys(published.data ?? {}, data)) return undefined;
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: SIGNING_KEYS_CONFIG_MAP }, data };
}

/** Public keys in PEM by name. */
type PublishedKeys = Readonly<Record<string, string>>;

/** A key's name is a digest of it, so a build that names its key names no other. */
function keysInForce({
  published,
  current,
  builds,
}: Pick<Parameters<typeof decideSigningKeys>[0], 'published' | 'current' | 'builds'>): PublishedKeys {
  const signers = new Set(builds.flatMap(({ status }) => status?.signingKey ?? []));
  const earlier = Object.entries(published?.data ?? {}).filter(
    ([name, pem]) => name === signingKeyName(pem) && signers.has(name),
  );
  return { ...Object.fromEntries(earlier), [signingKeyName(current)]: current };
}

function sameKeys(a: PublishedKeys, b: PublishedKeys): boolean {
  const canonical = (keys: PublishedKeys) => JSON.stringify(Object.entries(keys).sort());
  return canonical(a) === canonical(b);
}
