import { expect, test } from 'vitest';
import { present } from '../api/present.ts';
import { builderCommand } from '../builder/main.ts';
import { builderDeployment } from './builder-deployment.ts';

const podOf = (podmanImage?: string) =>
  builderDeployment('shale-system', 'shale:1', ['--insecure-registry', 'r:1'], {
    metricsPort: 8080,
    ...present({ podmanImage }),
  }).spec.template.spec;

test('a podman beside the builder shares its socket and nothing of the host', () => {
  const { containers, volumes = [] } = podOf('podman:5');
  const [builder, podman] = containers;
  expect(podman).toMatchObject({ name: 'podman', image: 'podman:5' });
  expect(volumes.every((volume) => 'emptyDir' in volume)).toBe(true);
  for (const container of containers) {
    expect(container.securityContext).toMatchObject({ runAsNonRoot: true, capabilities: { drop: ['ALL'] } });
    expect(container.securityContext).not.toHaveProperty('privileged');
  }
  const [, ...args] = builder?.args ?? [];
  const command = builderCommand().action(() => undefined);
  command.parse(args, { from: 'user' });
  const engine = String(command.opts()['engine']);
  const socket = engine.replace('unix://', '');
  for (const container of containers) {
    const mounts = (container.volumeMounts ?? []).map((mount) => (mount as { mountPath: string }).mountPath);
    expect(mounts.some((mountPath) => socket.startsWith(`${mountPath}/`))).toBe(true);
  }
});

test('without an image there is the builder alone', () => {
  expect(podOf().containers.map(({ name }) => name)).toEqual(['builder']);
  expect(podOf()).not.toHaveProperty('volumes');
  expect(podOf().containers[0]).toMatchObject({
    ports: [{ containerPort: 8080 }],
    livenessProbe: { httpGet: { path: '/healthz', port: 8080 } },
  });
});
