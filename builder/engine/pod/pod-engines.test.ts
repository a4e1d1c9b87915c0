import { X509Certificate } from 'node:crypto';
import { pino } from 'pino';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Pod, Secret } from '../../../api/kubernetes.ts';
import { type ApiClient, ApiError, ApiUnreachable } from '../../../cluster/api-client.ts';
import { answeringClient } from '../../../test/fixtures/answering-client.ts';
import { type ContainerEngine, EngineError, StepFailed } from '../container-engine.ts';
import type { EngineAccess } from '../engine-access.ts';
import { PodEngines, type PodEnginesOptions } from './pod-engines.ts';

const RUNNING: Pod['status'] = { phase: 'Running', podIP: '10.0.0.7' };
const user = { build: { name: 'worker-abc', uid: 'uid-1' }, pool: 'worker', architecture: 'amd64' };
const settings = {
  engineImage: 'podman:5',
  shaleImage: 'shale:1',
  engineDisk: '1Gi',
  engineMemory: '1Gi',
  engineMemoryLimit: '8Gi',
  engineHostUsers: false,
};
const signal = AbortSignal.timeout(60_000);

/** Of the API server: what was asked of it, and the pods and Secrets that it has. */
let calls: string[];
let objects: Map<string, Pod | Secret>;
/** What a pod's status is whenever it is looked at. */
let status: () => Pod['status'];
let failDeletes: boolean;

beforeEach(() => {
  calls = [];
  objects = new Map();
  status = () => RUNNING;
  failDeletes = false;
});

const client = answeringClient({
  create: async (kind, object) => {
    const metadata = { ...object.metadata, uid: `uid of ${object.metadata.name}` };
    const created = { ...object, metadata } as Pod | Secret;
    calls.push(`create ${kind.kind}`);
    objects.set(`${kind.kind} ${metadata.name}`, created);
    return created;
  },
  find: async (kind, name) => {
    const found = objects.get(`${kind.kind} ${name}`);
    return found === undefined ? undefined : { ...found, status: status() };
  },
  list: async () => ({
    items: [...objects.values()].filter(({ kind }) => kind === 'Pod'),
    resourceVersion: '1',
  }),
  delete: async (kind, name) => {
    calls.push(`delete ${kind.kind}`);
    if (failDeletes) throw new ApiError(500, 'DELETE', { message: 'etcd is away' });
    return objects.delete(`${kind.kind} ${name}`);
  },
});

const engine = (about: () => Promise<unknown> = async () => ({})) =>
  ({ about }) as unknown as ContainerEngine;

const enginesWith = (more: Partial<PodEnginesOptions> = {}) =>
  new PodEngines({
    client,
    log: pino({ level: 'silent' }),
    settings,
    limitMs: 60_000,
    connect: async () => engine(),
    ...more,
  });

