import type { ConfigMap, Secret } from '../../api/kubernetes.ts';
import { type CertificateVersions, kubeletCADigest, pullSecretVersion } from '../../api/node-certificates.ts';
import { registryCAsDigest } from '../../api/registry-cas.ts';

/** The objects that hold them; absent where there is none. */
export interface CertificateObjects {
  readonly registryCAs: ConfigMap | undefined;
  readonly kubeletCA: ConfigMap | undefined;
  readonly pullSecret: Secret | undefined;
}

/**
 * Which certificates a node should have. Without the ConfigMap of registry CAs a node that never had one is left alone;
 * one that had is told of the empty set. Of a kubelet CA or pull secret that is gone nodes are told nothing more, and so
 * keep what they have: without either a node would be lost to the cluster.
 *
 * @param told what the node was told before.
 */
export function wantedCertificates(
  { registryCAs, kubeletCA, pullSecret }: CertificateObjects,
  told: CertificateVersions = {},
): CertificateVersions {
  const namesNone = registryCAs === undefined && told.registryCAs === undefined;
  return {
    ...(namesNone ? {} : { registryCAs: registryCAsDigest(registryCAs?.data ?? {}) }),
    ...(kubeletCA === undefined ? {} : { kubeletCA: kubeletCADigest(kubeletCA.data ?? {}) }),
    ...(pullSecret === undefined ? {} : { pullSecret: pullSecretVersion(pullSecret.metadata) }),
  };
}
