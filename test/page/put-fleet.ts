import { Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import type { Kind, KubernetesObject, NewObject } from '../../api/object.ts';
import { type PoolRevision, PoolRevisions } from '../../api/pool-revision.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { ClusterUnderTest } from '../e2e/cluster-under-test.ts';
import type { Fleet } from './fleet.ts';
import { LEASE_NAMESPACE } from './fleet-node.ts';

/** Puts a fleet into a cluster, status and all. @throws ApiError */
export async function putFleet(
  { client, clientOf }: Pick<ClusterUnderTest, 'client' | 'clientOf'>,
  fleet: Fleet,
  signal: AbortSignal,
): Promise<void> {
  const put = async <T extends KubernetesObject & { readonly status?: unknown }>(
    kind: Kind<T>,
    objects: readonly T[],
  ) => {
    for (const object of objects) await putObject(client, kind, object, signal);
  };
  await put(MachineConfigPools, fleet.pools);
  const operator = await clientOf('shale-operator');
  for (const config of fleet.machineConfigs) {
    // Nobody else may create what is rendered.
    const writer = config.metadata.name.startsWith('rendered-') ? operator : client;
    await writer.create(MachineConfigs, config, { signal });
  }
  await put(PoolRevisions, await ofPools(client, fleet.poolRevisions, signal));
  await put(Nodes, fleet.nodes);
  await put(MachineConfigNodes, fleet.machineConfigNodes);
  await put(MachineOSBuilds, fleet.builds);
  await put(MachineConfigurations, [fleet.machineConfiguration]);
  for (const lease of fleet.leases) {
    await client.create(Leases, lease, { namespace: LEASE_NAMESPACE, signal });
  }
}

/** A revision counts only if it names the pool as its owner. @throws ApiError */
async function ofPools(
  client: ApiClient,
  revisions: readonly PoolRevision[],
  signal: AbortSignal,
): Promise<readonly PoolRevision[]> {
  const { items } = await client.list(MachineConfigPools, { signal });
  const uids = new Map(items.map(({ metadata }) => [metadata.name, metadata.uid ?? '']));
  return revisions.map((revision) => {
    const { name } = revision.spec.machineConfigPool;
    const owner = {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigPool',
      name,
      uid: uids.get(name) ?? '',
    };
    return { ...revision, metadata: { ...revision.metadata, ownerReferences: [owner] } };
  });
}

/** Makes an object what is given, status and all, whether it is there or not. @throws ApiError */
export async function putObject<T extends KubernetesObject & { readonly status?: unknown }>(
  client: ApiClient,
  kind: Kind<T>,
  object: T,
  signal: AbortSignal,
): Promise<void> {
  const { name, labels: given = {}, annotations: marks = {}, ownerReferences = [] } = object.metadata;
  const known = await client.find(kind, name, { signal });
  const written =
    known === undefined
      ? await client.create(
          kind,
          {
            ...object,
            metadata: { name, labels: given, annotations: marks, ownerReferences },
          } as NewObject<T>,
          {
            signal,
          },
        )
      : await client.replace(
          kind,
          { ...known, ...object, metadata: { ...known.metadata, labels: given, annotations: marks } },
          { signal },
        );
  if (object.status === undefined) return;
  await client.replaceStatus(kind, { ...written, status: object.status }, { signal });
}
