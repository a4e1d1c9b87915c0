import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { PinnedImageSet, PinnedImagesRequest } from '../../api/pinned-image-set.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { RuntimeStandIn } from '../../test/fixtures/runtime-stand-in.ts';
import { noLabels } from '../host/selinux-labels.ts';
import { type KeepImagesContext, keepImages } from './keep-images.ts';
import { CRIO_DROP_IN, readPins } from './pins.ts';
import type { PinnedImagesReport } from './report.ts';

const imageOf = (name: string) => `registry.example.com/apps/${name}@sha256:${name.repeat(64).slice(0, 64)}`;
const [A, B, C] = [imageOf('a'), imageOf('b'), imageOf('c')] as const;
const PULL_SECRET = '/var/lib/kubelet/config.json';

/** A node with a stand-in for its runtime, and PinnedImageSets by name with their images. */
async function aNode(flavour: 'cri-o' | 'containerd', sets: Record<string, readonly string[]>) {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-pinned-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'etc/crio/crio.conf.d'), { recursive: true });
  const runtime = new RuntimeStandIn(root, flavour);
  const reports: PinnedImagesReport[] = [];
  const world = { sets, generation: 1, size: 1000, isCurrent: true, reserveBytes: 0 };
  const context = (): KeepImagesContext => ({
    ports: {
      host: { root },
      services: runtime.services,
      relabel: noLabels,
      runOnHost: runtime.run,
      images: {
        open: async (image: string) => ({ labels: {}, layers: [{ digest: image, size: world.size }] }),
      },
    } as unknown as KeepImagesContext['ports'],
    client: {
      find: async (_kind: unknown, name: string) => setOf(name, world.sets[name], world.generation),
    } as unknown as KeepImagesContext['client'],
    pullSecretFile: PULL_SECRET,
    reserveBytes: world.reserveBytes,
    pinnedWithinMs: 0,
    report: async (report) => void reports.push(report),
    isCurrent: () => world.isCurrent,
    held: new AbortController().signal,
    signal: deadline(patience(20_000)),
  });
  const request = (): PinnedImagesRequest => ({
    sets: Object.keys(world.sets).map((name) => ({ name, generation: world.generation })),
    containerRuntime: flavour,
  });
  const keep = (asked: PinnedImagesRequest | undefined = request()) => keepImages(context(), asked);
  const dropIn = () => readFile(path.join(root, CRIO_DROP_IN), 'utf8').catch(() => undefined);
  return { root, runtime, reports, world, keep, request, dropIn, context };
}

function setOf(name: string, images: readonly string[] | undefined, generation: number) {
  if (images === undefined) return undefined;
  return {
    metadata: { name, generation },
    spec: { pinnedImages: images.map((image) => ({ name: image })) },
  } as unknown as PinnedImageSet;
}

const finished = (...sets: object[]) => ({ kind: 'finished', sets });

describe.each(['cri-o', 'containerd'] as const)('on %s', (flavour) => {
  test('images are pulled in order, pinned together, and then left alone', async () => {
    const { runtime, reports, keep } = await aNode(flavour, { one: [A, B], two: [B, C] });
    runtime.add(B);
    expect(await keep()).toEqual(finished({ name: 'one', generation: 1 }, { name: 'two', generation: 1 }));
    expect(runtime.calls.filter((call) => call.startsWith('crictl pull'))).toEqual([
      `crictl pull ${A}`,
      `crictl pull ${C}`,
    ]);
    expect(runtime.pinned()).toEqual([A, B, C]);
    expect(reports.map((report) => report.kind === 'progressing' && report.doing)).toEqual([
      `Pulling image 1 of 2: ${A}`,
      `Pulling image 2 of 2: ${C}`,
    ]);
    runtime.calls.length = 0;
    await keep();
    expect(runtime.calls).toEqual(['crictl images --output=json']);
  });

  test('an image that no set has any more is let go, and stays on the node', async () => {
    const { root, runtime, world, keep } = await aNode(flavour, { one: [A, B] });
    await keep();
    world.sets = { one: [B] };
    world.generation = 2;
    expect(await keep()).toEqual(finished({ name: 'one', generation: 2 }));
    expect(runtime.pinned()).toEqual([B]);
    expect((await readPins(root))?.images).toEqual([B]);
  });

  test('without a request all of them are let go, and no trace is left', async () => {
    const { root, runtime, keep, dropIn, context } = await aNode(flavour, { one: [A] });
    await keep();
    expect(await keepImages(context(), undefined)).toEqual({ kind: 'none' });
    expect(runtime.pinned()).toEqual([]);
    expect([await readPins(root), await dropIn()]).toEqual([undefined, undefined]);
    runtime.calls.length = 0;
    await keepImages(context(), undefined);
    expect(runtime.calls).toEqual([]);
  });

  test('an image that somebody removed is pulled and pinned again', async () => {
    const { runtime, keep } = await aNode(flavour, { one: [A] });
    await keep();
    runtime.remove(A);
    expect(await keep()).toEqual(finished({ name: 'one', generation: 1 }));
    expect(runtime.pinned()).toEqual([A]);
  });

  test('a set whose image fails is not pinned; others are, and what was pinned of it stays', async () => {
    const { runtime, world, keep } = await aNode(flavour, { one: [A] });
    await keep();
    world.sets = { one: [A, C], two: [B] };
    runtime.refusals.set(C, 'FATA[0000] pulling image: unauthorized');
    const report = await keep();
    expect(report).toMatchObject(
      finished({ name: 'one', problem: expect.stringContaining('unauthorized') }, { name: 'two' }),
    );
    expect(runtime.pinned()).toEqual([A, B]);
  });

  test('a runtime that does not do it is a problem', async () => {
    const { runtime, keep } = await aNode(flavour, { one: [A] });
    runtime.pins = false;
    expect(await keep()).toMatchObject(
      finished({ problem: expect.stringContaining(`${flavour} does not list it as pinned`) }),
    );
  });

  test('where there is too little space nothing is pulled', async () => {
    const { runtime, world, keep } = await aNode(flavour, { one: [A] });
    world.reserveBytes = Number.MAX_SAFE_INTEGER;
    expect(await keep()).toMatchObject(
      finished({ problem: expect.stringContaining('too little space in /: the images may take 1 MiB') }),
    );
    expect(runtime.calls.some((call) => call.startsWith('crictl pull'))).toBe(false);
  });

  test('without crictl the problem says so', async () => {
    const { runtime, keep } = await aNode(flavour, { one: [A] });
    runtime.missing.add('crictl');
    await expect(keep()).rejects.toThrow('not installed');
  });
});

