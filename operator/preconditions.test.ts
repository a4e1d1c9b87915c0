import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Deployment, Deployments, type Pod, Pods } from '../api/kubernetes.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import { ApiError } from '../cluster/api-client.ts';
import { detectOtherOperator } from '../rollout/other-operator.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { ownPod } from './preconditions.ts';

const signal = new AbortController().signal;
const ClusterOperators: Kind<KubernetesObject> = {
  group: 'config.openshift.io',
  version: 'v1',
  kind: 'ClusterOperator',
  plural: 'clusteroperators',
  namespaced: false,
};

function deployment(name: string, image = 'shale:deployed'): Deployment {
  const template = { metadata: {}, spec: { containers: [{ name: 'a', image }] } };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec: { selector: {}, template } };
}

function pod(name: string): Pod {
  const spec = { containers: [{ name: 'a', image: 'shale:running' }], imagePullSecrets: [{ name: 'pull' }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
}

describe("OpenShift's Machine Config Operator", () => {
  it('is not found in a cluster without it', async () => {
    expect(await detectOtherOperator(new MemoryCluster().client(), signal)).toBeUndefined();
  });

  it('is found by its Deployment, and else by its ClusterOperator', async () => {
    const cluster = new MemoryCluster();
    cluster.put(ClusterOperators, { apiVersion: 'v1', kind: '', metadata: { name: 'machine-config' } });
    expect(await detectOtherOperator(cluster.client(), signal)).toMatch(/is installed .*ClusterOperator/);
    cluster.put(Deployments, deployment('machine-config-operator'));
    expect(await detectOtherOperator(cluster.client(), signal)).toMatch(/runs in this cluster .*Deployment/);
  });

  it('is not ruled out by an API server that can not be asked', async () => {
    const find = () => Promise.reject(new ApiError(503, 'x', { reason: 'ServiceUnavailable' }));
    const client = { ...new MemoryCluster().client(), find };
    await expect(detectOtherOperator(client, signal)).rejects.toMatchObject({ status: 503 });
  });
});

describe('the image for the builder', () => {
  afterEach(() => void vi.unstubAllEnvs());

  it("is that of the operator's own pod", async () => {
    vi.stubEnv('POD_NAME', 'shale-operator-0');
    const cluster = new MemoryCluster();
    cluster.put(Pods, pod('shale-operator-0'));
    cluster.put(Deployments, deployment('shale-operator'));
    expect(await ownPod(cluster.client(), 'shale-system', signal)).toEqual({
      image: 'shale:running',
      imagePullSecrets: [{ name: 'pull' }],
      environment: [],
    });
  });

  it.each([undefined, 'another-pod'])("is that of the operator's Deployment in pod %s", async (name) => {
    vi.stubEnv('POD_NAME', name);
    const cluster = new MemoryCluster();
    cluster.put(Pods, pod('shale-operator-0'));
    cluster.put(Deployments, deployment('shale-operator'));
    expect(await ownPod(cluster.client(), 'shale-system', signal)).toEqual({
      image: 'shale:deployed',
      imagePullSecrets: [],
      environment: [],
    });
  });

  it.each([
    [undefined, 'there is no pod (POD_NAME is not set) and no Deployment shale-operator in namespace n'],
    ['pod-0', 'there is no pod pod-0 and no Deployment shale-operator in namespace n'],
  ])('is not known in pod %s of another cluster, and the message says what to do', async (name, message) => {
    vi.stubEnv('POD_NAME', name);
    await expect(ownPod(new MemoryCluster().client(), 'n', signal)).rejects.toMatchObject({
      name: 'StartupError',
      kind: 'unavailable',
      message: expect.stringMatching(
        new RegExp(`^Cannot determine .*${message.replaceAll(/[()]/g, '\\$&')}. Set --image.$`),
      ),
    });
  });
});
