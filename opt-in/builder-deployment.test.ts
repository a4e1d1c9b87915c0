import { expect, test } from 'vitest';
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
  expect(volumes).toEqual([{ name: 'engine-work', emptyDir: {} }]);
});
