import { access, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { first, hostUnderTest, LOCK, none, second, third } from '../../../test/fixtures/image-tool-host.ts';
import { commitOf, type HostDeployment } from '../../../test/fixtures/ostree-host.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { contentDigestAt } from '../../files/read-tree.ts';
import { layerRefOf, UnexpectedDeploymentError } from './bring-image.ts';

const signal = deadline(60_000);

describe('staging', () => {
  test("has the tool pull the image, and stages it again with Shale's kernel arguments", async () => {
    const { backend, stage, calls, host, state } = await hostUnderTest();
    const staged = await stage(first, { extraKernelArguments: { remove: [], add: ['quiet'] } });
    expect(staged).toMatchObject({ image: first, labels: { of: first }, kernelArguments: ['rw', 'quiet'] });
    expect(calls).toEqual(['pull']);
    expect((await stat(state)).mode & 0o777).toBe(0o700);
    expect(host.staged).toMatchObject({ id: staged.id });
    expect(host.commands).toContain(
      `admin deploy --stage --os=stock --karg-none --karg-append=rw --karg-append=quiet ${staged.id.slice(0, 64)}`,
    );
    const status = await backend.status(signal);
    expect([status.booted.image, status.staged?.id, status.rollback]).toEqual([third, staged.id, undefined]);
  });

  test('of what is staged already pulls and deploys nothing', async () => {
    const { stage, calls, host } = await hostUnderTest();
    const { id } = await stage(first);
    expect((await stage(first)).id).toBe(id);
    expect(calls).toEqual(['pull']);
    expect(host.commands.filter((command) => command.startsWith('admin deploy'))).toHaveLength(1);
  });

  test('of what is staged with other kernel arguments deploys it again', async () => {
    const { stage, calls } = await hostUnderTest();
    const { id } = await stage(first);
    const again = await stage(first, { extraKernelArguments: { remove: [], add: ['quiet'] } });
    expect(again.id).not.toBe(id);
    expect(again.kernelArguments).toEqual(['rw', 'quiet']);
    expect(calls).toEqual(['pull']);
  });

  test('of what runs unstages the rest, unless a deployment of its own is asked for', async () => {
    const { stage, calls, host } = await hostUnderTest();
    await stage(first);
    expect((await stage(third)).id).toBe(host.booted.id);
    expect(host.staged).toBeUndefined();
    expect(calls).toEqual(['pull', 'drop 1']);
    expect((await stage(third)).id).toBe(host.booted.id);
    expect(calls).toEqual(['pull', 'drop 1']);
    const own = await stage(third, { evenIfBooted: true });
    expect(own.image).toBe(third);
    expect(own.id).not.toBe(host.booted.id);
  });

  test('takes away the kernel arguments that the deployment was staged with, once it runs', async () => {
    const { stage, reboot } = await hostUnderTest();
    await stage(first, { extraKernelArguments: { remove: [], add: ['quiet'] } });
    await reboot();
    expect((await stage(second)).kernelArguments).toEqual(['rw']);
  });

  test('of an image that the tool did not bring fails', async () => {
    const { stage } = await hostUnderTest({ pulls: second });
    await expect(stage(first)).rejects.toThrow(UnexpectedDeploymentError);
    await expect(stage(first)).rejects.toThrow(`bootc has staged ${second}; expected ${first}`);
  });

  test('of an image that the disk has no room for has the tool pull nothing', async () => {
    const { stage, calls } = await hostUnderTest({ layerBytes: 2 ** 60 });
    await expect(stage(first)).rejects.toThrow('are needed to stage the image');
    expect(calls).toEqual([]);
  });

  test('keeps no lock of what was staged before', async () => {
    const { stage, host, backend } = await hostUnderTest();
    const lock = path.join(host.root, LOCK);
    await writeFile(lock, '');
    await stage(first);
    await expect(access(lock)).rejects.toThrow('ENOENT');
    expect((await backend.status(signal)).staged?.image).toBe(first);
  });

  test("shows the image's labels before the tool pulls it, and of one that is on the disk", async () => {
    const { stage, calls, reboot } = await hostUnderTest();
    const refuse = () => {
      throw new Error('not this one');
    };
    await expect(stage(first, { accept: refuse })).rejects.toThrow('not this one');
    expect(calls).toEqual([]);
    await stage(first);
    await reboot();
    await expect(stage(first, { accept: refuse })).rejects.toThrow('not this one');
  });

  test('of an image that is on the disk needs no registry; its labels are not known then', async () => {
    const { stage, isReachable } = await hostUnderTest();
    isReachable.now = false;
    const shown: object[] = [];
    const staged = await stage(third, { accept: (labels) => void shown.push(labels) });
    expect([staged.image, staged.labels, shown]).toEqual([third, {}, [{}]]);
    await expect(stage(first)).rejects.toThrow('the registry is gone');
  });

  test('has a directory for what it notes that is root’s alone, also where somebody has removed it since', async () => {
    const { backend, stage, state } = await hostUnderTest();
    await stage(first);
    await rm(state, { recursive: true });
    await backend.finalizeStaged(new Map(), signal);
    expect((await stat(state)).mode & 0o777).toBe(0o700);
  });

  test('asks the registry once about what is on the disk', async () => {
    const { stage, opened } = await hostUnderTest();
    await stage(third);
    expect((await stage(third)).labels).toEqual({ of: third });
    expect(opened).toEqual([third]);
  });

  test('has the tool demand a signature where the policy of the host does', async () => {
    const { stage, calls, host } = await hostUnderTest();
    await mkdir(path.join(host.root, 'etc/containers'), { recursive: true });
    await writeFile(
      path.join(host.root, 'etc/containers/policy.json'),
      JSON.stringify({ default: [{ type: 'reject' }] }),
    );
    await stage(first);
    expect(calls).toEqual(['pull signed']);
  });
});

test.each([
  ['stage', 'it is not the next deployment to boot'],
  ['fetch', 'it is not the deployment that is locked'],
] as const)('what ostree says it has deployed is looked for (%s)', async (how, message) => {
  const { backend } = await hostUnderTest({ deploysNothing: true });
  const options = { extraKernelArguments: none, evenIfBooted: true, signal };
  await expect(backend[how](third, options)).rejects.toThrow(UnexpectedDeploymentError);
  await expect(backend[how](third, options)).rejects.toThrow(
    `ostree admin deploy ${commitOf(third)}: ${message}`,
  );
});

test('the progress of a pull is told from its begin to its end', async () => {
  const { stage } = await hostUnderTest({ layerBytes: 1000 });
  const told: string[] = [];
  await stage(first, { onProgress: (done, total) => void told.push(`${done}/${total}`) });
  expect(told).toEqual(['0/1000', '1000/1000']);
});

test('a layer that is there is not fetched, and needs no room', async () => {
  const { stage, host } = await hostUnderTest({ layerBytes: 2 ** 60 });
  await host.setRef(layerRefOf(`sha256:${'7'.repeat(64)}`), commitOf('layer'));
  const told: string[] = [];
  await stage(first, { onProgress: (done, total) => void told.push(`${done}/${total}`) });
  expect(told).toEqual(['0/0', '0/0']);
});

test('cleaning up takes away what was fetched and never granted, with its lock', async () => {
  const { backend, host, stage, reboot } = await hostUnderTest();
  await stage(first);
  await reboot();
  const older = { id: `${commitOf(third)}.5`, kernelArguments: [] };
  await host.put(older);
  await host.boot([...host.written, older]);
  const before = host.written.map(({ id }) => id);
  await backend.fetch(second, { extraKernelArguments: none, signal });
  await backend.cleanup(signal);
  expect(host.staged).toBeUndefined();
  await expect(access(path.join(host.root, LOCK))).rejects.toThrow('ENOENT');
  expect(host.written.map(({ id }) => id)).toEqual(before.slice(0, 2));
});

test("finalizing writes what is staged, with the image's version of what Shale wrote", async () => {
  const { backend, stage, host } = await hostUnderTest();
  const { id } = await stage(first);
  for (const name of ['own.conf', 'edited.conf']) await writeFile(path.join(host.root, 'etc', name), 'old');
  const managed = new Map([['/etc/own.conf', await contentDigestAt(host.root, '/etc/own.conf')]]);
  const fresh = await backend.finalizeStaged(managed, signal);
  expect(fresh).toMatchObject({ image: first, kernelArguments: ['rw'] });
  expect([fresh.id === id, host.staged]).toEqual([false, undefined]);
  expect(host.written.map((deployment) => deployment.id)).toEqual([fresh.id, host.booted.id]);
  expect(await readdir(path.join(fresh.root, 'etc'))).toEqual(['edited.conf']);
});

test('cleaning up keeps the previous deployment and pinned ones, and the records of images that are left', async () => {
  const pinned = `${commitOf(third)}.7`;
  const { backend, stage, calls, host, reboot, state } = await hostUnderTest({
    isPinned: (id) => id === pinned,
  });
  await stage(second);
  await stage(first);
  await reboot();
  const [running, previous] = host.written as [HostDeployment, HostDeployment];
  const older = [5, 6, 7, 8].map((serial) => ({ id: `${commitOf(third)}.${serial}`, kernelArguments: [] }));
  for (const each of older) await host.put(each);
  await stage(third, { evenIfBooted: true });
  await host.boot([running, previous, ...older]);
  await backend.cleanup(signal);
  expect(host.written.map(({ id }) => id)).toEqual([running.id, previous.id, pinned]);
  expect(host.staged).toBeDefined();
  expect(calls.at(-1)).toBe('cleanup');
  expect(host.commands).toContain('admin cleanup');
  expect(await readdir(path.join(state, 'images'))).toHaveLength(2);
});

test('the tool says its version and whether it installs packages', async () => {
  const { backend } = await hostUnderTest({ installsPackages: true });
  expect(await backend.tool(signal)).toMatchObject({ name: 'rpm-ostree', installsPackages: true });
  const { backend: other } = await hostUnderTest();
  expect(await other.tool(signal)).toMatchObject({ name: 'bootc', installsPackages: false });
});

test('without a booted deployment the host is not understood', async () => {
  const { backend, host } = await hostUnderTest();
  host.booted = { id: `${'f'.repeat(64)}.0`, kernelArguments: [] };
  await expect(backend.status(signal)).rejects.toThrow(/none of the bootloader's deployments is booted/);
});
