import { createHash } from 'node:crypto';
import { z } from 'zod';
import { KUBELET_CA_KEY } from './names.ts';
import type { ObjectMeta } from './object.ts';
import { by } from './order.ts';
import type { Digest } from './references.ts';

/** What is distributed to nodes beside images and rendered configs, each by its version. */
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

/** @returns how the operator names a kubelet CA, and the daemon checks it. @param data the ConfigMap's. */
export function kubeletCADigest(data: Readonly<Record<string, string>>): Digest {
  return registryCAsDigest({ [KUBELET_CA_KEY]: data[KUBELET_CA_KEY] ?? '' });
}

/**
 * @returns how the operator names a pull secret, and the daemon checks it: a version of the object, and nothing of its
 *   content. Whoever may read MachineConfigNodes could try passwords against a digest of it.
 */
export function pullSecretVersion({ uid = '', resourceVersion = '' }: ObjectMeta): string {
  const hash = createHash('sha256').update(`${uid}/${resourceVersion}`).digest('hex');
  return `version:${hash.slice(0, 32)}`;
}

/**
 * The digest by which the operator names the registry CAs a node should have and the daemon checks what it was given.
 *
 * @param data the ConfigMap's data: a PEM bundle for each registry host.
 * @returns the same digest for the same data, in whatever order the keys come.
 */
export function registryCAsDigest(data: Readonly<Record<string, string>>): Digest {
  const sorted = Object.entries(data).sort(by(([key]) => key));
  return `sha256:${createHash('sha256').update(JSON.stringify(sorted)).digest('hex')}` as Digest;
}

/**
 * The registry that a key of the ConfigMap stands for: a ConfigMap's key can't hold a colon, so OpenShift writes two
 * dots before a port.
 *
 * @returns `host` or `host:port`; undefined for a key that is neither and could name another directory.
 */
export function registryOfKey(key: string): string | undefined {
  const registry = key.replace(/\.\.(\d{1,5})$/, ':$1');
  return /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:\d{1,5})?$/.test(registry) && !registry.includes('..')
    ? registry
    : undefined;
}
