import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { Nodes } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import { readObjects } from '../../cli/object-files.ts';
import { DiffOutput, PlanOutput, ValidateOutput } from '../../cli/output-schemas.ts';
import { applyObjects } from '../../sandbox/manifests/apply.ts';
import { type ClusterUnderTest, quiet, startClusterUnderTest } from '../e2e/cluster-under-test.ts';

const root = path.join(import.meta.dirname, '../..');
const signal = AbortSignal.timeout(120_000);
let cluster: ClusterUnderTest;
let dir: string;
let kubeconfig: string;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-cli-'));
  cluster = await startClusterUnderTest(signal);
  kubeconfig = path.join(dir, 'kubeconfig');
  await writeFile(kubeconfig, cluster.kubeconfig(), { mode: 0o600 });
  await applyObjects(cluster.client, await readObjects([path.join(root, 'examples')]), {
    log: quiet,
    signal,
  });
  await addNode('worker-0', { [annotations.plannedMaintenance]: '{"reason":"new disk","by":"ops"}' });
  await addNode('worker-1', {});
}, 60_000);
afterAll(async () => {
  await cluster.stop();
  await rm(dir, { recursive: true });
});

async function addNode(name: string, own: Record<string, string>): Promise<void> {
  await cluster.client.create(
    Nodes,
    { apiVersion: 'v1', kind: 'Node', metadata: { name, annotations: own } },
    { signal },
  );
  const node: NewObject<MachineConfigNode> = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigNode',
    metadata: { name },
    spec: { node: { name }, pool: { name: 'worker' }, configVersion: { desired: 'rendered-worker-x' } },
  };
  await cluster.client.create(MachineConfigNodes, node, { signal });
}

async function shale(...args: string[]) {
  const env = { KUBECONFIG: kubeconfig, HOME: dir };
  return execa(path.join(root, 'bin/shale'), args, { cwd: root, reject: false, env });
}

describe('against a cluster', () => {
  test('plan says what a file asks of its nodes, and what stands in the way', async () => {
    const { stdout, exitCode } = await shale('plan', '-f', 'examples/tour/chrony-v2.yaml');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('pool worker (2 nodes): Restart(chronyd.service)');
    expect(stdout).toContain(
      '  warning: node worker-0 is passed by: flagged for maintenance by ops: new disk',
    );
  });

  test('validate, render and policies take what it has', async () => {
    expect((await shale('validate')).stdout).toBe('7 MachineConfigs are valid');
    expect((await shale('render', '--pool', 'worker', '-o', 'name')).stdout).toMatch(
      /^rendered-worker-[0-9a-f]{32}$/,
    );
    expect((await shale('policies')).stdout).toContain(
      "/etc/chrony.conf: Restart(chronyd.service)  (the admin's)",
    );
  });

  test('diff shows what a file changes', async () => {
    const { stdout, exitCode } = await shale(
      'diff',
      '--pool',
      'worker',
      '-f',
      'examples/tour/chrony-v2.yaml',
    );
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^\+.*ntp3\.example\.org/m);
    expect((await shale('diff', '-f', 'examples')).exitCode).toBe(0);
  });

  test('that can not be reached, or has no Shale, is one line', async () => {
    const none = await execa(path.join(root, 'bin/shale'), ['validate'], {
      reject: false,
      env: { KUBECONFIG: path.join(dir, 'nothing'), HOME: dir },
    });
    expect(none.exitCode).toBe(69);
    expect(none.stderr.split('\n')).toHaveLength(1);
  });
});

describe('offline', () => {
  test('diff shows decoded contents, attributes and removals', async () => {
    const { stdout } = await shale(
      'diff',
      '--from',
      'examples',
      '-f',
      'examples/tour/mixed.yaml',
      '--pool',
      'worker',
    );
    expect(stdout).toContain('--- /dev/null\n+++ b /etc/profile.d/idle-timeout.sh');
    expect(stdout).toContain('+# mode 0644, owner 0:0');
  });

  test.each([
    ['reboot', 'karg.yaml', 1],
    ['reboot', 'chrony-v2.yaml', 0],
    ['restart', 'chrony-v2.yaml', 1],
    ['drain', 'chrony-v2.yaml', 0],
  ])('plan --fail-on %s of %s ends with %i', async (cost, file, code) => {
    const { exitCode } = await shale(
      'plan',
      '--from',
      'examples',
      '-f',
      `examples/tour/${file}`,
      '--fail-on',
      cost,
    );
    expect(exitCode).toBe(code);
  });
});

describe('-o json', () => {
  test.each<[string, z.ZodType, string[]]>([
    ['plan', PlanOutput, ['plan', '--from', 'examples', '-f', 'examples/tour/mixed.yaml']],
    ['plan of a cluster', PlanOutput, ['plan', '-f', 'examples/tour/karg.yaml']],
    ['diff', DiffOutput, ['diff', '--from', 'examples', '-f', 'examples/tour/mixed.yaml']],
    ['validate', ValidateOutput, ['validate', '-f', 'examples']],
  ])('of %s is as documented', async (_, schema, args) => {
    const { stdout } = await shale(...args, '-o', 'json');
    expect(schema.safeParse(JSON.parse(stdout)).error).toBeUndefined();
  });

  test('has each of its fields in the reference', async () => {
    const reference = await readFile(path.join(root, 'docs/reference/cli.md'), 'utf8');
    const fields = [
      'pool',
      'problems',
      'from',
      'to',
      'actions',
      'causes',
      'nodes',
      'warnings',
      'changes',
      'valid',
      'subject',
      'rule',
      'change',
      'diff',
    ];
    expect(fields.filter((field) => !reference.includes(`\`${field}\``))).toEqual([]);
  });
});
