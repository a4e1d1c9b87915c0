/** `shale policies` on files alone: defaults, an admin's and a pool's. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { machineConfig, shale } from './shale-process.ts';

test("shale policies lists the defaults with the admin's over them", async () => {
  const { stdout } = await shale(['policies', '-f', 'examples/90-disruption-policy.yaml']);
  expect(stdout).toContain('/etc/chrony.conf: Restart(chronyd.service)');
  expect(stdout).toContain('/etc/containers/registries.conf: Special');
});

describe('policies of pools', () => {
  const labelled = (name: string, labels: object) => ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name, labels },
    spec: {
      machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      nodeSelector: { matchLabels: { [name]: '' } },
    },
  });
  const configuration = (files: object[]) => ({
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: 'cluster' },
    spec: {
      shale: {
        nodeDisruptionPolicies: [{ name: 'edge', poolSelector: { matchLabels: { tier: 'edge' } }, files }],
      },
    },
  });
  const app = (text: string) =>
    machineConfig('50-app', {
      storage: { files: [{ path: '/etc/app/a.conf', contents: { source: `data:,${text}` } }] },
    });
  const pools = [labelled('far', { tier: 'edge' }), labelled('near', {})];
  const policies = configuration([{ path: '/etc/app/*.conf', actions: [{ type: 'None' }] }]);
  const list = (...objects: (object | string)[]) =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: objects.map((object) => (typeof object === 'string' ? JSON.parse(object) : object)),
    });

  test('a plan has for each pool what its policies say', async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'shale-pool-policies-'));
    await writeFile(path.join(dir, 'from.yaml'), list(...pools, policies, app('a')));
    const { stdout, exitCode } = await shale(['plan', '--from', dir, '-f', '-'], { input: app('b') });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /pool far: None\n +changed \/etc\/app\/a\.conf: None \(policy for \/etc\/app\/\*\.conf \(edge\)\)/,
    );
    expect(stdout).toContain('pool near: Reboot');
    const relabelled = list(labelled('near', { tier: 'edge' }), app('b'));
    const both = await shale(['plan', '--from', dir, '-f', '-'], { input: relabelled });
    expect(both.stdout).toContain('pool near: None');
    await rm(dir, { recursive: true });
  });

  test('shale policies shows those of a pool, and names the pools that have their own', async () => {
    const input = list(...pools, policies);
    const of = (...args: string[]) => shale(['policies', '-f', '-', ...args], { input });
    expect((await of('--pool', 'far')).stdout).toContain(
      "/etc/app/*.conf: None  (set by the admin's policy edge)",
    );
    expect((await of('--pool', 'near')).stdout).not.toContain('/etc/app');
    const whole = await of();
    expect(whole.stdout).not.toContain('/etc/app');
    expect(whole.stderr).toContain('far: edge');
    expect(await of('--pool', 'nobody')).toMatchObject({ exitCode: 2, stdout: '' });
  });

  test.each(['/', '/**', '/etc/[ab]', '/etc/../x'])('a policy for %s is refused', async (where) => {
    const input = list(configuration([{ path: where, actions: [{ type: 'None' }] }]));
    const { stdout, exitCode } = await shale(['validate', '-f', '-'], { input });
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/spec\.shale\.nodeDisruptionPolicies.*files.*path: /);
  });
});
