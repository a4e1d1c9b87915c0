import type { Logger } from 'pino';
import { crdOf } from '../../../api/crd.ts';
import { crdDefinitions } from '../../../api/crd-definitions.ts';
import { Leases, Namespaces } from '../../../api/kubernetes.ts';
import {
  type MachineConfigNode,
  type MachineConfigNodeSpec,
  MachineConfigNodes,
} from '../../../api/machine-config-node.ts';
import { DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE } from '../../../api/names.ts';
import type { ApiClient } from '../../../cluster/api-client.ts';
import { tokenConnection } from '../../../cluster/connection.ts';
import { createApiClient } from '../../../cluster/http-api-client.ts';
import { createInformer } from '../../../cluster/informer.ts';
import { startApiServer } from '../../apiserver/start.ts';
import { applyObjects } from '../manifests/apply.ts';
import { createChanges, waitUntil } from '../wait-until.ts';

export const NODE = 'node-0';
export const HOLDER = 'shale-operator';

/** One node's object, as the operator sees it. */
export interface ControlledNode {
  /** Makes the MachineConfigNode, or sets its spec. */
  want(spec: Partial<MachineConfigNodeSpec>): Promise<void>;
  /** @returns the object once it is as asked. */
  until(what: string, holds: (object: MachineConfigNode) => boolean): Promise<MachineConfigNode>;
}

/** A control plane with one node, whose lease is the operator's, and nobody but the test to be the operator. */
export interface NodeControlPlane extends ControlledNode, AsyncDisposable {
  readonly client: ApiClient;
  /** How its administrator reaches it. */
  readonly access: { readonly url: string; readonly token: string; readonly caPem: string };
  /** @returns a kubeconfig of its administrator. */
  kubeconfig(): string;
  /** Another node, whose lease is the operator's, too. */
  addNode(name: string): Promise<ControlledNode>;
}

const DEADLINE_MS = 60_000;
const META = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigNode' } as const;

/**
 * Starts the embedded API server with what a daemon needs to find there.
 *
 * @param deadlineMs how long `until` waits.
 */
export async function startNodeControlPlane(
  log: Logger,
  deadlineMs = DEADLINE_MS,
): Promise<NodeControlPlane> {
  const ending = new AbortController();
  const server = await startApiServer();
  const client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
  await applyObjects(client, crdDefinitions.map(crdOf), { log, signal: ending.signal });
  for (const name of [DEFAULT_NAMESPACE, DEFAULT_LEASE_NAMESPACE]) {
    await client.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  const changes = createChanges();
  const informer = createInformer(client, MachineConfigNodes, { log });
  informer.onChange(() => changes.notify());
  const watching = informer.start(ending.signal);
  const addNode = async (name: string): Promise<ControlledNode> => {
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: `node-${name}`, namespace: DEFAULT_LEASE_NAMESPACE },
      spec: { holderIdentity: HOLDER },
    } as const;
    await client.create(Leases, lease, { namespace: DEFAULT_LEASE_NAMESPACE });
    return {
      want: (spec) => want(client, name, spec),
      until: (what, holds) =>
        waitUntil({
          what,
          changes,
          look: () => {
            const object = informer.get(name);
            return object !== undefined && holds(object)
              ? { met: object }
              : { seen: JSON.stringify(object?.status ?? null) };
          },
          deadlineMs,
          signal: ending.signal,
        }),
    };
  };
  return {
    ...(await addNode(NODE)),
    client,
    access: { url: server.url, token: server.adminToken, caPem: server.caPem },
    kubeconfig: () => server.kubeconfig(),
    addNode,
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await watching;
      await server.stop();
    },
  };
}

async function want(client: ApiClient, name: string, wanted: Partial<MachineConfigNodeSpec>): Promise<void> {
  const found = await client.find(MachineConfigNodes, name);
  const defaults = { node: { name }, pool: { name: 'worker' }, configVersion: { desired: '' } };
  const spec = { ...defaults, ...wanted };
  if (found === undefined) await client.create(MachineConfigNodes, { ...META, metadata: { name }, spec });
  else
    await client.patch(MachineConfigNodes, name, {
      type: 'json',
      body: [{ op: 'replace', path: '/spec', value: spec }],
    });
}
