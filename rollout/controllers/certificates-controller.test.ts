import { describe, expect, it, test } from 'vitest';
import { ConfigMaps, Leases, Nodes, Secrets } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { KUBELET_CA_CONFIG_MAP, KUBELET_CA_KEY, NODE_PULL_SECRET } from '../../api/names.ts';
import { dataDigest } from '../../api/node-certificates.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aNode } from '../../test/fixtures/objects.ts';
import { defaultRolloutOptions } from '../options.ts';
import { type CertificateObjects, desiredCertificates } from './certificates-controller.ts';

const none: CertificateObjects = { registryCAs: undefined, kubeletCA: undefined, pullSecret: undefined };
const configMap = (data: Record<string, string>) =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data }) as const;
const secret = (resourceVersion: string) =>
  ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x', uid: 'u', resourceVersion } }) as const;

test('a cluster without certificates publishes nothing to nodes', () => {
  expect(desiredCertificates(none)).toEqual({});
});

test('a node that had registry CAs is current of the empty set; of all else that is gone nothing', () => {
  const current = { registryCAs: 'a', kubeletCA: 'b', pullSecret: 'c' };
  expect(desiredCertificates(none, current)).toEqual({ registryCAs: dataDigest({}) });
});

test('a kubelet CA is named by its content, a pull secret by the version of its object', () => {
  const of = (pem: string, more: Record<string, string> = {}) =>
    desiredCertificates({ ...none, kubeletCA: configMap({ [KUBELET_CA_KEY]: pem, ...more }) }).kubeletCA;
  expect(of('A', { other: 'x' })).toBe(of('A'));
  expect(of('B')).not.toBe(of('A'));
  const version = (resourceVersion: string) =>
    desiredCertificates({ ...none, pullSecret: secret(resourceVersion) }).pullSecret;
  expect(version('7')).toBe(version('7'));
  expect(version('8')).not.toBe(version('7'));
});

describe('the controller', () => {
  const signal = new AbortController().signal;
  const NAMESPACE = defaultRolloutOptions.namespace;
  const cluster = new MemoryCluster();
  const operator = steppedOperator(cluster, Date.now);
  const certificates = () => cluster.get(MachineConfigNodes, 'a')?.spec.certificates;
  const reconcile = (name = 'a') => {
    operator.catchUp();
    return operator.certificates.reconcile(name, signal);
  };

  it('writes what changed to the node, without a grant and once', async () => {
    cluster.put(MachineConfigNodes, aMachineConfigNode('a'));
    const metadata = { name: KUBELET_CA_CONFIG_MAP, namespace: NAMESPACE };
    cluster.put(ConfigMaps, { ...configMap({ [KUBELET_CA_KEY]: 'A' }), metadata });
    await reconcile();
    expect(certificates()).toEqual({ kubeletCA: expect.any(String) });
    expect(cluster.get(MachineConfigNodes, 'a')?.spec.grant).toBeUndefined();
    const before = cluster.writes;
    await reconcile();
    expect(cluster.writes).toBe(before);
  });

  it('keeps what others have set and replaces what has changed', async () => {
    const before = certificates()?.kubeletCA;
    cluster.put(Secrets, {
      ...secret('7'),
      metadata: { name: NODE_PULL_SECRET, namespace: NAMESPACE, uid: 'u' },
    });
    await reconcile();
    expect(certificates()).toEqual({ kubeletCA: before, pullSecret: expect.any(String) });
  });

  it('delivers only the kubelet CA while another holds the node, and the rest when it is given back', async () => {
    const at = (name: string, resourceVersion: string) => ({
      ...secret(resourceVersion),
      metadata: { name, namespace: NAMESPACE, uid: 'u' },
    });
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'node-a', namespace: defaultRolloutOptions.leases.namespace },
      spec: { holderIdentity: 'node-maintenance' },
    };
    cluster.put(Nodes, aNode('a'));
    cluster.put(Leases, lease);
    const before = certificates();
    const metadata = { name: KUBELET_CA_CONFIG_MAP, namespace: NAMESPACE };
    cluster.put(ConfigMaps, { ...configMap({ [KUBELET_CA_KEY]: 'B' }), metadata });
    cluster.put(Secrets, at(NODE_PULL_SECRET, '8'));
    // A lease without a time has no end, and no event tells of one that ends by time.
    expect(await reconcile()).toEqual({ kind: 'requeue', afterMs: 30_000 });
    expect(certificates()?.pullSecret).toBe(before?.pullSecret);
    expect(certificates()?.kubeletCA).not.toBe(before?.kubeletCA);
    cluster.remove(Leases, 'node-a');
    expect(await reconcile()).toEqual({ kind: 'done' });
    expect(certificates()?.pullSecret).not.toBe(before?.pullSecret);
  });

  it('leaves a node alone that is not there, or was deleted a moment ago', async () => {
    expect(await reconcile('gone')).toEqual({ kind: 'done' });
    cluster.put(MachineConfigNodes, aMachineConfigNode('b'));
    operator.catchUp();
    cluster.remove(MachineConfigNodes, 'b');
    expect(await operator.certificates.reconcile('b', signal)).toEqual({ kind: 'done' });
  });

  it('does not swallow another failure', async () => {
    cluster.put(MachineConfigNodes, aMachineConfigNode('c'));
    cluster.trouble = () => 'unavailable';
    await expect(reconcile('c')).rejects.toMatchObject({ status: 503 });
  });
});
