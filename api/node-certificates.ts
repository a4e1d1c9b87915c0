import { createHash } from 'node:crypto';
import { z } from 'zod';
import { KUBELET_CA_KEY } from './names.ts';
import type { ObjectMeta } from './object.ts';
import type { Digest } from './references.ts';
import { registryCAsDigest } from './registry-cas.ts';

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
