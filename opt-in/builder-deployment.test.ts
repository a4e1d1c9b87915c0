import { expect, test } from 'vitest';
import { annotations } from '../api/names.ts';
import { builderCommand } from '../builder/main.ts';
import { builderDeployment } from './builder-deployment.ts';

const { containers, volumes } = builderDeployment('shale-system', 'shale:1', ['--insecure-registry', 'r:1'], {
  metricsPort: 8080,
}).spec.template.spec;

test('the builder is alone in its pod: commands of Containerfiles run in pods of their own', () => {
  expect(containers.map(({ name }) => name)).toEqual(['builder']);
  expect(containers[0]).toMatchObject({
    ports: [{ containerPort: 8080 }],
    livenessProbe: { httpGet: { path: '/healthz', port: 8080 } },
  });
});

test('copies of images go to a volume, because the root file system is read-only', () => {
  const [, ...args] = containers[0]?.args ?? [];
  const command = builderCommand().action(() => undefined);
  command.parse(args, { from: 'user' });
  const mountPath = command.opts()['engineWorkDir'] as string;
  expect(containers[0]?.volumeMounts).toEqual([{ name: 'engine-work', mountPath }]);
  expect(volumes).toEqual([{ name: 'engine-work', emptyDir: { sizeLimit: '66Gi' } }]);
});

test('the digest of its template tells one setting of its pod from another', () => {
  const digest = (options: Parameters<typeof builderDeployment>[3]) =>
    builderDeployment('shale-system', 'shale:1', [], options).metadata.annotations?.[
      annotations.templateDigest
    ];
  const settings: readonly Parameters<typeof builderDeployment>[3][] = [
    {},
    { metricsPort: 8080 },
    { imagePullSecrets: [{ name: 'pull' }] },
    { pod: { nodeSelector: { disk: 'ssd' } } },
    { pod: { resources: { requests: { memory: '1Gi' } } } },
    { pod: { podLabels: { team: 'a' } } },
    { pod: { podAnnotations: { team: 'a' } } },
    { pod: { tolerations: [{ key: 'infra', operator: 'Exists' }] } },
    { pod: { affinity: {} } },
  ];
  expect(new Set(settings.map(digest)).size).toBe(settings.length);
  expect(settings.map(digest)).toEqual(settings.map(digest));
  expect(digest({})).toMatch(/^sha256:[0-9a-f]{64}$/);
});

test('without pull secrets its pod has no list of them', () => {
  const spec = (names: readonly string[]) =>
    builderDeployment('shale-system', 'shale:1', [], { imagePullSecrets: names.map((name) => ({ name })) })
      .spec.template.spec;
  expect(spec([])).not.toHaveProperty('imagePullSecrets');
  expect(spec(['pull']).imagePullSecrets).toEqual([{ name: 'pull' }]);
});
