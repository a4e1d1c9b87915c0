import type { Logger } from 'pino';
import type { ConfigMap, Secret } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { KUBELET_CA_CONFIG_MAP, NODE_PULL_SECRET, REGISTRY_CAS_CONFIG_MAP } from '../../api/names.ts';
import {
  type CertificateVersions,
  certificateNames,
  dataDigest,
  kubeletCADigest,
  pullSecretVersion,
} from '../../api/node-certificates.ts';
import { present } from '../../api/present.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import type { Caches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';
import { diskHolderOfNode, HELD_RETRY, type HolderParts } from './observe-holders.ts';

export interface CertificatesControllerParts extends HolderParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'registryCAs' | 'kubeletCA' | 'pullSecret' | 'machineConfigNodes' | 'nodes'>;
  readonly options: Pick<RolloutOptions, 'namespace'>;
  readonly log: Logger;
}

/**
 * Writes to MachineConfigNodes which certificates and which pull secret each node should have. They need no image and
 * no grant: they reach the nodes of paused pools too. While somebody else holds a node, it gets the kubelet's CA
 * alone: a node that missed its rotation trusts no API server any more, and could not be given back.
 */
export class CertificatesController {
  readonly #parts: CertificatesControllerParts;

  constructor(parts: CertificatesControllerParts) {
    this.#parts = parts;
  }

  /** @param node name of the MachineConfigNode. @throws ApiError */
  async reconcile(node: string, signal: AbortSignal): Promise<Result> {
    const { client, caches, log } = this.#parts;
    const machineConfigNode = caches.machineConfigNodes.get(node);
    if (machineConfigNode === undefined) return done;
    const current = machineConfigNode.spec.certificates;
    const changes = changesTo(current ?? {}, desiredCertificates(this.#objects(), current));
    if (Object.keys(changes).length === 0) return done;
    const isHeld = (await diskHolderOfNode(this.#parts, machineConfigNode, signal)) !== undefined;
    const { kubeletCA } = changes;
    const certificates = isHeld ? present({ kubeletCA }) : changes;
    const waits = Object.keys(certificates).length < Object.keys(changes).length;
    const result = waits ? requeueAfter(HELD_RETRY) : done;
    if (Object.keys(certificates).length === 0) return result;
    const body = { spec: { certificates } };
    try {
      const patched = await client.patch(MachineConfigNodes, node, { type: 'merge', body }, { signal });
      caches.machineConfigNodes.remember(patched);
      log.info({ node, certificates }, 'node has other certificates to install');
    } catch (error) {
      // Deleted together with its node.
      if (!isNotFound(error)) throw error;
    }
    return result;
  }

  #objects(): CertificateObjects {
    const { caches, options } = this.#parts;
    const { namespace } = options;
    return {
      registryCAs: caches.registryCAs.get(REGISTRY_CAS_CONFIG_MAP, namespace),
      kubeletCA: caches.kubeletCA.get(KUBELET_CA_CONFIG_MAP, namespace),
      pullSecret: caches.pullSecret.get(NODE_PULL_SECRET, namespace),
    };
  }
}

/** @returns the fields of a merge patch (RFC 7386): null for a name that is no longer set. */
function changesTo(
  current: CertificateVersions,
  desired: CertificateVersions,
): Record<string, string | null> {
  const changed = certificateNames.filter((name) => current[name] !== desired[name]);
  return Object.fromEntries(changed.map((name) => [name, desired[name] ?? null]));
}

/** The objects that hold them; undefined where the object does not exist. */
export interface CertificateObjects {
  readonly registryCAs: ConfigMap | undefined;
  readonly kubeletCA: ConfigMap | undefined;
  readonly pullSecret: Secret | undefined;
}

/**
 * Which certificates a node should have. Without the ConfigMap of registry CAs a node that never had one is left alone;
 * one that had is given the empty set. A kubelet CA or pull secret whose object was deleted stays as it is on the node:
 * without either, the node would be lost to the cluster.
 *
 * @param current what the node's spec has now.
 */
export function desiredCertificates(
  { registryCAs, kubeletCA, pullSecret }: CertificateObjects,
  current: CertificateVersions = {},
): CertificateVersions {
  const hasNone = registryCAs === undefined && current.registryCAs === undefined;
  return present({
    registryCAs: hasNone ? undefined : dataDigest(registryCAs?.data ?? {}),
    kubeletCA: kubeletCA === undefined ? undefined : kubeletCADigest(kubeletCA.data ?? {}),
    pullSecret: pullSecret === undefined ? undefined : pullSecretVersion(pullSecret.metadata),
  });
}
