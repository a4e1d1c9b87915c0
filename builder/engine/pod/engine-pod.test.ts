import { expect, test } from 'vitest';
import type { Container, Pod } from '../../../api/kubernetes.ts';
import { type EnginePodSettings, enginePod, engineSecret } from './engine-pod.ts';

const settings: EnginePodSettings = {
  engineImage: 'podman:5',
  shaleImage: 'shale:1',
  engineDisk: '10Gi',
  engineMemory: '1Gi',
  engineMemoryLimit: '8Gi',
  engineHostUsers: false,
};
const request = {
  name: 'engine-1',
  user: { build: { name: 'worker-abc', uid: 'uid-1' }, pool: 'worker', architecture: 'arm64' },
  deadlineSeconds: 3_900,
};
const pod = enginePod(request, settings);

interface Volume {
  readonly name: string;
  readonly emptyDir?: { readonly sizeLimit?: string };
  readonly secret?: { readonly secretName: string };
}
const volumes = pod.spec.volumes as readonly Volume[];
const containerOf = (name: string) => pod.spec.containers.find((each) => each.name === name) as Container;
const mountsOf = (name: string) =>
  (containerOf(name).volumeMounts as readonly { readonly name: string }[]).map((mount) => mount.name);

test('equal inputs are equal pods', () => {
  expect(JSON.stringify(enginePod(request, settings))).toBe(JSON.stringify(pod));
});

test('the pod has no credential of the cluster', () => {
  expect(pod.spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  expect(pod.spec).not.toHaveProperty('serviceAccountName');
  const kinds = volumes.map(({ name, ...source }) => [name, ...Object.keys(source)]);
  expect(kinds).toEqual([
    ['socket', 'emptyDir'],
    ['storage', 'emptyDir'],
    ['scratch', 'emptyDir'],
    ['tls', 'secret'],
  ]);
  expect(volumes.at(-1)?.secret?.secretName).toBe('engine-1');
});

test('the container that runs commands has no key and no way to the kubelet of its node', () => {
  expect(mountsOf('engine')).toEqual(['socket', 'storage', 'scratch']);
  const { env, envFrom } = containerOf('engine');
  expect(env).toBeUndefined();
  expect(envFrom).toBeUndefined();
  expect(pod.spec).not.toHaveProperty('hostNetwork');
  expect(pod.spec).not.toHaveProperty('hostPID');
});

test('the container that has the key may gain nothing', () => {
  expect(mountsOf('front')).toEqual(['socket', 'tls']);
  expect(containerOf('front').securityContext).toMatchObject({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
});

test('both containers have one user, who is not root: Podman creates its socket with mode 0600', () => {
  expect(pod.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 });
  for (const { securityContext } of pod.spec.containers) {
    expect(securityContext).not.toHaveProperty('runAsUser');
    expect(securityContext).not.toHaveProperty('privileged');
  }
  const engine = containerOf('engine').securityContext as { readonly capabilities: object };
  expect(engine.capabilities).toEqual({ drop: ['ALL'], add: ['SETUID', 'SETGID'] });
});

test('the pod ends by itself, and its disk is limited', () => {
  expect(pod.spec).toMatchObject({ restartPolicy: 'Never', activeDeadlineSeconds: 3_900 });
  const limits = volumes.map(({ name, emptyDir }) => [name, emptyDir?.sizeLimit]);
  expect(limits).toEqual(
    expect.arrayContaining([
      ['storage', '10Gi'],
      ['scratch', '10Gi'],
    ]),
  );
});

test('the pod belongs to its build, and the Secret to the pod', () => {
  expect(pod.metadata.namespace).toBe('shale-builds');
  expect(pod.metadata.ownerReferences).toEqual([
    expect.objectContaining({ kind: 'MachineOSBuild', name: 'worker-abc', uid: 'uid-1' }),
  ]);
  const created = { ...pod, metadata: { ...pod.metadata, name: 'engine-1', uid: 'pod-uid' } } as Pod;
  const secret = engineSecret(created, { certPem: 'cert', keyPem: 'key' }, 'ca');
  expect(secret).toMatchObject({ type: 'Opaque', immutable: true, metadata: { namespace: 'shale-builds' } });
  expect(secret.metadata.ownerReferences).toEqual([
    { apiVersion: 'v1', kind: 'Pod', name: 'engine-1', uid: 'pod-uid' },
  ]);
  const text = Object.entries(secret.data ?? {}).map(([key, value]) => [
    key,
    Buffer.from(value, 'base64').toString(),
  ]);
  expect(text).toEqual([
    ['ca.crt', 'ca'],
    ['tls.crt', 'cert'],
    ['tls.key', 'key'],
  ]);
});

test('the pod has a user namespace of its own, except where the flag says that the cluster has none', () => {
  expect(pod.spec.hostUsers).toBe(false);
  expect(enginePod(request, { ...settings, engineHostUsers: true }).spec).not.toHaveProperty('hostUsers');
});

test('nodes of the architecture are preferred, then control-plane nodes; none is required', () => {
  const text = JSON.stringify(pod.spec.affinity);
  expect(text).toContain('"weight":100,"preference":{"matchExpressions":[{"key":"kubernetes.io/arch"');
  expect(text).toContain('"values":["arm64"]');
  expect(text).toContain('"weight":50');
  expect(text).not.toContain('required');
});