describe('an engine in a pod', () => {
  test('is connected to with certificates for it alone, whose private parts never meet', async () => {
    const connected: EngineAccess[] = [];
    const engines = enginesWith({
      connect: async (access) => {
        connected.push(access);
        return engine();
      },
    });
    const secrets: Secret[] = [];
    for (const _ of [1, 2]) {
      await engines.use(
        user,
        async () => {
          secrets.push([...objects.values()].find(({ kind }) => kind === 'Secret') as Secret);
        },
        signal,
      );
    }
    const [first, second] = connected as (EngineAccess & { kind: 'tls' })[];
    expect(first).toMatchObject({ kind: 'tls', host: '10.0.0.7', port: 2376 });
    expect(first?.ca).not.toBe(second?.ca);
    const text = (key: string) => Buffer.from(secrets[0]?.data?.[key] ?? '', 'base64').toString();
    expect(Object.keys(secrets[0]?.data ?? {})).toEqual(['ca.crt', 'tls.crt', 'tls.key']);
    expect(JSON.stringify(secrets)).not.toContain(Buffer.from(first?.key ?? '').toString('base64'));
    const ca = new X509Certificate(first?.ca ?? '');
    expect(text('ca.crt')).toBe(first?.ca);
    expect(new X509Certificate(text('tls.crt')).verify(ca.publicKey)).toBe(true);
    expect(new X509Certificate(text('tls.crt')).checkHost(first?.serverName ?? '')).toBe(first?.serverName);
    // OpenSSL would take a server's certificate with the name of its issuer for a self-signed one.
    expect(ca.subject).not.toBe(new X509Certificate(text('tls.crt')).subject);
    expect(new X509Certificate(first?.cert ?? '').verify(ca.publicKey)).toBe(true);
  });

  test('is waited for while its pod starts and while its front does not answer', async () => {
    const states: Pod['status'][] = [{ phase: 'Pending' }, RUNNING];
    status = () => states.shift() ?? RUNNING;
    let asked = 0;
    const about = async () => {
      asked += 1;
      if (asked === 1) throw new EngineError('EngineUnavailable', 'connect ECONNREFUSED');
    };
    expect(
      await enginesWith({ connect: async () => engine(about) }).use(user, async () => 'built', signal),
    ).toBe('built');
    expect(asked).toBe(2);
  });

  test('leaves nothing behind, and its Secret belongs to its pod', async () => {
    await enginesWith().use(
      user,
      async () => {
        const [pod, secret] = [...objects.values()];
        expect(secret?.metadata.ownerReferences?.[0]?.uid).toBe(pod?.metadata.uid);
      },
      signal,
    );
    expect(calls).toEqual(['create Pod', 'create Secret', 'delete Pod', 'delete Secret']);
    expect(objects.size).toBe(0);
  });

  test.each<[string, Error]>([
    ['a command fails', new StepFailed('exit status 3')],
    ['the registry fails', new Error('503')],
  ])('leaves nothing behind when %s, and hides nothing of it', async (_, error) => {
    await expect(enginesWith().use(user, () => Promise.reject(error), signal)).rejects.toBe(error);
    expect(objects.size).toBe(0);
  });

  test('leaves nothing behind when the build is aborted', async () => {
    const stop = new AbortController();
    const run = enginesWith().use(
      user,
      async () => {
        stop.abort(new Error('enough'));
        stop.signal.throwIfAborted();
      },
      stop.signal,
    );
    await expect(run).rejects.toThrow('enough');
    expect(objects.size).toBe(0);
  });

  test('leaves nothing behind when the build is aborted while its pod starts', async () => {
    const stop = new AbortController();
    status = () => {
      stop.abort(new Error('enough'));
      return { phase: 'Pending' };
    };
    await expect(enginesWith().use(user, async () => 'built', stop.signal)).rejects.toThrow();
    expect(objects.size).toBe(0);
  });

  test('that can not start fails with the reason of its pod', async () => {
    const waiting = { reason: 'ImagePullBackOff', message: 'not found' };
    const containers = [
      { name: 'engine', image: 'podman:5', ready: false, restartCount: 0, state: { waiting } },
    ];
    status = () => ({ phase: 'Pending', containerStatuses: containers });
    const run = enginesWith().use(user, async () => 'built', signal);
    await expect(run).rejects.toMatchObject({
      name: 'EngineError',
      reason: 'EngineUnavailable',
      message: expect.stringMatching(/^pod engine-[0-9a-f]{12} .*ImagePullBackOff: not found$/) as string,
    });
    expect(objects.size).toBe(0);
  });

  test('that does not start in time fails with what it waits for', async () => {
    const conditions = [
      { type: 'PodScheduled', status: 'False' as const, reason: 'Unschedulable', message: 'taints' },
    ];
    status = () => ({ phase: 'Pending', conditions });
    const run = enginesWith({ startMs: 1 }).use(user, async () => 'built', signal);
    await expect(run).rejects.toThrow(/did not start within 0 s: Unschedulable: taints/);
  });

  test('that is killed while it builds fails with why, not with a broken connection', async () => {
    const broken = new EngineError('EngineUnavailable', 'socket hang up');
    const work = async () => {
      const state = { terminated: { exitCode: 137, reason: 'OOMKilled' } };
      const containers = [{ name: 'engine', image: 'podman:5', ready: false, restartCount: 0, state }];
      status = () => ({ phase: 'Running', podIP: '10.0.0.7', containerStatuses: containers });
      throw broken;
    };
    await expect(enginesWith().use(user, work, signal)).rejects.toMatchObject({
      message: expect.stringContaining('OOMKilled') as string,
      cause: broken,
    });
  });

  test('that could not be deleted is deleted before the next one is created', async () => {
    const engines = enginesWith();
    failDeletes = true;
    expect(await engines.use(user, async () => 'built', signal)).toBe('built');
    expect(objects.size).toBe(2);
    failDeletes = false;
    calls = [];
    await engines.use(user, async () => 'built', signal);
    expect(calls.slice(0, 3)).toEqual(['delete Pod', 'delete Secret', 'create Pod']);
    expect(objects.size).toBe(0);
    calls = [];
    await engines.use(user, async () => 'built', signal);
    expect(calls.filter((call) => call === 'delete Pod')).toHaveLength(1);
  });

  test('of an earlier builder is deleted', async () => {
    failDeletes = true;
    await enginesWith().use(user, async () => 'built', signal);
    failDeletes = false;
    await enginesWith().removeLeftovers(signal);
    expect(objects.size).toBe(0);
  });

  test('that a build works with is none of those', async () => {
    const engines = enginesWith();
    await engines.use(
      user,
      async () => {
        await engines.removeLeftovers(signal);
        expect(objects.size).toBe(2);
      },
      signal,
    );
    expect(objects.size).toBe(0);
  });

  test('of an earlier builder that could not be deleted is deleted before the next one is created', async () => {
    failDeletes = true;
    for (const _ of [1, 2]) await enginesWith().use(user, async () => 'built', signal);
    const engines = enginesWith();
    await expect(engines.removeLeftovers(signal)).rejects.toThrow('2 engines could not be deleted');
    expect(objects.size).toBe(4);
    failDeletes = false;
    await engines.use(user, async () => 'built', signal);
    expect(objects.size).toBe(0);
  });
});

test('a pod that the API server refuses is a reason to try again later', async () => {
  const refused = new ApiError(403, 'POST pods', { message: 'violates PodSecurity "restricted:latest"' });
  const refusing = { ...client, create: () => Promise.reject(refused) } as ApiClient;
  const run = enginesWith({ client: refusing }).use(user, async () => 'built', signal);
  await expect(run).rejects.toMatchObject({
    reason: 'EngineUnavailable',
    message: expect.stringContaining('violates PodSecurity') as string,
  });
});

test.each<[string, Error]>([
  ['can not be reached', new ApiUnreachable('POST pods', new Error('refused'))],
  ['is overloaded', new ApiError(429, 'POST pods', { message: 'slow down' })],
])('an API server that %s is told as such, not as a pod that it refuses', async (_what, error) => {
  const away = { ...client, create: () => Promise.reject(error) } as ApiClient;
  await expect(enginesWith({ client: away }).use(user, async () => 'built', signal)).rejects.toBe(error);
});
