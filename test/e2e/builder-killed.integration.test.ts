/** A builder that is stopped or killed during a build, and its successor: one image, nothing left behind. */
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { outcomeOf } from '../../api/build-outcome.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { SIGNING_KEY_SECRET } from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { SigningKeySecret } from '../../builder/attest/signing-key-secret.ts';
import { describeImage } from '../../image/append.ts';
import { parseReference } from '../../image/reference.ts';
import { manifestAt } from '../../image/referrers.ts';
import { registryPruner } from '../../operator/registry.ts';
import { LayeringActor } from '../../opt-in/act-on-layering.ts';
import { decidePrune, type PruneObservation } from '../../opt-in/decide-prune.ts';
import { SeenBuilds } from '../../opt-in/pushed-images/seen-builds.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { type Fault, type RegistryProxy, startRegistryProxy } from '../fixtures/registry/registry-proxy.ts';
import { type BuilderUnderTest, has, publishKey, startBuilderUnderTest } from './builder-under-test.ts';
import { log, NAMESPACE, seen } from './cluster-under-test.ts';

const SHALE = path.join(import.meta.dirname, '../../bin/shale');
const signal = deadline(300_000);

let under: BuilderUnderTest;
let proxy: RegistryProxy;
let kubeconfig: string;

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  proxy = await startRegistryProxy(under.registry.host);
  kubeconfig = path.join(under.dir, 'kubeconfig');
  await writeFile(kubeconfig, under.cluster.kubeconfig());
}, patience(60_000));
afterAll(async () => {
  await proxy.stop();
  await under.stop();
});

function startBuilder(...flags: readonly string[]) {
  const hosts = ['--insecure-registry', proxy.host, under.registry.host];
  return execa(SHALE, ['machine-os-builder', '--kubeconfig', kubeconfig, ...hosts, ...flags], {
    reject: false,
    buffer: false,
    stdout: 'ignore',
    stderr: 'ignore',
    cancelSignal: signal,
  });
}

/** Starts a builder, and layers a pool whose build comes no further than to its first upload. */
async function buildHalf(pool: string) {
  const uploading = Promise.withResolvers<void>();
  proxy.decide((line) => {
    if (!line.startsWith('PUT') || !line.includes('/blobs/')) return 'none';
    uploading.resolve();
    return 'silence';
  });
  await under.createSecret(pool, under.auths('secret', proxy.host));
  const builder = startBuilder();
  await under.layerPool(pool, { secret: pool, pushSpec: `${proxy.host}/os/${pool}:latest` });
  await uploading.promise;
  // In an object: a child process is a promise of its end, and would be waited for.
  return { builder, begun: await under.buildOf(pool, has('Building')) };
}

test(
  'a builder that is stopped in the middle of a build reports it there, and the next one builds it again',
  async () => {
    const { builder: first } = await buildHalf('stopped');
    first.kill('SIGTERM');
    expect((await first).exitCode).toBe(0);
    const interrupted = await under.buildOf('stopped', has('Interrupted'));
    expect(has('Building')(interrupted)).toBe(false);

    proxy.decide(() => 'none');
    const second = startBuilder();
    await under.buildOf('stopped', has('Succeeded'), 60_000);
    second.kill('SIGTERM');
    expect((await second).exitCode).toBe(0);
  },
  patience(120_000),
);

test(
  'a builder that is killed in the middle of a build is followed by one that ends it, once',
  async () => {
    const { builder: first, begun } = await buildHalf('killed');
    first.kill('SIGKILL');
    expect((await first).signal).toBe('SIGKILL');

    proxy.decide(() => 'none');
    const second = startBuilder();
    // The first could not give its lease back: that has to end before the second may begin.
    const done = await under.buildOf('killed', has('Succeeded'), 60_000);
    second.kill('SIGTERM');
    expect((await second).exitCode).toBe(0);
    expect(done.metadata.uid).toBe(begun.metadata.uid);
    const { items } = await under.cluster.client.list(MachineOSBuilds, { signal });
    expect(items.filter(({ spec }) => spec.machineOSConfig.name === 'killed')).toHaveLength(1);
    const image = done.status?.digestedImagePushSpec?.replace(proxy.host, under.registry.host) ?? '';
    const made = await describeImage(under.registryClient(), parseReference(image), 'amd64', signal);
    expect(made.manifest.layers).toHaveLength(2);
  },
  patience(120_000),
);

