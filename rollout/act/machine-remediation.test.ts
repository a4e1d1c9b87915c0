import { PassThrough } from 'node:stream';
import pino from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../cluster/api-client.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { aNode } from '../../test/fixtures/objects.ts';
import { CLUSTER_API_MACHINES, type ClusterApiMachine, clusterApiMachineOf } from '../node-claims.ts';
import { MachineRemediation } from './machine-remediation.ts';

const SKIP = 'cluster.x-k8s.io/skip-remediation';
const MARK = 'shale.dev/skip-remediation';
const EXEMPTED = { [SKIP]: '', [MARK]: 'shale-operator' };
const signal = new AbortController().signal;
const [Machines] = CLUSTER_API_MACHINES;
const ofCluster = { 'cluster.x-k8s.io/machine': 'm-1', 'cluster.x-k8s.io/cluster-namespace': 'clusters' };
const node = aNode('a', {
  metadata: { name: 'a', annotations: ofCluster },
  spec: { providerID: 'cloud:///1' },
});

let cluster: MemoryCluster;
let logged: string[];
let remediation: MachineRemediation;

beforeEach(() => {
  cluster = new MemoryCluster();
  logged = [];
  const stream = new PassThrough();
  stream.on('data', (line) => void logged.push(JSON.parse(String(line)).msg));
  remediation = new MachineRemediation({ client: cluster.client(), log: pino(stream) });
});

function putMachine(
  annotations: Readonly<Record<string, string>> = {},
  more: Partial<ClusterApiMachine> = {},
) {
  cluster.put(Machines, {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: { name: 'm-1', namespace: 'clusters', annotations },
    spec: { providerID: 'cloud:///1' },
    status: { nodeRef: { name: 'a' } },
    ...more,
  });
}
const onMachine = () => cluster.get(Machines, 'm-1')?.metadata.annotations;
const end = () => remediation.endExemption(clusterApiMachineOf(node), signal);

describe('an exemption from MachineHealthChecks', () => {
  it('is undone as it was done', async () => {
    putMachine({ other: 'x' });
    await remediation.exempt(node, signal);
    expect(onMachine()).toEqual({ other: 'x', ...EXEMPTED });
    await remediation.exempt(node, signal);
    expect(onMachine()).toEqual({ other: 'x', ...EXEMPTED });
    await end();
    expect(onMachine()).toEqual({ other: 'x' });
  });

  it.each<[string, Readonly<Record<string, string>>, Partial<ClusterApiMachine>]>([
    ['that somebody else exempted', { [SKIP]: '' }, {}],
    ['that somebody else exempted with a value', { [SKIP]: 'true' }, {}],
    ['that the extension exempted', { [SKIP]: '', [MARK]: 'true' }, {}],
    ['of another node', {}, { status: { nodeRef: { name: 'b' } } }],
    ['of another instance', {}, { spec: { providerID: 'cloud:///2' } }],
    ['without a node', {}, { status: {} }],
  ])('leaves a Machine alone %s', async (_, annotations, more) => {
    putMachine(annotations, more);
    await remediation.exempt(node, signal);
    await end();
    expect(onMachine()).toEqual(annotations);
  });

  it('keeps what somebody has written over it since', async () => {
    putMachine({ [SKIP]: 'mine', [MARK]: 'shale-operator' });
    await end();
    expect(onMachine()).toEqual({ [SKIP]: 'mine' });
  });

  it('asks for nothing on a node without a Machine of Cluster API, and minds none that is gone', async () => {
    await remediation.exempt(aNode('a'), signal);
    await remediation.endExemption(undefined, signal);
    await remediation.exempt(node, signal);
    await end();
    expect(logged).toEqual([]);
  });

  it('writes again after a conflict', async () => {
    putMachine();
    let conflicts = 2;
    cluster.trouble = () => (conflicts-- > 0 ? 'conflict' : 'none');
    await remediation.exempt(node, signal);
    expect(onMachine()).toEqual(EXEMPTED);
  });
});

describe('what the API server refuses', () => {
  it('goes on without the permission, and says so once', async () => {
    putMachine();
    cluster.trouble = () => new ApiError(403, 'm-1', { reason: 'Forbidden' });
    await remediation.exempt(node, signal);
    await remediation.exempt(node, signal);
    await end();
    expect(logged).toEqual([expect.stringContaining('manifests/components/machine-health-checks')]);
  });

  it('stops no update, and is tried again where a Machine is not given back', async () => {
    putMachine();
    cluster.trouble = () => 'unavailable';
    await remediation.exempt(node, signal);
    expect(logged).toEqual(['could not exempt a Machine from MachineHealthChecks']);
    cluster.trouble = () => 'none';
    await remediation.exempt(node, signal);
    cluster.trouble = () => 'unavailable';
    await expect(end()).rejects.toThrow(ApiError);
    cluster.trouble = () => 'none';
    await end();
    expect(onMachine()).toEqual({});
  });
});
