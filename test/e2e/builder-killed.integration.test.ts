import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { describeImage } from '../../image/append.ts';
import { parseReference } from '../../image/reference.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { type RegistryProxy, startRegistryProxy } from '../fixtures/registry/registry-proxy.ts';
import { type BuilderUnderTest, has, startBuilderUnderTest } from './builder-under-test.ts';

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

function startBuilder() {
  const hosts = ['--insecure-registry', proxy.host, under.registry.host];
  return execa(SHALE, ['machine-os-builder', '--kubeconfig', kubeconfig, ...hosts], {
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