describe('what a build pushed that did not succeed', () => {
  const SIGNED = ['--signing-key-secret', SIGNING_KEY_SECRET];
  const signingKey = () =>
    new SigningKeySecret(under.cluster.client, { namespace: NAMESPACE, name: SIGNING_KEY_SECRET });
  const isSignature = (line: string) => /^PUT .*\/manifests\/sha256-[0-9a-f]{64}\.sig$/.test(line);

  beforeAll(async () => {
    await signingKey().create(signal);
    const state = await signingKey().read(signal);
    if (state.kind !== 'usable') throw new Error(`the key is ${state.kind}`);
    await publishKey(await under.cluster.clientOf('shale-operator'), state.publicKey, signal);
  });

  /** @returns when the pool's image is pushed and its signature is on its way, with that fate. */
  async function pushImage(pool: string, fault: Fault) {
    const signing = Promise.withResolvers<void>();
    proxy.decide((line) => {
      if (!isSignature(line)) return 'none';
      signing.resolve();
      return fault;
    });
    await under.createSecret(pool, under.auths('secret', proxy.host));
    const builder = startBuilder(...SIGNED);
    await under.layerPool(pool, { secret: pool, pushSpec: `${proxy.host}/os/${pool}:latest` });
    await signing.promise;
    return { builder, begun: await under.buildOf(pool, () => true) };
  }

  /** @returns the digests of all manifests of the pool's repository, as they lie on the registry's disk. */
  async function manifestsOf(pool: string): Promise<readonly string[]> {
    const root = path.join(
      under.dir,
      `blobs/docker/registry/v2/repositories/os/${pool}/_manifests/revisions`,
    );
    const links = await readdir(root, { recursive: true });
    return links.filter((file) => file.endsWith('/link'));
  }

  /** Prunes as the operator does. @returns the builds that are left. */
  async function prune(pool: string, seenOf: Partial<PruneObservation> = {}) {
    const { client } = under.cluster;
    const list = async <T extends KubernetesObject>(kind: Kind<T>) =>
      (await client.list(kind, { signal })).items;
    const builds = (await list(MachineOSBuilds)).filter(({ spec }) => spec.machineOSConfig.name === pool);
    const pruning = decidePrune({
      builds,
      machineOSConfigs: await list(MachineOSConfigs),
      nodes: await list(MachineConfigNodes),
      pools: await list(MachineConfigPools),
      revisions: await list(PoolRevisions),
      hasBuilder: true,
      keep: 0,
      ...seenOf,
    });
    const hosts = new Set([proxy.host]);
    const actor = new LayeringActor({
      client,
      events: { normal: () => undefined, warning: () => undefined },
      log,
      pruner: registryPruner({ client, namespace: NAMESPACE, plainHttp: hosts }),
      seen: new SeenBuilds(),
      signing: { take: async () => expect.fail('no step of signing') },
      namespace: NAMESPACE,
    });
    if (pruning.builds.length > 0) await actor.take({ kind: 'prune', ...pruning }, signal);
    return (await list(MachineOSBuilds)).filter(({ spec }) => spec.machineOSConfig.name === pool);
  }

  async function switchOff(pool: string, builder: { kill(signal: 'SIGTERM'): boolean }): Promise<void> {
    await under.cluster.client.delete(MachineOSConfigs, pool, { signal });
    builder.kill('SIGTERM');
    await builder;
    expect(await manifestsOf(pool)).not.toEqual([]);
    expect(await prune(pool, { hasBuilder: false })).toEqual([]);
    expect(await manifestsOf(pool)).toEqual([]);
  }

  test(
    'goes when a newer build interrupted it, and leaves the image of that as it is',
    async () => {
      const { builder, begun } = await pushImage('edited', 'silence');
      await under.changeFile('edited', 'server b');
      const { name } = begun.metadata;
      await seen(under.cluster.client, MachineOSBuilds, name, has('Interrupted'));
      proxy.decide(() => 'none');
      await under.configOf('edited', ({ status }) => status?.machineOSBuild?.name !== name);
      const next = await under.buildOf('edited', has('Succeeded'));
      const before = await manifestsOf('edited');
      const left = await prune('edited');
      expect(left.map(({ metadata }) => metadata.name)).toEqual([next.metadata.name]);
      // The interrupted build had no signature and no statements yet.
      expect(await manifestsOf('edited')).toHaveLength(before.length - 1);
      const at = parseReference(
        next.status?.digestedImagePushSpec?.replace(proxy.host, under.registry.host) ?? '',
      );
      expect(await manifestAt(under.registryClient(), at, signal)).toBeDefined();
      await switchOff('edited', builder);
    },
    patience(120_000),
  );

  test(
    'goes when the build fails after its push',
    async () => {
      const { builder, begun } = await pushImage('refused', 'refused');
      await seen(under.cluster.client, MachineOSBuilds, begun.metadata.name, has('Failed'));
      await switchOff('refused', builder);
    },
    patience(120_000),
  );

  test(
    'goes when the builder was killed between push and status',
    async () => {
      const { builder: first, begun } = await pushImage('cut-off', 'silence');
      first.kill('SIGKILL');
      await first;
      expect(
        outcomeOf(await under.cluster.client.get(MachineOSBuilds, begun.metadata.name, { signal })),
      ).toBe(undefined);
      proxy.decide(() => 'none');
      await switchOff('cut-off', first);
    },
    patience(120_000),
  );
});
