import type { Logger } from 'pino';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { REGISTRY_CAS_CONFIG_MAP } from '../../api/names.ts';
import { registryCAsDigest } from '../../api/registry-cas.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import { done, type Result } from '../../cluster/controller.ts';
import type { Caches } from '../caches.ts';

export interface CertificatesControllerParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'registryCAs' | 'machineConfigNodes'>;
  readonly namespace: string;
  readonly log: Logger;
}

/**
 * Tells one node which registry CAs it should have. Certificates need no image and no leave: they reach nodes of paused
 * pools too.
 *
 * Without the ConfigMap a node that never had one is left alone; one that had is told of the empty set.
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
  const told = machineConfigNode.spec.certificates?.registryCAs;
  const configMap = caches.registryCAs.get(REGISTRY_CAS_CONFIG_MAP, namespace);
  if (configMap === undefined && told === undefined) return done;
  const registryCAs = registryCAsDigest(configMap?.data ?? {});
  if (told === registryCAs) return done;
  const body = { spec: { certificates: { registryCAs } } };
  try {
    const patched = await client.patch(MachineConfigNodes, node, { type: 'merge', body }, { signal });
    caches.machineConfigNodes.remember(patched);
    log.info({ node, registryCAs }, 'node has new registry CAs to take');
  } catch (error) {
    // Gone together with its node.
    if (!isNotFound(error)) throw error;
  }
  return done;
}
