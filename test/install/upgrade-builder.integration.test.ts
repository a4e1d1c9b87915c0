/** A builder of this version after one of another, in the same registry. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { imageLabels } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { describeImage } from '../../image/append.ts';
import { parseReference } from '../../image/reference.ts';
import { type BuilderUnderTest, has, startBuilderUnderTest } from '../e2e/builder-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';

const OLDER = '0.0.9';
const DEADLINE_MS = 60_000;
const signal = deadline(300_000);
let under: BuilderUnderTest;

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  await under.createSecret('push', under.auths('secret'));
}, patience(90_000));
afterAll(() => under.stop());

/** Has a builder make what the pool wants, and ends it. @returns the pool's build. */
async function runUntilBuilt(pool: string, version?: string): Promise<MachineOSBuild> {
  const stop = new AbortController();
  const running = under.runBuilder(stop.signal, present({ version }));
  try {
    return await under.buildOf(pool, has('Succeeded'), DEADLINE_MS);
  } finally {
    stop.abort();
    await running;
  }
}

async function labelsOf({ status }: MachineOSBuild): Promise<Readonly<Record<string, string>>> {
  const image = parseReference(status?.digestedImagePushSpec ?? '');
  const { config } = await describeImage(under.registryClient(), image, 'amd64', signal);
  return config.config?.Labels ?? {};
}

/** Puts a build in the place of the older version's own, under a name by a rule of its own. */
async function renamed(build: MachineOSBuild, name: string): Promise<MachineOSBuild> {
  const { client } = under.cluster;
  const { labels } = build.metadata;
  const metadata = { name, ...present({ labels }) };
  await client.delete(MachineOSBuilds, build.metadata.name, { signal });
  const { apiVersion, kind, spec, status } = build;
  const made = await client.create(MachineOSBuilds, { apiVersion, kind, metadata, spec }, { signal });
  return client.replaceStatus(MachineOSBuilds, { ...made, ...present({ status }) }, { signal });
}

test('a finished build stays; the label of the next one has a transition from it', {
  timeout: patience(120_000),
}, async () => {
  await under.layerPool('kept', { secret: 'push' });
  const older = await renamed(await runUntilBuilt('kept', OLDER), 'kept-older');
  const { client } = under.cluster;
  const config = await client.get(MachineOSConfigs, 'kept', { signal });
  const pointer = {
    group: 'machineconfiguration.openshift.io',
    resource: 'machineosbuilds',
    name: 'kept-older',
  };
  const status = { ...config.status, machineOSBuild: pointer };
  await client.replaceStatus(MachineOSConfigs, { ...config, status }, { signal });

  const rendered = await under.changeFile('kept', 'server b');
  const stop = new AbortController();
  const running = under.runBuilder(stop.signal);
  const isNext = (build: MachineOSBuild) =>
    has('Succeeded')(build) && build.spec.machineConfig.name === rendered;
  const named = (name: string) => name !== 'kept-older';
  await under.configOf('kept', ({ status }) => named(status?.machineOSBuild?.name ?? 'kept-older'));
  const next = await under.buildOf('kept', isNext, DEADLINE_MS);
  stop.abort();
  await running;
  expect(next.status?.transitions?.map(({ from }) => from)).toContain(
    `${older.spec.machineConfig.name} on ${older.status?.baseImage}`,
  );
  expect((await client.get(MachineOSBuilds, 'kept-older', { signal })).status).toEqual(older.status);
});

test('what can not be taken over is made again, and asks nothing of nodes that run it', {
  timeout: patience(120_000),
}, async () => {
  await under.layerPool('again', { secret: 'push' });
  const older = await renamed(await runUntilBuilt('again', OLDER), 'again-older');
  const { client } = under.cluster;
  // That version wrote nothing by which it is certain what the image was made of.
  const config = await client.get(MachineOSConfigs, 'again', { signal });
  await client.replaceStatus(MachineOSConfigs, { ...config, status: {} }, { signal });

  const again = await runUntilBuilt('again');
  expect(again.metadata.name).not.toBe(older.metadata.name);
  expect((await labelsOf(older))[imageLabels.version]).toBe(OLDER);
  expect((await labelsOf(again))[imageLabels.version]).not.toBe(OLDER);
  expect(again.status?.builder?.imageBuilderType).toBe('Relabel');
  expect(again.status?.transitions).toEqual([
    { from: `${older.spec.machineConfig.name} on ${older.status?.baseImage}`, actions: 'None' },
  ]);
});
