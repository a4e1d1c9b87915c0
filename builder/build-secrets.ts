import { SIGNING_KEY } from '../api/image-signing.ts';
import { type Secret, Secrets } from '../api/kubernetes.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import {
  annotations,
  labels,
  NODE_PULL_SECRET,
  PAGE_TLS_SECRET,
  PROXY_SECRET,
  TRACING_SECRET,
} from '../api/names.ts';
import type { KubernetesObject } from '../api/object.ts';
import { by } from '../api/order.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { BuildFailure } from './build-failure.ts';
import type { BuildSecret } from './engine/build-context.ts';
import { otherPoolRefusal, SecretError } from './secrets.ts';

/** Secrets with credentials of Shale itself or of Kubernetes, by their type (Kubernetes, "Types of Secret"). */
const REFUSED_TYPES: ReadonlySet<string> = new Set([
  'kubernetes.io/dockerconfigjson',
  'kubernetes.io/dockercfg',
  'kubernetes.io/service-account-token',
  'kubernetes.io/tls',
  'bootstrap.kubernetes.io/token',
]);

/**
 * The Secrets that Shale itself uses. Commands of a build must never read them, whatever labels they have: a person who
 * may edit one MachineOSConfig could otherwise take the signing key.
 *
 * @param signingKeySecret absent if images are not signed.
 * @returns their names, in Shale's namespace.
 */
export function reservedSecrets(
  signingKeySecret: string | undefined,
  machineOSConfigs: readonly MachineOSConfig[],
  builds: readonly MachineOSBuild[],
): ReadonlySet<string> {
  const names = [
    signingKeySecret,
    NODE_PULL_SECRET,
    PAGE_TLS_SECRET,
    PROXY_SECRET,
    TRACING_SECRET,
    ...machineOSConfigs.flatMap(({ spec }) => [
      spec.baseImagePullSecret?.name,
      spec.renderedImagePushSecret?.name,
    ]),
    ...builds.map(({ metadata }) => metadata.annotations?.[annotations.pushSecret]),
  ];
  return new Set(names.filter((name) => name !== undefined));
}

/**
 * Decides whether commands of a build may read a Secret.
 *
 * @param secret its metadata, or all of it.
 * @param pool whose build it is. @param reserved names of the Secrets that Shale itself uses.
 * @returns why not; undefined if they may.
 */
export function buildSecretRefusal(
  { metadata, type = '', data = {} }: Pick<KubernetesObject, 'metadata'> & Pick<Secret, 'type' | 'data'>,
  pool: string,
  reserved: ReadonlySet<string>,
): string | undefined {
  if (reserved.has(metadata.name)) return 'Shale itself uses it';
  if (!isLabelled({ metadata })) {
    return `it does not have the label ${labels.usableInBuilds}: "true"`;
  }
  const otherPool = otherPoolRefusal({ metadata }, pool);
  if (otherPool !== undefined) return otherPool;
  if (REFUSED_TYPES.has(type)) return `Secrets of type ${type} hold credentials of the cluster`;
  if (data[SIGNING_KEY] !== undefined) return `it has a signing key (${SIGNING_KEY})`;
  return undefined;
}

interface RequestedSecrets {
  readonly pool: string;
  readonly names: readonly string[];
  readonly reserved: ReadonlySet<string>;
}

/**
 * Reads the Secrets that commands may use, each key as one: `<Secret>/<key>`. No data is read before every Secret's
 * name and labels allow it. (RBAC can't express that: it knows no labels.)
 *
 * @param requested `reserved`: names of the Secrets that Shale itself uses.
 * @throws BuildFailure for one that builds may not use; SecretError for one that is missing or empty; ApiError.
 */
export async function readBuildSecrets(
  { client, namespace }: { readonly client: ApiClient; readonly namespace: string },
  { pool, names, reserved }: RequestedSecrets,
  signal: AbortSignal,
): Promise<readonly BuildSecret[]> {
  const at = { namespace, signal };
  const missing = (name: string) => new SecretError(`Secret ${namespace}/${name}: not found`);
  const refuse = (secret: Pick<KubernetesObject, 'metadata'> & Pick<Secret, 'type' | 'data'>) => {
    const why = buildSecretRefusal(secret, pool, reserved);
    if (why !== undefined) throw notAllowed(secret, namespace, why);
  };
  for (const name of names) refuse({ metadata: { name, labels: { [labels.usableInBuilds]: 'true' } } });
  for (const name of names) {
    const secret = await client.findMetadata(Secrets, name, at);
    if (secret === undefined) throw missing(name);
    refuse(secret);
  }
  const values: BuildSecret[] = [];
  for (const name of names) {
    const secret = await client.find(Secrets, name, at);
    if (secret === undefined) throw missing(name);
    // Its labels may have changed in between, and its type is not part of its metadata.
    refuse(secret);
    const own = secretValues(secret);
    if (own.length === 0) throw new SecretError(`Secret ${namespace}/${name}: has no data`);
    values.push(...own);
  }
  return values;
}

function isLabelled({ metadata }: Pick<KubernetesObject, 'metadata'>): boolean {
  return metadata.labels?.[labels.usableInBuilds] === 'true';
}

/** Temporary if the label may still be set: the retry only reads the Secret again. */
function notAllowed(
  { metadata }: Pick<KubernetesObject, 'metadata'>,
  namespace: string,
  why: string,
): BuildFailure {
  const temporary = !isLabelled({ metadata });
  const fix = temporary
    ? 'If the Secret was created for builds, add the label: the build is retried'
    : `Name a Secret that was created for builds and has the label ${labels.usableInBuilds}: "true"`;
  return new BuildFailure(
    'SecretNotAllowed',
    `buildSecrets: commands of a build can't read Secret ${namespace}/${metadata.name}: ${why}. ${fix}`,
    { temporary },
  );
}

/** @returns each key of a Secret as one secret, in order of the keys. */
export function secretValues({ metadata, data = {} }: Secret): readonly BuildSecret[] {
  return Object.entries(data)
    .sort(by(([key]) => key))
    .map(([key, value]) => ({ id: `${metadata.name}/${key}`, value: Buffer.from(value, 'base64') }));
}
