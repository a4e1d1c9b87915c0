import { describe, expect, test } from 'vitest';
import { Secrets } from '../api/kubernetes.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { labels } from '../api/names.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { aBuild } from '../test/fixtures/objects.ts';
import { buildSecretRefusal, readBuildSecrets, reservedSecrets, secretValues } from './build-secrets.ts';

const usable = { [labels.usableInBuilds]: 'true' };
const config = (pull?: string, push?: string) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSConfig',
  metadata: { name: 'worker' },
  spec: {
    machineConfigPool: { name: 'worker' },
    renderedImagePushSpec: 'r.example.com/os/worker:latest',
    ...(pull === undefined ? {} : { baseImagePullSecret: { name: pull } }),
    ...(push === undefined ? {} : { renderedImagePushSecret: { name: push } }),
  },
});
const build = (pushSecret?: string): MachineOSBuild => {
  const made = aBuild('worker-1', 'rendered-worker-1');
  const secret = pushSecret === undefined ? {} : { annotations: { 'shale.dev/push-secret': pushSecret } };
  return { ...made, metadata: { ...made.metadata, ...secret } };
};

test('the Secrets that Shale itself uses are reserved, those of earlier builds too', () => {
  const reserved = reservedSecrets(
    'signing',
    [config('pull', 'push'), config()],
    [build('old-push'), build()],
  );
  expect([...reserved].sort()).toEqual(
    [
      ...['node-pull-secret', 'old-push', 'pull', 'push'],
      ...['shale-egress-proxy', 'shale-page-tls', 'shale-tracing', 'signing'],
    ].sort(),
  );
  expect(reservedSecrets(undefined, [], []).has('signing')).toBe(false);
});

describe('commands of a build', () => {
  const reserved = new Set(['signing']);
  test.each<[string, Parameters<typeof buildSecretRefusal>[0], string | undefined]>([
    ['may read a Secret with the label', { metadata: { name: 'a', labels: usable } }, undefined],
    [
      'may read an Opaque one with data',
      { metadata: { name: 'a', labels: usable }, type: 'Opaque', data: { key: '' } },
      undefined,
    ],
    [
      'may read one of their own pool',
      { metadata: { name: 'a', labels: { ...usable, [labels.pool]: 'worker' } } },
      undefined,
    ],
    [
      'may read none of another pool',
      { metadata: { name: 'a', labels: { ...usable, [labels.pool]: 'infra' } } },
      'only pool infra may use it',
    ],
    ['may read none without labels', { metadata: { name: 'a' } }, 'does not have the label'],
    [
      'may read none with another value of the label',
      { metadata: { name: 'a', labels: { [labels.usableInBuilds]: 'yes' } } },
      'does not have the label',
    ],
    ['may read none of Shale', { metadata: { name: 'signing', labels: usable } }, 'Shale itself uses it'],
    [
      'may read no signing key of another name',
      { metadata: { name: 'a', labels: usable }, data: { 'cosign.key': '' } },
      'signing key',
    ],
    ...[
      'kubernetes.io/dockerconfigjson',
      'kubernetes.io/dockercfg',
      'kubernetes.io/service-account-token',
      'kubernetes.io/tls',
      'bootstrap.kubernetes.io/token',
    ].map((type): [string, Parameters<typeof buildSecretRefusal>[0], string] => [
      `may read none of type ${type}`,
      { metadata: { name: 'a', labels: usable }, type },
      type,
    ]),
  ])('%s', (_, secret, why) => {
    const refusal = buildSecretRefusal(secret, 'worker', reserved);
    if (why === undefined) expect(refusal).toBeUndefined();
    else expect(refusal).toContain(why);
  });
});

describe('Secrets of a build', () => {
  const signal = new AbortController().signal;
  const read = (cluster: MemoryCluster) =>
    readBuildSecrets(
      { client: cluster.client(), namespace: 'shale-system' },
      { pool: 'worker', names: ['entitlement'], reserved: new Set(['signing']) },
      signal,
    );
  const secret = (labelled: Readonly<Record<string, string>>, type = 'Opaque') => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'entitlement', labels: labelled },
    type,
    data: { key: Buffer.from('value').toString('base64') },
  });

  test('are asked for again while one lacks the label, and read once it has it', async () => {
    const cluster = new MemoryCluster();
    cluster.put(Secrets, secret({}));
    await expect(read(cluster)).rejects.toMatchObject({
      reason: 'SecretNotAllowed',
      temporary: true,
      message: expect.stringContaining('add the label'),
    });
    cluster.put(Secrets, secret(usable));
    expect((await read(cluster)).map(({ id }) => id)).toEqual(['entitlement/key']);
  });

  test('of a refused type are refused for good', async () => {
    const cluster = new MemoryCluster();
    cluster.put(Secrets, secret(usable, 'kubernetes.io/tls'));
    await expect(read(cluster)).rejects.toMatchObject({ reason: 'SecretNotAllowed', temporary: false });
  });
});

test('each key of a Secret is one secret, in the order of the keys', () => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's' },
    data: { b: Buffer.from('two').toString('base64'), a: Buffer.from('one').toString('base64') },
  };
  expect(secretValues(secret).map(({ id, value }) => `${id}=${Buffer.from(value).toString()}`)).toEqual([
    's/a=one',
    's/b=two',
  ]);
  expect(secretValues({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } })).toEqual([]);
});
