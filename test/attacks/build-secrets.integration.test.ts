/** A person who may edit one MachineOSConfig, and nothing else, wants to read Secrets of Shale's namespace. */
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Secrets } from '../../api/kubernetes.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { labels, NODE_PULL_SECRET, PAGE_TLS_SECRET } from '../../api/names.ts';
import { Slots } from '../../builder/slots.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { type BuilderUnderTest, has, startBuilderUnderTest } from '../e2e/builder-under-test.ts';
import { NAMESPACE } from '../e2e/cluster-under-test.ts';
import { givenEngine } from '../fixtures/given-engine.ts';
import { deadline, patience } from '../fixtures/patience.ts';

const CANARY = 'canary-5f2c1b7e9d';
const signal = deadline(200_000);
const stop = new AbortController();
let under: BuilderUnderTest;
let built: Promise<void>;
/** Names of the Secrets whose data the builder read. */
const read: string[] = [];
/** How often a build got as far as its engine. */
let engineRuns = 0;

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  await under.createSecret('push', under.auths('secret'));
  const client = await under.cluster.clientOf('machine-os-builder');
  built = under.runBuilder(stop.signal, {
    client: recording(client),
    engine: {
      engines: givenEngine(() => {
        engineRuns += 1;
        throw new Error('the engine was reached');
      }),
      workDir: tmpdir(),
      slots: new Slots(1),
      built: new Set(),
      limitMs: 60_000,
      limitBytes: 2 ** 30,
    },
  });
}, patience(60_000));
afterAll(async () => {
  stop.abort();
  await built;
  await under.stop();
});

/** @returns a client that records which Secrets it reads whole. */
function recording(client: ApiClient): ApiClient {
  return new Proxy(client, {
    get(target, property) {
      const method = Reflect.get(target, property) as (...args: never[]) => unknown;
      return (...args: [{ kind: string }, string]) => {
        if (args[0].kind === 'Secret' && (property === 'get' || property === 'find')) read.push(args[1]);
        return Reflect.apply(method, target, args);
      };
    },
  });
}

async function createSecret(
  name: string,
  more: { readonly type?: string; readonly key?: string; readonly usable?: string },
): Promise<void> {
  const { type = 'Opaque', key = 'key', usable } = more;
  const names = type === 'kubernetes.io/tls' ? ['tls.crt', 'tls.key'] : [key];
  const data = Object.fromEntries(names.map((each) => [each, Buffer.from(CANARY).toString('base64')]));
  const metadata = { name, ...(usable === undefined ? {} : { labels: { [labels.usableInBuilds]: usable } }) };
  await under.cluster.client.create(
    Secrets,
    { apiVersion: 'v1', kind: 'Secret', metadata, type, data },
    { namespace: NAMESPACE, signal },
  );
}

let pools = 0;

/** @returns the condition with which a pool's build that names the Secret is refused. @param type of that condition. */
async function failedBuild(secret: string, type: 'Failed' | 'Building' = 'Failed') {
  pools += 1;
  const pool = `p${pools}`;
  await under.layerPool(pool, {
    secret: 'push',
    spec: {
      containerFile: [{ containerfileArch: 'NoArch', content: 'RUN cat /run/secrets/*/*' }],
      buildSecrets: [{ name: secret }],
    },
  });
  const conditionOf = ({ status }: MachineOSBuild) =>
    status?.conditions?.find((condition) => condition.type === type);
  const isRefused = (build: MachineOSBuild) =>
    type === 'Failed' ? has('Failed')(build) : conditionOf(build)?.reason === 'Retrying';
  const build = await under.buildOf(pool, isRefused);
  expect(JSON.stringify(build)).not.toContain(CANARY);
  return conditionOf(build);
}

test.each([
  ['the signing key', { key: 'cosign.key' }, 'label'],
  ['a Secret without the label', {}, 'label'],
  ['a Secret whose label says no', { usable: 'false' }, 'label'],
])('%s is refused before its data is read', async (what, secret, why) => {
  const name = what.replaceAll(' ', '-').toLowerCase();
  await createSecret(name, secret);
  // It is asked for again, for its label may come.
  const { message } = (await failedBuild(name, 'Building')) ?? {};
  expect(message).toContain('SecretNotAllowed');
  expect(message).toContain(why);
  expect(read).not.toContain(name);
  expect(engineRuns).toBe(0);
});

test.each([
  ['the push Secret', 'push'],
  ["the nodes' pull secret", NODE_PULL_SECRET],
  ["the page's certificate", PAGE_TLS_SECRET],
])('%s is refused by its name, whatever its labels are', async (_, name) => {
  if (name !== 'push') await createSecret(name, { usable: 'true' });
  else {
    const body = { metadata: { labels: { [labels.usableInBuilds]: 'true' } } };
    await under.cluster.client.patch(
      Secrets,
      name,
      { type: 'merge', body },
      { namespace: NAMESPACE, signal },
    );
  }
  expect(await failedBuild(name)).toMatchObject({ reason: 'SecretNotAllowed' });
  expect(engineRuns).toBe(0);
});

test.each([
  ['a signing key under another name', { key: 'cosign.key', usable: 'true' }],
  ['a certificate', { type: 'kubernetes.io/tls', usable: 'true' }],
])('%s is refused although somebody labelled it', async (what, secret) => {
  const name = what.replaceAll(' ', '-').toLowerCase();
  await createSecret(name, secret);
  expect(await failedBuild(name)).toMatchObject({ reason: 'SecretNotAllowed' });
  expect(engineRuns).toBe(0);
});

test('a Secret with the label reaches the engine', async () => {
  await createSecret('entitlement', { usable: 'true' });
  await under.layerPool('allowed', {
    secret: 'push',
    spec: {
      containerFile: [{ containerfileArch: 'NoArch', content: 'RUN true' }],
      buildSecrets: [{ name: 'entitlement' }],
    },
  });
  const retried = await under.buildOf('allowed', ({ status }) => (status?.attempts ?? 0) > 0);
  expect(retried.status?.conditions?.find(({ type }) => type === 'Building')?.message).toContain(
    'the engine was reached',
  );
  expect(read).toContain('entitlement');
});
