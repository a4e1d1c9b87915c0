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
  expect(volumes.every((volume) => 'emptyDir' in volume || 'projected' in volume)).toBe(true);
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

test("the builder's token is mounted for the builder alone", () => {
  const { automountServiceAccountToken, containers, volumes = [] } = podOf('podman:5');
  expect(automountServiceAccountToken).toBe(false);
  const withToken = volumes.filter((volume) => JSON.stringify(volume).includes('serviceAccountToken'));
  expect(withToken).toHaveLength(1);
  const mounting = containers.filter(({ volumeMounts = [] }) =>
    volumeMounts.some((mount) => (mount as { name: string }).name === withToken[0]?.name),
  );
  expect(mounting.map(({ name }) => name)).toEqual(['builder']);
  expect(mounting[0]?.volumeMounts).toContainEqual({
    name: withToken[0]?.name,
    mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
    readOnly: true,
  });
});

test('the builder runs as the user whose socket it opens', () => {
  const users = podOf('podman:5').containers.map(
    ({ securityContext }) => (securityContext as { runAsUser: number }).runAsUser,
  );
  expect(new Set(users).size).toBe(1);
});

test('without an image there is the builder alone', () => {
  expect(podOf().containers.map(({ name }) => name)).toEqual(['builder']);
  expect(podOf()).not.toHaveProperty('volumes');
  expect(podOf().containers[0]).toMatchObject({
    ports: [{ containerPort: 8080 }],
    livenessProbe: { httpGet: { path: '/healthz', port: 8080 } },
  });
});
