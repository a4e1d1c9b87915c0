import { access, mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { DigestedPullspec } from '../../../api/references.ts';
import { commitOf, OstreeHost } from '../../../test/fixtures/ostree-host.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import { contentDigestAt } from '../../files/read-tree.ts';
import { NoDeploymentError, PackagesRefused, SoftRebootRefused, type StageOptions } from '../backend.ts';
import {
  type ImageRecord,
  imageRef,
  layerRef,
  readImageRecord,
  stateDirectory,
  writeImageRecord,
} from './image-record.ts';
import type { ImageSource, SourceLayer } from './image-source.ts';
import { OstreeBackend } from './ostree-backend.ts';

const signal = deadline(60_000);
const none = { remove: [], add: [] };
const diffId = (digit: string) => `sha256:${digit.repeat(64)}`;

/** A layer with one file, or none of it can be read. */
function layer(digit: string, size = 10): SourceLayer {
  return {
    diffId: diffId(digit),
    digest: diffId(digit),
    size,
    async *read(onBytes) {
      onBytes(size);
      yield* [];
    },
  };
}

async function hostUnderTest(booted?: DigestedPullspec, kernelArguments?: readonly string[]) {
  const host = await OstreeHost.create(booted, kernelArguments);
  const images = new Map<DigestedPullspec, readonly SourceLayer[]>();
  const opened: DigestedPullspec[] = [];
  const source: ImageSource = {
    open: async (image) => {
      opened.push(image);
      return { labels: { of: image }, layers: images.get(image) ?? [] };
    },
  };
  const backend = new OstreeBackend({
    sysroot: host.sysroot,
    root: host.root,
    bootedDirectory: async () => host.directoryOf(host.booted.id),
    source,
    run: host.run,
  });
  const stage = (image: DigestedPullspec, more: Partial<StageOptions> = {}) =>
    backend.stage(image, { extraKernelArguments: none, signal, ...more });
  /** The host starts what is first. */
  const reboot = () => {
    host.booted = host.written[0] ?? host.booted;
  };
  return { host, backend, images, opened, stage, reboot, state: stateDirectory(host.sysroot) };
}

const [first, second, third] = ['1', '2', '3'].map(imageOf) as [
  DigestedPullspec,
  DigestedPullspec,
  DigestedPullspec,
];

describe('staging', () => {
  test('makes the image the next boot, with its labels', async () => {
    const { backend, stage, host } = await hostUnderTest();
    const staged = await stage(first);
    expect(staged).toMatchObject({ image: first, labels: { of: first }, kernelArguments: ['rw'] });
    expect(await backend.status(signal)).toMatchObject({
      booted: { id: host.booted.id },
      staged: { id: staged.id },
    });
    expect((await backend.status(signal)).rollback).toBeUndefined();
  });

  test('of what is staged already, or runs, makes nothing', async () => {
    const { stage, host, backend, reboot, opened } = await hostUnderTest();
    const staged = await stage(first);
    expect((await stage(first)).id).toBe(staged.id);
    reboot();
    await stage(second);
    expect((await stage(first)).id).toBe(staged.id);
    expect((await backend.status(signal)).staged).toBeUndefined();
    expect(host.commands.filter((command) => command.startsWith('admin deploy'))).toHaveLength(2);
    expect(opened).toEqual([first, second]);
  });

  test('of what runs makes a deployment of its own when it is asked to', async () => {
    const { stage, reboot } = await hostUnderTest();
    const { id } = await stage(first);
    reboot();
    const again = await stage(first, { evenIfBooted: true });
    expect(again).toMatchObject({ image: first });
    expect(again.id).not.toBe(id);
  });

  test('replaces what was staged before', async () => {
    const { stage, host } = await hostUnderTest();
    await stage(first);
    const { id } = await stage(second);
    expect(host.written.map((deployment) => deployment.id)).toEqual([id, host.booted.id]);
  });

  test('sets the kernel arguments of the image and the extra ones, and takes former ones away', async () => {
    const { backend, stage, host, reboot, images } = await hostUnderTest(undefined, ['root=x', 'rw']);
    images.set(first, []);
    const staged = await stage(first, { extraKernelArguments: { remove: [], add: ['quiet'] } });
    expect(staged.kernelArguments).toEqual(['root=x', 'rw', 'quiet']);
    expect((await backend.status(signal)).booted.addedKernelArguments).toBeUndefined();
    reboot();
    expect((await backend.status(signal)).booted.addedKernelArguments).toEqual(['quiet']);
    // What it was staged with is noted: the caller needn't know it.
    const next = await stage(second, { extraKernelArguments: { remove: [], add: ['debug'] } });
    expect(next.kernelArguments).toEqual(['root=x', 'rw', 'debug']);
    const kargs = path.join(host.directoryOf(host.booted.id), 'usr/lib/bootc/kargs.d');
    await mkdir(kargs, { recursive: true });
    await writeFile(path.join(kargs, '10.toml'), 'kargs = ["rw"]\n');
    expect((await stage(third)).kernelArguments).toEqual(['root=x']);
  });

  test('refuses packages, which ostree alone can not install', async () => {
    const { stage, host } = await hostUnderTest();
    const packages = { installed: ['vim'], removed: [] };
    const extraPackages = { remove: { installed: [], removed: [] }, add: packages };
    await expect(stage(first, { extraPackages })).rejects.toThrow(PackagesRefused);
    expect(host.commands).toEqual([]);
  });
});

describe('an image that comes', () => {
  test('is fetched layer by layer, each once and those that are there not at all', async () => {
    const { stage, host, images } = await hostUnderTest();
    images.set(first, [layer('a'), layer('b'), layer('a')]);
    await stage(first);
    expect([...host.refs.keys()]).toEqual([layerRef(diffId('a')), layerRef(diffId('b')), imageRef(first)]);
    images.set(second, [layer('a'), layer('c', 5)]);
    const progress: string[] = [];
    await stage(second, { onProgress: (done, total) => void progress.push(`${done} of ${total}`) });
    expect(progress).toEqual(['5 of 5']);
    expect(
      host.commands.filter((command) => command.includes(`--branch=${layerRef(diffId('a'))}`)),
    ).toHaveLength(1);
  });

  test('is shown before a layer is fetched, and again when it is known already', async () => {
    const { stage, host, images, reboot } = await hostUnderTest();
    images.set(first, [layer('a')]);
    const refuse = () => {
      throw new Error('not this one');
    };
    await expect(stage(first, { accept: refuse })).rejects.toThrow('not this one');
    expect(host.refs.size).toBe(0);
    const shown: unknown[] = [];
    const accept = (labels: object) => void shown.push(labels);
    await stage(first, { accept });
    reboot();
    await stage(first, { accept });
    expect(shown).toEqual([{ of: first }, { of: first }]);
  });

  test('is looked at again where an earlier version of Shale did not note how its root is set up', async () => {
    const { backend, stage, images, opened, state, reboot } = await hostUnderTest();
    images.set(first, [layer('a')]);
    const fetching = { extraKernelArguments: none, signal };
    await backend.fetch(first, fetching);
    const { rootConfigurations, ...before } = (await readImageRecord(state, first)) ?? { labels: {} };
    expect(rootConfigurations).toEqual([]);
    const forget = () => writeImageRecord(state, first, before as ImageRecord);
    await forget();
    await backend.fetch(first, fetching);
    expect(opened).toEqual([first, first]);
    expect(await readImageRecord(state, first)).toEqual({ ...before, version: 1, rootConfigurations: [] });
    await stage(first);
    reboot();
    await forget();
    await stage(first);
    expect(opened).toEqual([first, first]);
  });

  test('that is larger than the disk is refused, and nothing of it is fetched', async () => {
    const { stage, host, images } = await hostUnderTest();
    images.set(first, [layer('a', 2 ** 60)]);
    await expect(stage(first)).rejects.toThrow(/are needed to stage the image/);
    expect(host.refs.size).toBe(0);
  });

  test('is fetched again where its commit is gone, and leaves no temporary files, also when it fails', async () => {
    const { stage, host, images, opened, state } = await hostUnderTest();
    await stage(first);
    await host.deleteRef(imageRef(first));
    await mkdir(path.join(state, 'tmp/left'), { recursive: true });
    await stage(first);
    expect(opened).toEqual([first, first]);
    await expect(access(path.join(state, 'tmp'))).rejects.toThrow('ENOENT');
    const broken: SourceLayer = {
      ...layer('d'),
      // biome-ignore lint/correctness/useYield: it breaks before the first item
      async *read() {
        throw new Error('connection lost');
      },
    };
    images.set(second, [broken]);
    await expect(stage(second)).rejects.toThrow('connection lost');
    await expect(access(path.join(state, 'tmp'))).rejects.toThrow('ENOENT');
    expect(host.refs.has(layerRef(diffId('d')))).toBe(false);
  });
});

describe('the rollback', () => {
  test('unstages everything that is before what runs', async () => {
    const { backend, stage, host } = await hostUnderTest();
    const { id } = await stage(first);
    const other = { id: host.nextId(id.slice(0, 64)), kernelArguments: [] };
    await host.put(other);
    await host.boot([other, ...host.written]);
    await backend.unstage(signal);
    expect(host.written).toEqual([host.booted]);
    await backend.unstage(signal);
    expect(host.written).toEqual([host.booted]);
  });

  test('makes the previous deployment the next, with its image and arguments', async () => {
    const { backend, stage, host, reboot } = await hostUnderTest(third, ['rw', 'old']);
    const stock = host.booted;
    await stage(first);
    reboot();
    expect((await backend.status(signal)).rollback?.id).toBe(stock.id);
    await backend.rollback(signal);
    expect((await backend.status(signal)).staged).toMatchObject({
      image: third,
      kernelArguments: ['rw', 'old'],
    });
    // Asked again, with the previous one gone.
    await backend.rollback(signal);
    expect((await backend.status(signal)).staged).toMatchObject({ image: third });
  });

  test('is missing on a host that has one deployment', async () => {
    const { backend } = await hostUnderTest();
    await expect(backend.rollback(signal)).rejects.toThrow(NoDeploymentError);
    await expect(backend.finalizeStaged(new Map(), signal)).rejects.toThrow(NoDeploymentError);
  });

  test("is a shell function on the host, which keeps Shale's files", async () => {
    const { backend, host } = await hostUnderTest();
    const script = await backend.rollbackScript(['/etc/a', '/var/b'], signal);
    expect(script).toContain(host.booted.id);
    expect(script).toContain('as_before /etc/a || return 1');
    expect(script).not.toContain('/var/b');
    const down = AbortSignal.abort();
    await expect(backend.rollbackScript([], down)).rejects.toThrow(/abort/);
    await expect(backend.status(down)).rejects.toThrow(/abort/);
  });
});

test("finalizing gives the next boot the image's version of what Shale wrote, and the admin's of the rest", async () => {
  const { backend, stage, host } = await hostUnderTest();
  const { id } = await stage(first);
  for (const name of ['own.conf', 'edited.conf']) await writeFile(path.join(host.root, 'etc', name), 'old');
  const managed = new Map([['/etc/own.conf', await contentDigestAt(host.root, '/etc/own.conf')]]);
  const fresh = await backend.finalizeStaged(managed, signal);
  expect(fresh).toMatchObject({ image: first, labels: { of: first } });
  expect(fresh.id).not.toBe(id);
  expect(host.written.map((deployment) => deployment.id)).toEqual([fresh.id, host.booted.id]);
  expect(await readdir(path.join(fresh.root, 'etc'))).toEqual(['edited.conf']);
});

describe('a soft reboot', () => {
  /** One that could be had, unless something is missing. */
  const softHost = async ({
    version = '2026.4',
    image = COMPOSEFS,
    composefs = 'yes',
    target = true,
  } = {}) => {
    const under = await hostUnderTest();
    const { host } = under;
    host.version = version;
    await writeFile(path.join(host.root, 'run/ostree-booted'), image);
    const units = path.join(host.root, 'usr/lib/systemd/system');
    await mkdir(units, { recursive: true });
    if (target) await writeFile(path.join(units, 'soft-reboot.target'), '');
    const configuration = path.join(host.root, 'usr/lib/ostree/prepare-root.conf');
    await mkdir(path.dirname(configuration), { recursive: true });
    await writeFile(configuration, `[composefs]\nenabled = ${composefs}\n`);
    return under;
  };
  /** /run/ostree-booted: `composefs` is true, and the root is signed or isn't. */
  const COMPOSEFS = Buffer.from('composefs\0\0\0\0\0\0\0\x01\0b\x0a\x14', 'latin1');
  const fetching = { extraKernelArguments: none, signal };

  test('is told of before anything is deployed, and prepared for what is', async () => {
    const { backend, host, stage } = await softHost();
    expect(await backend.fetch(first, fetching)).toMatchObject({ canSoftReboot: true });
    await stage(first);
    const before = host.commands.length;
    await backend.prepareSoftReboot(signal);
    expect(host.commands.slice(before).filter((command) => command.includes('soft'))).toEqual([
      'admin prepare-soft-reboot --reset',
      'admin prepare-soft-reboot 0',
    ]);
  });

  test.each([
    ['the booted ostree has no command for it', { version: '2022.7' }],
    ['the booted root is no composefs', { image: Buffer.of() }],
    ['the booted root need not have been a composefs', { composefs: 'maybe' }],
    ['the booted systemd has no target for it', { target: false }],
  ])('is refused where %s, and no commit is looked at', async (_why, options) => {
    const { backend, host, stage } = await softHost(options);
    expect((await backend.fetch(first, fetching)).canSoftReboot).toBeUndefined();
    await stage(first);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(SoftRebootRefused);
    expect(host.commands.filter((command) => /^ls |soft/.test(command))).toEqual([]);
  });

  test('is refused into another kernel, and where nothing is staged', async () => {
    const { backend, host, stage } = await softHost();
    host.modules.set(commitOf(imageRef(first)), 'another kernel');
    expect((await backend.fetch(first, fetching)).canSoftReboot).toBeUndefined();
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow('into the booted deployment; expected');
    const { id } = await stage(first);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(`into ${id}; expected ostree 2025.3`);
    expect(host.commands.filter((command) => command.includes('soft'))).toEqual([]);
  });
});

test('cleaning up keeps what runs, what is staged, what was before, and what these need', async () => {
  const { backend, stage, host, images, reboot, state } = await hostUnderTest();
  images.set(first, [layer('a')]);
  images.set(second, [layer('b')]);
  const stock = host.booted;
  await stage(second);
  reboot();
  await stage(first);
  const [next, running] = host.written;
  const older = [3, 4].map((serial) => ({
    id: `${stock.id.slice(0, 64)}.${serial}`,
    kernelArguments: ['rw'],
  }));
  const pending = { id: `${stock.id.slice(0, 64)}.9`, kernelArguments: ['rw'] };
  for (const each of [...older, pending]) await host.put(each);
  if (next === undefined || running === undefined) throw new Error('nothing was staged');
  await host.boot([next, pending, running, stock, ...older]);
  await stage(third);
  await host.boot([next, pending, running, stock, ...older]);
  await backend.cleanup(signal);
  expect(host.written.map(({ id }) => id)).toEqual([next.id, running.id, stock.id]);
  expect([...host.refs.keys()].toSorted()).toEqual(
    [imageRef(first), imageRef(second), layerRef(diffId('a')), layerRef(diffId('b'))].toSorted(),
  );
  expect(await readdir(path.join(state, 'images'))).toHaveLength(2);
  expect(host.commands.at(-1)).toBe('admin cleanup');
});

test('what was booted is not among the deployments', async () => {
  const { backend, host } = await hostUnderTest();
  host.booted = { id: `${'f'.repeat(64)}.0`, kernelArguments: [] };
  await expect(backend.status(signal)).rejects.toThrow(/is booted but not among the deployments of/);
});

test('the tool is asked for its version once', async () => {
  const { backend, host } = await hostUnderTest();
  const tool = { name: 'ostree', version: '2022.7', installsPackages: false };
  expect([await backend.tool(signal), await backend.tool(signal)]).toEqual([tool, tool]);
  expect(host.commands).toEqual(['--version']);
});
