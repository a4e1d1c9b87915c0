import type { Logger } from 'pino';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { KUBELET_CA_CONFIG_MAP, NODE_PULL_SECRET, REGISTRY_CAS_CONFIG_MAP } from '../../api/names.ts';
import { type CertificateVersions, certificateNames } from '../../api/node-certificates.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import { done, type Result } from '../../cluster/controller.ts';
import type { Caches } from '../caches.ts';
import { wantedCertificates } from './wanted-certificates.ts';

export interface CertificatesControllerParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'registryCAs' | 'kubeletCA' | 'pullSecret' | 'machineConfigNodes'>;
  readonly namespace: string;
  readonly log: Logger;
}

/**
 * Tells one node which certificates and which pull secret it should have. They need no image and no leave: they reach
 * nodes of paused pools too.
 *
 * @param node name of the MachineConfigNode.
 * @throws ApiError
 */
export async function reconcileCertificates(
  { client, caches, namespace, log }: CertificatesControllerParts,
  node: string,
  signal: AbortSignal,
): Promise<Result> {
  const machineConfigNode = caches.machineConfigNodes.get(node);
  if (machineConfigNode === undefined) return done;
  const told = machineConfigNode.spec.certificates;
  const wanted = wantedCertificates(
    {
      registryCAs: caches.registryCAs.get(REGISTRY_CAS_CONFIG_MAP, namespace),
      kubeletCA: caches.kubeletCA.get(KUBELET_CA_CONFIG_MAP, namespace),
      pullSecret: caches.pullSecret.get(NODE_PULL_SECRET, namespace),
    },
    told,
  );
  const certificates = changesTo(told ?? {}, wanted);
  if (Object.keys(certificates).length === 0) return done;
  const body = { spec: { certificates } };
  try {
    const patched = await client.patch(MachineConfigNodes, node, { type: 'merge', body }, { signal });
    caches.machineConfigNodes.remember(patched);
    log.info({ node, certificates }, 'node has other certificates to take');
  } catch (error) {
    // Gone together with its node.
    if (!isNotFound(error)) throw error;
  }
  return done;
}

/** @returns the fields of a merge patch (RFC 7386): null for what is named no more. */
function changesTo(told: CertificateVersions, wanted: CertificateVersions): Record<string, string | null> {
  const changed = certificateNames.filter((name) => told[name] !== wanted[name]);
  return Object.fromEntries(changed.map((name) => [name, wanted[name] ?? null]));
}
