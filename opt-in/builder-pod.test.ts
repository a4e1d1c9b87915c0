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

test('one builder runs at a time, restricted, with what it takes in nine of ten runs', () => {
  const { metadata, spec } = builderDeployment('n', 'shale:1', ['--no-attest']);
  expect(metadata).toMatchObject({ name: 'machine-os-builder', namespace: 'n' });
  expect(spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
  expect(spec.selector).toEqual({ matchLabels: spec.template.metadata?.labels });
  const [builder] = spec.template.spec.containers;
  expect(builder).toMatchObject({
    image: 'shale:1',
    args: ['machine-os-builder', '--no-attest', '--engine-work-dir', '/work'],
    resources: { requests: { cpu: '50m', memory: '144Mi' } },
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
    livenessProbe: { httpGet: { path: '/healthz', port: 81 }, periodSeconds: 20, failureThreshold: 3 },
    readinessProbe: { httpGet: { path: '/readyz', port: 81 }, periodSeconds: 10 },
  });
});
