/** kubectl itself against the definitions: columns, explain, patches, server-side apply. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import type { Caches } from '../../rollout/caches.ts';
import { PolicyController } from '../../rollout/controllers/policy-controller.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { type Api, START_MS, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { patience } from '../fixtures/patience.ts';
import { isOnPath } from './on-path.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const dir = mkdtempSync(path.join(tmpdir(), 'shale-kubectl-'));
let api: Api;

beforeAll(async () => {
  api = await startApi();
  writeFileSync(path.join(dir, 'kubeconfig'), api.kubeconfig(), { mode: 0o600 });
}, START_MS);
afterAll(async () => {
  await api.stop();
  rmSync(dir, { recursive: true });
});

async function kubectl(...args: string[]): Promise<string> {
  return (await execa('kubectl', args, options())).stdout;
}

/** @returns what kubectl says to an object on standard output, and its warnings. */
async function apply(object: object, ...flags: string[]): Promise<string> {
  const input = JSON.stringify(object);
  return (await execa('kubectl', ['apply', ...flags, '-f', '-'], { ...options(), input, all: true })).all;
}

function options() {
  const env = { KUBECONFIG: path.join(dir, 'kubeconfig'), HOME: dir };
  return { env, cwd: ROOT, timeout: patience(120_000) };
}

test.skipIf(!isOnPath('kubectl'))('kubectl applies the manifests and the examples, twice', async () => {
  const first = await kubectl('apply', '-k', 'manifests/base');
  expect(first.split('\n').every((line) => line.endsWith(' created'))).toBe(true);
  const second = await kubectl('apply', '-k', 'manifests/base');
  expect(second.split('\n').filter((line) => !line.endsWith(' unchanged'))).toEqual([]);
  await kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=20s');
  await kubectl('apply', '-f', 'examples');
  expect(await kubectl('get', 'mc', '-o', 'name')).toContain(
    'machineconfig.machineconfiguration.openshift.io/20-worker-chrony',
  );
  const kinds = 'mcp,mc,mosc,mosb,mcn,machineconfigurations,nodes';
  expect((await kubectl('get', kinds)).split('\n')[0]).toContain('NAME');
  expect(await kubectl('explain', 'machineconfigpool.spec.maxUnavailable')).toContain(
    'nodes that may be unavailable at once',
  );
});

const NAME = 'machineconfiguration.operator.openshift.io/cluster';
const policies = (...services: string[]) => ({
  apiVersion: 'operator.openshift.io/v1',
  kind: 'MachineConfiguration',
  metadata: { name: 'cluster' },
  spec: {
    nodeDisruptionPolicy: {
      files: services.map((service) => ({
        path: `/etc/${service}`,
        actions: [{ type: 'Restart', restart: { serviceName: `${service}.service` } }],
      })),
    },
  },
});

test.skipIf(!isOnPath('kubectl'))(
  'kubectl adopts the MachineConfiguration of the operator, and prints it within 120 columns',
  { timeout: patience(120_000) },
  async () => {
    const { url, token, caPem } = api.access;
    const client = createApiClient(tokenConnection(url, token, caPem), { fieldManager: 'shale-operator' });
    const { signal } = new AbortController();
    const find = () => client.find(MachineConfigurations, MACHINE_CONFIGURATION, { signal });
    const reconcile = async () => {
      const known = await find();
      const machineConfigurations = { get: () => known } as unknown as Caches['machineConfigurations'];
      const pools = { list: () => [] } as unknown as Caches['pools'];
      const caches = { machineConfigurations, pools };
      await new PolicyController({
        client,
        caches,
        options: defaultRolloutOptions,
        failing: { reported: () => [] },
        now: Date.now,
      }).reconcile(MACHINE_CONFIGURATION, signal);
    };
    await reconcile();
    expect(await apply(policies('chronyd', 'sshd'))).toBe(`${NAME} configured`);
    expect(await apply(policies('chronyd', 'sshd'))).toBe(`${NAME} unchanged`);
    const some = Array.from({ length: 40 }, (_, index) => `a-service-of-somebody-${index}`);
    expect(await apply(policies(...some))).toBe(`${NAME} configured`);
    await reconcile();
    const lines = (await kubectl('get', 'machineconfigurations')).split('\n');
    expect(lines[0]).toMatch(/^NAME +ADMIN +APPLIED +AGE$/);
    expect(lines[1]).toMatch(/^cluster +\/etc\/a-service-.*; and \d+ more +True +\d+s$/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
    // What the operator owns are the annotation and the status; so nothing is left to a conflict.
    await client.delete(MachineConfigurations, MACHINE_CONFIGURATION, { signal });
    await reconcile();
    expect(await apply(policies('chronyd'), '--server-side')).toBe(`${NAME} serverside-applied`);
    const managers = await kubectl(
      'get',
      'machineconfigurations',
      'cluster',
      '--show-managed-fields',
      '-o',
      'jsonpath={.metadata.managedFields[*].manager}',
    );
    expect(new Set(managers.split(' '))).toEqual(
      new Set(['kubectl', 'kubectl-last-applied', 'shale-operator']),
    );
  },
);

test.skipIf(!isOnPath('kubectl'))('kubectl selects MachineConfigNodes by label and field', async () => {
  for (const [name, pool] of [
    ['a', 'worker'],
    ['b', 'infra'],
  ]) {
    await apply({
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigNode',
      metadata: { name, labels: { 'shale.dev/pool': pool } },
      spec: { node: { name }, pool: { name: pool }, configVersion: { desired: `rendered-${pool}-1` } },
    });
  }
  const MCN = 'machineconfignode.machineconfiguration.openshift.io';
  expect(await kubectl('get', 'mcn', '-o', 'name', '-l', 'shale.dev/pool=worker')).toBe(`${MCN}/a`);
  expect(await kubectl('get', 'mcn', '-o', 'name', '--field-selector', 'spec.pool.name=infra')).toBe(
    `${MCN}/b`,
  );
});
