import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  KUBELET_CA_CONFIG_MAP,
  NODE_PULL_SECRET,
  nodePaths,
  PULL_SECRET_KEY,
  REGISTRY_CAS_CONFIG_MAP,
} from '../../api/names.ts';
import { dataDigest, pullSecretVersion } from '../../api/node-certificates.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { policyDigest } from '../../disruption/effective-policies.ts';
import {
  LEASE_HOLDER,
  type NodeUnderTest,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import { certificatesOf } from '../host/certificates/deliver.ts';
import { applyCertificate } from './certificate.ts';
import { noMetrics } from './node-metrics.ts';

const CA = '/etc/containers/certs.d/r.io/shale-ca.crt';
const data = { 'r.io': 'PEM' };
const version = dataDigest(data);
const policies = {
  files: [
    {
      path: '/etc/containers/certs.d',
      actions: [{ type: 'Reload' as const, reload: { serviceName: 'crio.service' } }],
    },
  ],
};
const { spec } = observation();
const inForce = observation({ spec: { ...spec, policyDigest: policyDigest(policies) } });

/** A cluster with registry CAs, and policies in force. */
async function clusterWith({ objects, ...node }: NodeUnderTest = {}) {
  const reloaded: string[] = [];
  const results: string[] = [];
  const test = await stepUnderTest({
    services: { reload: async (unit) => void reloaded.push(unit) },
    context: { metrics: { ...noMetrics, certificates: (name, result) => results.push(`${name} ${result}`) } },
    ...node,
    objects: (kind, name) => {
      const given = objects?.(kind, name);
      if (given !== undefined) return given;
      if (kind === 'MachineConfiguration') {
        return { status: { nodeDisruptionPolicyStatus: { clusterPolicies: policies } } };
      }
      return name === REGISTRY_CAS_CONFIG_MAP ? { data } : undefined;
    },
  });
  return { ...test, reloaded, results, read: (name: string) => readFile(path.join(test.root, name), 'utf8') };
}
const registryCAs = { name: 'registryCAs', version } as const;

describe('registry CAs', () => {
  test('are written, and the services that policies name read them again', async () => {
    const { context, root, reloaded, results, events, read } = await clusterWith();
    await applyCertificate(context, registryCAs, inForce);
    expect(await read(CA)).toBe('PEM');
    expect(reloaded).toEqual(['crio.service']);
    expect(await certificatesOf(root)).toEqual({ registryCAs: version });
    expect(results).toEqual(['registryCAs done']);
    expect(events).toEqual([`Applied registry CAs ${version}; actions: Reload(crio.service)`]);
  });

  test('have the SELinux labels of the host before a service reads them', async () => {
    const done: string[] = [];
    const { context } = await clusterWith({
      services: { reload: async (unit) => void done.push(`reload ${unit}`) },
      ports: { relabel: async (_root, names) => void done.push(`label ${names.join(' ')}`) },
    });
    await applyCertificate(context, registryCAs, inForce);
    expect(done).toEqual([expect.stringContaining(`label ${CA} `), 'reload crio.service']);
  });

  test('that nothing has changed ask nothing of a service', async () => {
    const { context, reloaded, events } = await clusterWith();
    await applyCertificate(context, registryCAs, inForce);
    await applyCertificate(context, registryCAs, inForce);
    expect(reloaded).toEqual(['crio.service']);
    expect(events[1]).toBe(`Applied registry CAs ${version}`);
  });

  test.each([
    ['other policies are in force than the operator named', observation()],
    ['there are no policies', observation({ spec: { ...spec, policyDigest: policyDigest({}) } })],
  ])('ask nothing of a service where %s', async (_name, seen) => {
    const isNone = seen.spec.policyDigest !== undefined;
    const { context, reloaded, events } = await clusterWith(
      isNone ? { objects: (kind) => (kind === 'MachineConfiguration' ? { status: {} } : undefined) } : {},
    );
    await applyCertificate(context, registryCAs, seen);
    expect(reloaded).toEqual([]);
    expect(events).toEqual([`Applied registry CAs ${version}`]);
  });

  test('ask nothing of a service that no policy names', async () => {
    const other = { files: [{ path: '/etc/app', actions: policies.files[0]?.actions ?? [] }] };
    const { context, reloaded } = await clusterWith({
      objects: (kind) =>
        kind === 'MachineConfiguration'
          ? { status: { nodeDisruptionPolicyStatus: { clusterPolicies: other } } }
          : undefined,
    });
    const seen = observation({ spec: { ...spec, policyDigest: policyDigest(other) } });
    await applyCertificate(context, registryCAs, seen);
    expect(reloaded).toEqual([]);
  });

  test('are written while somebody else holds the node, and wait to be read again', async () => {
    const { context, root, reloaded, results, events, read } = await clusterWith({
      leaseHolder: 'node-maintenance',
    });
    await applyCertificate(context, registryCAs, inForce);
    expect(await read(CA)).toBe('PEM');
    expect(reloaded).toEqual([]);
    expect(await certificatesOf(root)).toEqual({});
    expect(context.memory.withheld.get('registryCAs')).toEqual({
      version,
      under: '',
      reason: 'LeaseHeld',
      why: 'Reload(crio.service): waiting for the node lease, which node-maintenance holds',
      isDue: false,
    });
    expect(results).toEqual(['registryCAs failed']);
    expect(events).toEqual([expect.stringContaining('which node-maintenance holds')]);
  });

  test('are read again while the operator holds the node', async () => {
    const { context, reloaded } = await clusterWith({ leaseHolder: LEASE_HOLDER });
    await applyCertificate(context, registryCAs, inForce);
    expect(reloaded).toEqual(['crio.service']);
    expect(context.memory.withheld.size).toBe(0);
  });

  test('that can not be applied are remembered, and reported once', async () => {
    const services = { reload: () => Promise.reject(new Error('crio is stuck')) };
    const { context, events } = await clusterWith({ services });
    await applyCertificate(context, registryCAs, inForce);
    await applyCertificate(context, registryCAs, inForce);
    expect(context.memory.withheld.get('registryCAs')).toMatchObject({
      reason: 'NotApplied',
      why: 'crio is stuck',
    });
    expect(events).toEqual([`Could not apply registry CAs ${version}: crio is stuck`]);
  });

  test('are no longer remembered once they are applied', async () => {
    let isStuck = true;
    const { context, events } = await clusterWith({
      services: {
        reload: async () => {
          if (isStuck) throw new Error('crio is stuck');
        },
      },
    });
    await applyCertificate(context, registryCAs, inForce);
    isStuck = false;
    await applyCertificate(context, registryCAs, inForce);
    expect(context.memory.withheld.size).toBe(0);
    expect(events).toHaveLength(2);
  });

  test('that are gone leave the empty set', async () => {
    const { context, root, events } = await clusterWith({
      objects: (_kind, name) => (name === REGISTRY_CAS_CONFIG_MAP ? {} : undefined),
    });
    await applyCertificate(context, { name: 'registryCAs', version: dataDigest({}) }, inForce);
    expect(await certificatesOf(root)).toEqual({ registryCAs: dataDigest({}) });
    expect(events).toEqual([expect.stringContaining('Applied registry CAs')]);
  });

  test('that the cluster no longer has are removed', async () => {
    let has: Record<string, string> = { ...data, 'other.io': 'OTHER' };
    const { context, root, read } = await clusterWith({
      objects: (_kind, name) => (name === REGISTRY_CAS_CONFIG_MAP ? { data: has } : undefined),
    });
    const apply = () => applyCertificate(context, { name: 'registryCAs', version: dataDigest(has) }, inForce);
    await apply();
    expect(await read(CA.replace('r.io', 'other.io'))).toBe('OTHER');
    has = data;
    await apply();
    await expect(read(CA.replace('r.io', 'other.io'))).rejects.toThrow('ENOENT');
    expect(await read(CA)).toBe('PEM');
    expect(await certificatesOf(root)).toEqual({ registryCAs: version });
  });

  test('interrupted by the end of the daemon are no failure', async () => {
    const ending = new AbortController();
    const results: string[] = [];
    const { context, events } = await clusterWith({
      services: {
        reload: async () => {
          ending.abort(new Error('ending'));
          throw new Error('interrupted');
        },
      },
      context: {
        signal: ending.signal,
        metrics: { ...noMetrics, certificates: (_name, result) => results.push(result) },
      },
    });
    await expect(applyCertificate(context, registryCAs, inForce)).rejects.toThrow('ending');
    expect(context.memory.withheld.size).toBe(0);
    expect([events, results]).toEqual([[], []]);
  });
});

describe('a path that a config has', () => {
  const owning = standard('rendered-1', [{ path: CA, content: 'of the config' }]);
  const docker = '/etc/docker/certs.d/r.io/shale-ca.crt';

  test('is left to it, and the other one is written', async () => {
    const { context, root, read } = await clusterWith();
    await mkdir(path.dirname(path.join(root, CA)), { recursive: true });
    await writeFile(path.join(root, CA), 'of the config');
    await applyCertificate(context, registryCAs, { ...inForce, current: owning });
    expect(await read(CA)).toBe('of the config');
    expect(await read(docker)).toBe('PEM');
  });

  test('leaves nothing to apply where it has them all', async () => {
    const all = standard('rendered-1', [
      { path: CA, content: 'own' },
      { path: docker, content: 'own' },
    ]);
    const { context, events } = await clusterWith();
    await applyCertificate(context, registryCAs, { ...inForce, current: all });
    expect(context.memory.withheld.get('registryCAs')).toMatchObject({
      reason: 'OwnedByMachineConfig',
      under: 'rendered-1',
    });
    expect(events).toEqual([expect.stringContaining(`rendered-1 already contains`)]);
    expect(events[0]).toContain(CA);
  });

  test('is an image’s, where that carries its config', async () => {
    const { context, root } = await clusterWith();
    const place = path.join(root, nodePaths.imageConfig);
    await mkdir(path.dirname(place), { recursive: true });
    await writeFile(
      place,
      JSON.stringify(
        standard('rendered-1', [
          { path: CA, content: 'own' },
          { path: docker, content: 'own' },
        ]).rendered,
      ),
    );
    const image = parseDigestedPullspec(`r.io/os@sha256:${'1'.repeat(64)}`);
    await applyCertificate(context, registryCAs, {
      ...inForce,
      current: { version: 1, mode: 'Layered', config: 'rendered-1', image },
    });
    expect(context.memory.withheld.get('registryCAs')?.reason).toBe('OwnedByMachineConfig');
  });
});

test.each(['kubeletCA', 'pullSecret'] as const)('%s that is gone is not applied', async (name) => {
  const { context } = await clusterWith();
  await applyCertificate(context, { name, version: 'v' }, inForce);
  expect(context.memory.withheld.get(name)).toMatchObject({
    reason: 'NotApplied',
    why: expect.stringContaining(name === 'kubeletCA' ? KUBELET_CA_CONFIG_MAP : NODE_PULL_SECRET),
  });
});

test('the pull secret is read from its Secret', async () => {
  const metadata = { name: NODE_PULL_SECRET, uid: 'u', resourceVersion: '7' };
  const text = '{"auths":{}}';
  const { context, root, read } = await clusterWith({
    objects: (kind) =>
      kind === 'Secret'
        ? { metadata, data: { [PULL_SECRET_KEY]: Buffer.from(text).toString('base64') } }
        : undefined,
  });
  const wanted = pullSecretVersion(metadata);
  await applyCertificate(context, { name: 'pullSecret', version: wanted }, inForce);
  expect(await read(context.settings.certificatePaths.pullSecret)).toBe(text);
  expect(await certificatesOf(root)).toEqual({ pullSecret: wanted });
});
