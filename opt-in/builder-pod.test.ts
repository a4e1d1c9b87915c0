import { expect, test } from 'vitest';
import { builderDeployment } from './builder-deployment.ts';

const restricted = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  runAsUser: 65532,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

test('one builder runs at a time, restricted, with what it takes while it reads what an engine built', () => {
  const { metadata, spec } = builderDeployment('n', 'shale:1', ['--no-attest']);
  expect(metadata).toMatchObject({ name: 'machine-os-builder', namespace: 'n' });
  expect(spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
  expect(spec.selector).toEqual({ matchLabels: spec.template.metadata?.labels });
  const [builder] = spec.template.spec.containers;
  expect(builder).toMatchObject({
    image: 'shale:1',
    args: ['machine-os-builder', '--no-attest', '--engine-work-dir', '/work'],
    resources: { requests: { cpu: '50m', memory: '208Mi' } },
    securityContext: restricted,
  });
  for (const absent of ['ports', 'startupProbe', 'livenessProbe', 'readinessProbe'])
    expect(builder).not.toHaveProperty(absent);
  expect(spec.template.spec).not.toHaveProperty('securityContext');
});

test('a builder that serves its health is restarted after a minute without an answer', () => {
  const { spec } = builderDeployment('n', 'shale:1', [], { metricsPort: 81 });
  expect(spec.template.spec.containers[0]).toMatchObject({
    ports: [{ name: 'metrics', containerPort: 81 }],
    startupProbe: { httpGet: { path: '/healthz', port: 81 }, initialDelaySeconds: 5 },
    livenessProbe: {
      httpGet: { path: '/healthz', port: 81 },
      periodSeconds: 20,
      timeoutSeconds: 10,
      failureThreshold: 3,
    },
    readinessProbe: { httpGet: { path: '/readyz', port: 81 }, periodSeconds: 10 },
  });
});

test('what an admin sets of the pod is beside what it needs, and takes nothing of it away', () => {
  const { spec } = builderDeployment('n', 'shale:1', [], {
    imagePullSecrets: [{ name: 'pull' }],
    pod: {
      resources: { requests: { memory: '1Gi' }, limits: { memory: '2Gi' } },
      nodeSelector: { disk: 'fast' },
      tolerations: [{ key: 'builds', operator: 'Exists' }],
      affinity: {},
      podAnnotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' },
      podLabels: { team: 'os', 'app.kubernetes.io/name': 'other' },
    },
  });
  expect(spec.template.metadata).toEqual({
    labels: { team: 'os', ...spec.selector.matchLabels },
    annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' },
  });
  const pod = spec.template.spec;
  expect(pod).toMatchObject({
    imagePullSecrets: [{ name: 'pull' }],
    nodeSelector: { 'kubernetes.io/os': 'linux', disk: 'fast' },
    affinity: {},
  });
  expect(pod.tolerations).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ key: 'node-role.kubernetes.io/control-plane' }),
      { key: 'builds', operator: 'Exists' },
    ]),
  );
  expect(pod.containers[0]).toMatchObject({
    resources: { requests: { memory: '1Gi' }, limits: { memory: '2Gi' } },
    securityContext: restricted,
  });
});
