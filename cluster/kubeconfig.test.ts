import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AgentOptions } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { embeddedKubeconfig, readPlainKubeconfig } from './kubeconfig.ts';

const dir = mkdtempSync(path.join(tmpdir(), 'shale-kubeconfig-'));
afterAll(() => rmSync(dir, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Parts {
  readonly cluster?: object;
  readonly user?: object | null;
  readonly more?: object;
}

function written({ cluster = {}, user = { token: 'secret' }, more = {} }: Parts, name = 'config'): string {
  const context = (of: string) => ({ name: of, context: { cluster: of, user: of, namespace: 'shop' } });
  const server = 'https://api.example.com:6443';
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [context('here'), context('there')],
    clusters: [
      { name: 'here', cluster: { server, ...cluster } },
      { name: 'there', cluster: { server: 'https://there.example.com' } },
    ],
    users: [
      { name: 'here', user },
      { name: 'there', user: { token: 'other' } },
    ],
    ...more,
  };
  const file = path.join(dir, name);
  writeFileSync(file, stringify(config));
  return file;
}

describe('a kubeconfig that holds its credentials is read as client-node reads it', () => {
  test.each<[string, Parts]>([
    ['a token', {}],
    ['a CA', { cluster: { 'certificate-authority-data': base64('CA') } }],
    [
      'a client certificate',
      { user: { 'client-certificate-data': base64('C'), 'client-key-data': base64('K') } },
    ],
    ['a path, with a slash at its end', { cluster: { server: 'https://rancher.example.com/k8s/c-1/' } }],
    ['no credentials', { user: {} }],
  ])('%s', async (_, parts) => {
    const file = written(parts);
    for (const context of [undefined, 'there']) {
      expect(await readPlainKubeconfig(file, context)).toEqual(await readByClientNode(file, context));
    }
  });
});

async function readByClientNode(file: string, context: string | undefined) {
  const config = new KubeConfig();
  config.loadFromFile(file);
  if (context !== undefined) config.setCurrentContext(context);
  const options: AgentOptions & { headers?: Record<string, string> } = {};
  await config.applyToHTTPSOptions(options);
  const token = options.headers?.['Authorization']?.replace(/^Bearer /, '');
  const { ca, cert, key } = options;
  const { name: cluster, server } = config.getCurrentCluster() ?? {};
  const all = { cluster, server, ca, cert, key, token };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

test.each<[string, Parts]>([
  ['an exec plugin', { user: { exec: { apiVersion: 'v1', command: 'aws' } } }],
  ['OIDC', { user: { 'auth-provider': { name: 'oidc' } } }],
  ['a password', { user: { username: 'me', password: 'secret' } }],
  ['another user', { user: { token: 'secret', as: 'system:admin' } }],
  ['a token in a file', { user: { tokenFile: '/token' } }],
  ['a key in a file', { user: { 'client-certificate': '/crt', 'client-key': '/key' } }],
  ['a CA in a file', { cluster: { 'certificate-authority': '/ca.crt' } }],
  ['a proxy', { cluster: { 'proxy-url': 'http://proxy.example.com' } }],
  ['another name in the certificate', { cluster: { 'tls-server-name': 'api' } }],
  ['no verification', { cluster: { 'insecure-skip-tls-verify': true } }],
  ['plain HTTP', { cluster: { server: 'http://localhost:8080' } }],
  ['no user', { more: { users: [] } }],
  [
    'two clusters of one name',
    { more: { clusters: [1, 2].map(() => ({ name: 'here', cluster: { server: 'https://x' } })) } },
  ],
  ['no current context', { more: { 'current-context': 'gone' } }],
])('%s is left to client-node', async (_, parts) => {
  expect(await readPlainKubeconfig(written(parts), undefined)).toBeUndefined();
});

test('without a name, the file is the one of KUBECONFIG, then the one in the home directory', async () => {
  const file = written({ user: { token: 'mine' } });
  vi.stubEnv('KUBECONFIG', file);
  expect(await readPlainKubeconfig(undefined, undefined)).toMatchObject({ token: 'mine' });
  vi.stubEnv('KUBECONFIG', `${file}:${file}`);
  expect(await readPlainKubeconfig(undefined, undefined)).toBeUndefined();
  vi.stubEnv('KUBECONFIG', '');
  vi.stubEnv('HOME', dir);
  expect(await readPlainKubeconfig(undefined, undefined)).toBeUndefined();
});

test('what is no file or no YAML is left to client-node, whose error says so', async () => {
  expect(await readPlainKubeconfig(path.join(dir, 'missing'), undefined)).toBeUndefined();
  const file = path.join(dir, 'broken');
  writeFileSync(file, 'a: [');
  expect(await readPlainKubeconfig(file, undefined)).toBeUndefined();
});

describe('a kubeconfig of an object opens nothing that it names', () => {
  const embedded = (parts: Parts) => embeddedKubeconfig(readFileSync(written(parts), 'utf8'));

  test('credentials that are in it are used', () => {
    expect(embedded({ cluster: { 'certificate-authority-data': base64('CA') } })).toMatchObject({
      server: 'https://api.example.com:6443',
      token: 'secret',
      ca: Buffer.from('CA'),
    });
  });

  test.each<[string, Parts, string]>([
    ['a program', { user: { exec: { command: 'sh' } } }, 'exec'],
    ['a file with a token', { user: { tokenFile: '/etc/shadow' } }, 'tokenFile'],
    ['a file with a key', { user: { 'client-key': '/etc/key' } }, 'client-key'],
    ['a file with a CA', { cluster: { 'certificate-authority': '/etc/ca' } }, 'certificate-authority'],
    ['a server without TLS', { cluster: { server: 'http://api.example.com' } }, 'URL'],
    ['no current context', { more: { 'current-context': 'nowhere' } }, 'exactly one current context'],
  ])('%s is refused, without its contents', (_, parts, why) => {
    expect(() => embedded(parts)).toThrow(why);
    expect(() => embedded(parts)).not.toThrow('secret');
  });

  test('a text that is no YAML is not repeated', () => {
    expect(() => embeddedKubeconfig('token: {secret')).toThrow('not YAML');
    expect(() => embeddedKubeconfig('token: {secret')).not.toThrow('secret');
  });
});
