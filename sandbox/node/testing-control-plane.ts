import type { Logger } from 'pino';
import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import { Leases, Namespaces } from '../../api/kubernetes.ts';
import {
  type MachineConfigNode,
  type MachineConfigNodeSpec,
  MachineConfigNodes,
} from '../../api/machine-config-node.ts';
import { DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { createInformer } from '../../cluster/informer.ts';
import { startApiServer } from '../apiserver/start.ts';
import { applyObjects } from '../manifests/apply.ts';
import { createChanges, waitUntil } from '../wait-until.ts';

export const NODE = 'node-0';
export const HOLDER = 'shale-operator';

/** A control plane with one node, whose lease is the operator's, and nobody but the test to be the operator. */
export interface NodeControlPlane extends AsyncDisposable {
  readonly client: ApiClient;
  /** @returns a kubeconfig of its administrator. */
  kubeconfig(): string;
  /** Makes the MachineConfigNode, or sets its spec. */
  want(spec: Partial<MachineConfigNodeSpec>): Promise<void>;
  /** @returns the object once it is as asked. */
  until(what: string, holds: (object: MachineConfigNode) => boolean): Promise<MachineConfigNode>;
}

const DEADLINE_MS = 60_000;
const META = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigNode' } as const;
const metadata = { name: NODE };

/** Starts the embedded API server with what a daemon needs to find there. */
export async function startNodeControlPlane(log: Logger): Promise<NodeControlPlane> {
  const ending = new AbortController();
  const server = await startApiServer();
  const client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
  await applyObjects(client, crdDefinitions.map(crdOf), { log, signal: ending.signal });
  for (const name of [DEFAULT_NAMESPACE, DEFAULT_LEASE_NAMESPACE]) {
    await client.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  await client.create(
    Leases,
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: `node-${NODE}`, namespace: DEFAULT_LEASE_NAMESPACE },
      spec: { holderIdentity: HOLDER },
    },
    { namespace: DEFAULT_LEASE_NAMESPACE },
  );
  const changes = createChanges();
  const informer = createInformer(client, MachineConfigNodes, { log });
  informer.onChange(() => changes.notify());
  const watching = informer.start(ending.signal);
  return {
    client,
    kubeconfig: () => server.kubeconfig(),
    want: async (wanted) => {
      const found = await client.find(MachineConfigNodes, NODE);
      const defaults = { node: { name: NODE }, pool: { name: 'worker' }, configVersion: { desired: '' } };
      const spec = { ...defaults, ...wanted };
      if (found === undefined) await client.create(MachineConfigNodes, { ...META, metadata, spec });
      else
        await client.patch(MachineConfigNodes, NODE, {
          type: 'json',
          body: [{ op: 'replace', path: '/spec', value: spec }],
        });
    },
    until: (what, holds) =>
      waitUntil({
        what,
        changes,
        look: () => {
          const object = informer.get(NODE);
          return object !== undefined && holds(object)
            ? { met: object }
            : { seen: JSON.stringify(object?.status ?? null) };
        },
        deadlineMs: DEADLINE_MS,
        signal: ending.signal,
      }),
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await watching;
      await server.stop();
    },
  };
}