test('a pull has the credentials of the node for the registry, and not on its command line', async () => {
  const { root, runtime, keep } = await aNode('cri-o', { one: [A] });
  await mkdir(path.join(root, path.dirname(PULL_SECRET)), { recursive: true });
  const auth = Buffer.from('me:secret').toString('base64');
  await writeFile(
    path.join(root, PULL_SECRET),
    JSON.stringify({ auths: { 'registry.example.com': { auth }, 'other.example.com': { auth: 'eDp5' } } }),
  );
  await keep();
  expect(runtime.auths).toEqual([auth]);
  expect(runtime.calls.join()).not.toContain(auth);
});

test('the pause image that containerd pins stays pinned', async () => {
  const { runtime, world, keep } = await aNode('containerd', { one: [A] });
  runtime.add(A, { 'io.cri-containerd.pinned': 'pinned' });
  await keep();
  world.sets = {};
  await keep();
  expect(runtime.pinned()).toEqual([A]);
});

test('a drop-in of somebody else is left alone', async () => {
  const { root, keep, dropIn } = await aNode('cri-o', { one: [A] });
  await writeFile(path.join(root, CRIO_DROP_IN), 'pinned_images = ["x"]\n');
  await expect(keep()).rejects.toThrow(`${CRIO_DROP_IN} exists and was not written for a PinnedImageSet`);
  expect(await dropIn()).toBe('pinned_images = ["x"]\n');
});

test('a drop-in that somebody changed is written again', async () => {
  const { root, runtime, keep, dropIn } = await aNode('cri-o', { one: [A] });
  await keep();
  const before = await dropIn();
  await writeFile(path.join(root, CRIO_DROP_IN), '');
  await keep();
  expect(await dropIn()).toBe(before);
  expect(runtime.pinned()).toEqual([A]);
});

test('a reload that failed is tried again, also that of the last image', async () => {
  const { root, runtime, keep, context } = await aNode('cri-o', { one: [A] });
  runtime.failReloads = 1;
  await expect(keep()).rejects.toThrow('reload');
  await keep();
  expect(runtime.pinned()).toEqual([A]);
  runtime.failReloads = 1;
  await expect(keepImages(context(), undefined)).rejects.toThrow('reload');
  await keepImages(context(), undefined);
  expect([runtime.pinned(), await readPins(root)]).toEqual([[], undefined]);
});

test('a node whose runtime was replaced leaves nothing of the other', async () => {
  const { runtime, keep, request, dropIn } = await aNode('cri-o', { one: [A] });
  await keep();
  runtime.missing.add('crio');
  runtime.calls.length = 0;
  await keep({ ...request(), containerRuntime: 'containerd' });
  expect(runtime.calls).not.toContain('reload crio.service');
  expect(await dropIn()).toBeUndefined();
  expect(runtime.calls).toContain(`ctr --namespace=k8s.io images label ${A} io.cri-containerd.pinned=pinned`);
});

test('a request without a runtime changes nothing and says why', async () => {
  const { runtime, keep } = await aNode('cri-o', { one: [A] });
  const report = await keep({ sets: [{ name: 'one', generation: 1 }], problem: 'no runtime' });
  expect(report).toEqual({
    kind: 'finished',
    sets: [{ name: 'one', generation: 1, problem: 'is not pinned' }],
    problem: 'no runtime',
  });
  expect(runtime.calls).toEqual([]);
});

test('a set that was deleted meanwhile is passed over, and a newer request ends the pulls', async () => {
  const { runtime, world, keep, request } = await aNode('cri-o', { one: [A, B] });
  const asked = { ...request(), sets: [...request().sets, { name: 'gone', generation: 1 }] };
  runtime.onPull = () => {
    world.isCurrent = false;
  };
  expect(await keep(asked)).toBe('outdated');
  expect(runtime.calls.filter((call) => call.startsWith('crictl pull'))).toHaveLength(1);
  world.isCurrent = true;
  runtime.onPull = () => undefined;
  expect(await keep(asked)).toEqual(finished({ name: 'one', generation: 1 }));
});
