import { beforeEach, describe, expect, it } from 'vitest';
import type { Node } from '../api/kubernetes.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import { type ApiClient, ApiError } from '../cluster/api-client.ts';
import { aNode } from '../test/fixtures/objects.ts';
import { MachineLookup, MaintenanceLookup } from './node-claims.ts';

const signal = new AbortController().signal;
const OPENSHIFT = { 'machine.openshift.io/machine': 'machines/m-1' };
const CLUSTER_API = {
  'cluster.x-k8s.io/machine': 'm-1',
  'cluster.x-k8s.io/cluster-namespace': 'clusters',
};

let now: number;
let requests: string[];
/** Machines by `group/version namespace/name`, with when they were deleted. */
let machines: Map<string, string | undefined>;

beforeEach(() => {
  now = 1_000_000;
  requests = [];
  machines = new Map();
});

function node(annotations: Readonly<Record<string, string>> = {}): Node {
  return aNode('a', { metadata: { name: 'a', annotations } });
}

function machineClient(): ApiClient {
  const find = async (kind: Kind<KubernetesObject>, name: string, where: { namespace?: string } = {}) => {
    const key = `${kind.group}/${kind.version} ${where.namespace}/${name}`;
    requests.push(key);
    if (!machines.has(key)) return undefined;
    const deletionTimestamp = machines.get(key);
    return { metadata: { name, deletionTimestamp } };
  };
  return { find } as never;
}

describe('the Machine of a node', () => {
  const lookup = () => new MachineLookup(machineClient(), () => now);

  it.each([
    ['no annotation', {}],
    ['no namespace', { 'machine.openshift.io/machine': 'm-1' }],
    ['no name', { 'machine.openshift.io/machine': 'machines/' }],
    ['a Machine without its namespace', { 'cluster.x-k8s.io/machine': 'm-1' }],
    ['a namespace without a Machine', { 'cluster.x-k8s.io/cluster-namespace': 'clusters' }],
  ])('is not asked for where the Node has %s', async (_what, annotations) => {
    expect(await lookup().isDeleting(node(annotations), signal)).toBe(false);
    expect(requests).toEqual([]);
  });

  it.each([
    ['OpenShift', OPENSHIFT, 'machine.openshift.io/v1beta1 machines/m-1'],
    ['Cluster API', CLUSTER_API, 'cluster.x-k8s.io/v1beta2 clusters/m-1'],
    ['an older Cluster API', CLUSTER_API, 'cluster.x-k8s.io/v1beta1 clusters/m-1'],
  ])('of %s is being deleted once it has the time of its deletion', async (_what, annotations, key) => {
    expect(await lookup().isDeleting(node(annotations), signal)).toBe(false);
    machines.set(key, undefined);
    expect(await lookup().isDeleting(node(annotations), signal)).toBe(false);
    machines.set(key, '2026-06-01T00:00:00Z');
    expect(await lookup().isDeleting(node(annotations), signal)).toBe(true);
  });

  it('is asked for again once the clock was set back: nobody knows how old the answer is', async () => {
    const claims = lookup();
    const key = 'machine.openshift.io/v1beta1 machines/m-1';
    machines.set(key, undefined);
    expect(await claims.isDeleting(node(OPENSHIFT), signal)).toBe(false);
    machines.set(key, '2026-06-01T00:00:00Z');
    now -= 600_000;
    expect(await claims.isDeleting(node(OPENSHIFT), signal)).toBe(true);
  });

  it('is asked for again after thirty seconds', async () => {
    const claims = lookup();
    const key = 'machine.openshift.io/v1beta1 machines/m-1';
    machines.set(key, '2026-06-01T00:00:00Z');
    expect(claims.known(node(OPENSHIFT))).toBe(false);
    expect(await claims.isDeleting(node(OPENSHIFT), signal)).toBe(true);
    now += 29_999;
    machines.set(key, undefined);
    expect(await claims.isDeleting(node(OPENSHIFT), signal)).toBe(true);
    expect(claims.known(node(OPENSHIFT))).toBe(true);
    expect(requests).toHaveLength(1);
    now += 1;
    expect(claims.known(node(OPENSHIFT))).toBe(false);
    expect(await claims.isDeleting(node(OPENSHIFT), signal)).toBe(false);
    expect(requests).toHaveLength(2);
  });
});

describe('NodeMaintenances', () => {
  const listing = (list: () => Promise<unknown>) => {
    const client = {
      list: () => {
        requests.push('list');
        return list();
      },
    };
    return new MaintenanceLookup(client as never, () => now);
  };
  const items = async () => ({ items: [{ spec: { nodeName: 'a' } }, { spec: { nodeName: 'b' } }] });

  it('are listed again after five seconds', async () => {
    const lookup = listing(items);
    expect(await lookup.nodes(signal)).toEqual(new Set(['a', 'b']));
    now += 4_999;
    await lookup.nodes(signal);
    expect(requests).toHaveLength(1);
    now += 1;
    await lookup.nodes(signal);
    expect(requests).toHaveLength(2);
  });

  it('are listed again once the clock was set back', async () => {
    const lookup = listing(items);
    await lookup.nodes(signal);
    now -= 600_000;
    await lookup.nodes(signal);
    expect(requests).toHaveLength(2);
  });

  it('are none where the cluster does not have the kind; any other failure is one', async () => {
    const failing = (status: number, reason: string) =>
      listing(() => Promise.reject(new ApiError(status, 'x', { reason }))).nodes(signal);
    expect(await failing(404, 'NotFound')).toEqual(new Set());
    await expect(failing(503, 'ServiceUnavailable')).rejects.toMatchObject({ status: 503 });
  });
});
