import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { knownSecrets } from './known-secrets.ts';
import { Redaction } from './redact.ts';

const KEY = Buffer.alloc(32);
const redact = (object: KubernetesObject) => new Redaction(KEY).object(object);

function object(kind: string, more: object): KubernetesObject {
  return { apiVersion: 'v1', kind, metadata: { name: 'a' }, ...more };
}

const file = (contents: object) => ({ path: '/etc/pull-secret', mode: 384, contents });
const omitted = (length: number) =>
  expect.stringMatching(`^\\(omitted: ${length} characters, #[0-9a-f]{8}\\)$`);

test('paths, units and how a machine is set up remain of a MachineConfig', () => {
  const config = {
    storage: {
      files: [file({ source: 'data:,abc', compression: '' })],
      luks: [{ name: 'root', clevis: { custom: { pin: 'tang', config: '{"url":1}' } } }],
    },
    systemd: {
      units: [{ name: 'a.service', enabled: true, contents: '[Unit]', dropins: [{ name: 'b.conf' }] }],
    },
  };
  const kernelArguments = ['quiet', 'hugepages=4', 'ds=nocloud;s=http://u:p@h/', 'hunter2'];
  expect(redact(object('MachineConfig', { spec: { kernelArguments, config } }))).toMatchObject({
    spec: {
      kernelArguments: [
        'quiet',
        'hugepages=4',
        expect.stringMatching(/^ds=\(omitted: 23 characters, #[0-9a-f]{8}\)$/),
        omitted(7),
      ],
      config: {
        storage: {
          files: [{ path: '/etc/pull-secret', mode: 384, contents: { source: omitted(9), compression: '' } }],
          luks: [{ name: 'root', clevis: { custom: { pin: 'tang', config: omitted(9) } } }],
        },
        systemd: {
          units: [{ name: 'a.service', enabled: true, contents: omitted(6), dropins: [{ name: 'b.conf' }] }],
        },
      },
    },
  });
});

test('of the arguments of a container, the options remain and the values of those that have no secret', () => {
  const args = [
    'operator',
    '--page-port',
    '8443',
    '--notify-url=http://u:p@h',
    '--token',
    'hunter2',
    '--cluster-name=a',
  ];
  const pod = object('Pod', {
    spec: { containers: [{ name: 'a', args, env: [{ name: 'X', value: 'hunter2' }] }] },
  });
  const mark = expect.stringContaining('(omitted: ');
  expect(redact(pod)).toMatchObject({
    spec: {
      containers: [
        {
          args: ['operator', '--page-port', '8443', mark, '--token', omitted(7), '--cluster-name=a'],
          env: [{ name: 'X', value: omitted(7) }],
        },
      ],
    },
  });
});

test('a field that no list names is left out, and its name remains', () => {
  expect(redact(object('Secret', { data: { 'cosign.key': 'abc' }, type: 'Opaque' }))).toMatchObject({
    type: 'Opaque',
    data: { 'cosign.key': omitted(3) },
  });
  expect(redact(object('SomethingNew', { spec: { a: [{ b: 1, c: null }] } }))).toMatchObject({
    spec: { a: [{ b: omitted(1), c: null }] },
  });
});

test('the same value has the same mark in one archive, and another in the next', () => {
  const secret = object('Secret', { data: { a: 'hunter2', b: 'hunter2', c: 'hunter3' } });
  const marks = (key: Uint8Array) =>
    Object.values((new Redaction(key).object(secret) as unknown as { data: Record<string, string> }).data);
  const [a, b, c] = marks(KEY);
  expect(a).toBe(b);
  expect(a).not.toBe(c);
  expect(marks(Buffer.alloc(32, 1))).not.toContain(a);
});

test("statuses and names of Shale's own kinds remain", () => {
  const status = {
    conditions: [{ type: 'Degraded', message: 'pull of https://robot:hunter2@r.test/os failed' }],
    machineCount: 3,
  };
  const pool = object('MachineConfigPool', { spec: { paused: false, maxUnavailable: '10%' }, status });
  expect(redact(pool)).toMatchObject({
    spec: { paused: false, maxUnavailable: '10%' },
    status: { ...status, conditions: [{ type: 'Degraded', message: 'pull of https://…@r.test/os failed' }] },
  });
});

test('text loses private keys, credentials and what objects say is secret', () => {
  const secrets = knownSecrets([
    object('Secret', {
      data: {
        '.dockerconfigjson': Buffer.from('{"auths":{"r.test":{"password":"open sesame"}}}').toString(
          'base64',
        ),
      },
    }),
    object('MachineOSConfig', {
      spec: { buildArguments: [{ name: 'LICENSE_KEY', value: 'ABCD-EFGH-1234' }] },
    }),
    object('MachineConfig', {
      spec: { config: { passwd: { users: [{ name: 'somebody', passwordHash: '$6$salt$x' }] } } },
    }),
  ]);
  const text = [
    'before',
    '-----BEGIN OPENSSH PRIVATE KEY-----',
    'aGk=',
    '-----END OPENSSH PRIVATE KEY-----',
    'licensed for ABCD-EFGH-1234 by somebody',
    'login with open sesame, hash $6$salt$x',
    'HTTPS_PROXY=http://u:p@proxy:3128 token=abc',
    '-----BEGIN CERTIFICATE-----',
  ].join('\n');
  expect(new Redaction(KEY, secrets).text(text)).toBe(
    [
      'before',
      '(private key omitted)-----END OPENSSH PRIVATE KEY-----',
      'licensed for (omitted) by somebody',
      'login with (omitted), hash (omitted)',
      'HTTPS_PROXY=http://…@proxy:3128 token=…',
      '-----BEGIN CERTIFICATE-----',
    ].join('\n'),
  );
});
