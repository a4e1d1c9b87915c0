import { describe, expect, test } from 'vitest';
import { ConfigMaps, type Secret, Secrets } from '../api/kubernetes.ts';
import { labels } from '../api/names.ts';
import { parseReference } from '../image/reference.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { CredentialsUnreadable } from '../image/registry/registry-error.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { startScriptedRegistry } from '../test/fixtures/registry/scripted-registry.ts';
import { readRegistryAccess, SecretError } from './secrets.ts';

const { signal } = new AbortController();
const base64 = (text: string) => Buffer.from(text).toString('base64');
const secret = (name: string, data?: Readonly<Record<string, string>>): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'shale-system' },
  ...(data === undefined
    ? {}
    : { data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, base64(text)])) }),
});
const auths = (user: string, ...hosts: string[]) =>
  JSON.stringify({ auths: Object.fromEntries(hosts.map((host) => [host, { auth: base64(`${user}:p`) }])) });

function clusterWith(...secrets: readonly Secret[]) {
  const cluster = new MemoryCluster();
  for (const each of secrets) cluster.put(Secrets, each);
  const options = { client: cluster.client(), namespace: 'shale-system', plainHttp: new Set(['r:1']) };
  return { cluster, options };
}

describe('access to registries', () => {
  test('is made of the Secrets that are named, of which the later wins, and of the CAs', async () => {
    const { cluster, options } = clusterWith(
      secret('pull', { '.dockerconfigjson': auths('pull', 'a.example.com', 'b.example.com') }),
      secret('push', { '.dockerconfigjson': auths('push', 'b.example.com') }),
    );
    cluster.put(ConfigMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'registry-cas', namespace: 'shale-system' },
      data: { 'a.example.com..5000': 'PEM', 'not a host': 'x' },
    });
    const access = await readRegistryAccess(options, { names: ['pull', undefined, 'push'] }, signal);
    expect([...(access.auths ?? [])].map(([host, login]) => [host, login])).toEqual([
      ['a.example.com', { username: 'pull', password: 'p' }],
      ['b.example.com', { username: 'push', password: 'p' }],
    ]);
    expect(access.caFor?.('a.example.com:5000')).toBe('PEM');
    expect(access.caFor?.('b.example.com')).toBeUndefined();
    expect(access.plainHttp?.has('r:1')).toBe(true);
  });

  test('without Secrets and CAs is access without credentials', async () => {
    const access = await readRegistryAccess(clusterWith().options, { names: [undefined] }, signal);
    expect(access.auths?.size).toBe(0);
    expect(access.caFor?.('a')).toBeUndefined();
  });

  test('takes the older type of Secret, too', async () => {
    const old = JSON.stringify({ 'a.example.com': { auth: base64('old:p') } });
    const { options } = clusterWith(secret('old', { '.dockercfg': old }));
    const access = await readRegistryAccess(options, { names: ['old'] }, signal);
    expect([...(access.auths ?? [])].map(([host]) => host)).toEqual(['a.example.com']);
  });

  test('by an entry that can not be read is refused where a registry asks for it, and nowhere else', async () => {
    const registry = await startScriptedRegistry((_request, response) => {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
    });
    const entries = { [registry]: { auth: 'hidden-value' }, 'b.example.com': { auth: base64('b:p') } };
    const { options } = clusterWith(
      secret('push', { '.dockerconfigjson': JSON.stringify({ auths: entries }) }),
    );
    const access = await readRegistryAccess(options, { names: ['push'] }, signal);
    expect(access.auths?.get('b.example.com')).toEqual({ username: 'b', password: 'p' });
    const client = createRegistryClient({ ...access, plainHttp: new Set([registry]) });
    const asked = client.listTags(parseReference(`${registry}/os`), signal);
    await expect(asked).rejects.toBeInstanceOf(CredentialsUnreadable);
    await expect(asked).rejects.toThrow(
      `Secret shale-system/push: registry credentials for ${registry}: field "auth" can't be read`,
    );
  });

  test.each<[string, Secret | undefined, string]>([
    ['is missing', undefined, 'Secret shale-system/named: not found'],
    ['has no data', secret('named'), 'has neither .dockerconfigjson nor .dockercfg'],
    ['has other data', secret('named', { key: 'hidden-value' }), 'has neither'],
    ['is no JSON', secret('named', { '.dockerconfigjson': '{hidden-value' }), 'Secret shale-system/named: '],
  ])('a Secret that %s is named in the error, and its content is not', async (_, present, why) => {
    const { options } = clusterWith(...(present === undefined ? [] : [present]));
    const error = await readRegistryAccess(options, { names: ['named'] }, signal).catch(
      (caught: unknown) => caught,
    );
    expect(error).toBeInstanceOf(SecretError);
    expect(String(error)).toContain(why);
    expect(String(error)).not.toContain('hidden-value');
  });
});

describe('a Secret with the label of a pool', () => {
  const push = secret('push', { '.dockerconfigjson': auths('push', 'a.example.com') });
  const { options } = clusterWith({
    ...push,
    metadata: { ...push.metadata, labels: { [labels.pool]: 'infra' } },
  });

  test.each([['infra'], [undefined]])('is used for its pool: %s', async (pool) => {
    const access = await readRegistryAccess(options, { pool, names: ['push'] }, signal);
    expect(access.auths?.size).toBe(1);
  });

  test('is used for no other', async () => {
    const read = readRegistryAccess(options, { pool: 'worker', names: ['push'] }, signal);
    await expect(read).rejects.toThrow(SecretError);
    await expect(read).rejects.toThrow(
      'Secret shale-system/push: its label shale.dev/pool says that only pool infra may use it, and MachineOSConfig worker names it',
    );
  });
});
