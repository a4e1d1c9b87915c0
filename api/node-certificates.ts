import { createHash } from 'node:crypto';
import { z } from 'zod';
import { KUBELET_CA_KEY } from './names.ts';
import type { ObjectMeta } from './object.ts';
import { by } from './order.ts';
import type { Digest } from './references.ts';

/** Versions of what is distributed to nodes besides images and rendered configs. */
export const CertificateVersions = z.object({
  registryCAs: z.string().exactOptional().describe('Version of the ConfigMap registry-cas.'),
  kubeletCA: z.string().exactOptional().describe('Version of the ConfigMap kubelet-ca.'),
  pullSecret: z
    .string()
    .exactOptional()
    .describe('Version of the Secret node-pull-secret: its uid and resourceVersion.'),
});
export type CertificateVersions = z.infer<typeof CertificateVersions>;
export type CertificateName = keyof CertificateVersions;
export const certificateNames: readonly CertificateName[] = ['registryCAs', 'kubeletCA', 'pullSecret'];

/**
 * @returns the version of a kubelet CA, which the operator publishes and the daemon verifies. @param data of the
 * ConfigMap.
 */
export function kubeletCADigest(data: Readonly<Record<string, string>>): Digest {
  return dataDigest({ [KUBELET_CA_KEY]: data[KUBELET_CA_KEY] ?? '' });
}

/**
 * @returns the version of a pull secret, from its metadata only: anyone who may read MachineConfigNodes could test
 *   passwords against a digest of its content.
 */
export function pullSecretVersion({ uid = '', resourceVersion = '' }: ObjectMeta): string {
  const hash = createHash('sha256').update(`${uid}/${resourceVersion}`).digest('hex');
  return `version:${hash.slice(0, 32)}`;
}

/**
 * What a ConfigMap with certificates or keys has, as a version that the operator publishes and others verify.
 *
 * @returns the same digest for the same data, independent of the order of keys.
 */
export function dataDigest(data: Readonly<Record<string, string>>): Digest {
  const sorted = Object.entries(data).sort(by(([key]) => key));
  return `sha256:${createHash('sha256').update(JSON.stringify(sorted)).digest('hex')}` as Digest;
}

/**
 * The registry of a key of the ConfigMap. A key can't contain a colon, so OpenShift uses two dots before a port.
 *
 * @returns `host` or `host:port`; undefined for any other key, which could be the path of another directory.
 */
export function registryOfKey(key: string): string | undefined {
  const registry = key.replace(/\.\.(\d{1,5})$/, ':$1');
  return /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:\d{1,5})?$/.test(registry) && !registry.includes('..')
    ? registry
    : undefined;
}
