import { expect, test } from 'vitest';
import type { DaemonSet, Deployment } from '../../../api/kubernetes.ts';
import { MACHINE_LABEL } from '../cluster-objects.ts';
import { runInCheckout } from '../programs.ts';
import { otherVersion, thisVersion, versionObjects } from './installed-version.ts';

const other = otherVersion(thisVersion.checkout);

test.each([
  ['this version', thisVersion, 'shale:latest'],
  ['another version', other, 'shale:other'],
])('of %s, every pod is of its image, and opens no port on the machine', async (_what, version, image) => {
  const objects = await versionObjects(version, { kind: 'podman' });
  const owners = objects.filter(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet') as (
    | Deployment
    | DaemonSet
  )[];
  const containers = owners.flatMap(({ spec }) => spec.template.spec.containers);
  expect(containers.map((container) => container.image)).toEqual([image, image]);
  for (const { args = [] } of containers) expect(args.slice(args.lastIndexOf('--metrics-port'))[1]).toBe('0');
});

test('the daemon runs on machines alone, and without an engine the builder has none', async () => {
  const objects = await versionObjects(thisVersion, { missing: 'no podman' });
  const daemon = objects.find(({ kind }) => kind === 'DaemonSet') as DaemonSet;
  expect(daemon.spec.template.spec.nodeSelector).toMatchObject({ [MACHINE_LABEL]: '' });
  const operator = objects.find(({ kind }) => kind === 'Deployment') as Deployment;
  expect(operator.spec.template.spec.containers[0]?.args?.slice(-2)).toEqual(['--engine', 'none']);
});

test('a program of another checkout runs from its sources with its own Node', () => {
  const [node, ...args] = runInCheckout(`${thisVersion.checkout}/cli/main.ts`, '/other');
  expect(node).toBe('/other/node_modules/.bin/node');
  expect(args.at(-1)).toBe('/other/cli/main.ts');
});
