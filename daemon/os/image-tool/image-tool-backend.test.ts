import { access, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodePaths } from '../../../api/names.ts';
import { present } from '../../../api/present.ts';
import type { DigestedPullspec } from '../../../api/references.ts';
import { noPackages, type PackageSet } from '../../../machineconfig/os-packages.ts';
import { commitOf, type HostDeployment, OstreeHost } from '../../../test/fixtures/ostree-host.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import { contentDigestAt } from '../../tree/read-tree.ts';
import { NoDeploymentError, PackagesRefused, SoftRebootRefused, type StageOptions } from '../backend.ts';
import type { SourceLayer } from '../ostree/image-source.ts';
import { layerRefOf, UnexpectedDeploymentError } from './bring-image.ts';
import type { ImageTool } from './image-tool.ts';
import { ImageToolBackend } from './image-tool-backend.ts';

const signal = deadline(60_000);
const none = { remove: [], add: [] };
const packages = (...installed: string[]): PackageSet => ({ installed, removed: [] });

const [first, second, third] = ['1', '2', '3'].map(imageOf) as [
  DigestedPullspec,
  DigestedPullspec,
  DigestedPullspec,
];

const LOCK = 'run/ostree/staged-deployment-locked';

interface Given {
  /** What the tool stages, unless it is what it was asked for. */
  readonly pulls?: DigestedPullspec;
  readonly installsPackages?: boolean;
  readonly canSoftReboot?: boolean;
  /** As the prepare-root.conf of each image has it. */
  readonly composefs?: string;
  readonly isPinned?: (id: string) => boolean;
  /** Fails after it has prepared what it was asked for. */
  readonly failsAfterDeploying?: boolean;
  /** The daemon ends meanwhile. */
  readonly endsWhileDeploying?: AbortController;
  /** Of the one layer that images have; absent: they have none. */
  readonly layerBytes?: number;
  /** The version of ostree. */
  readonly version?: string;
  /** What the tool can't pull. */
  readonly failsToPull?: DigestedPullspec;
  /** After this image was staged, the tool fails. */
  readonly failsAfterPulling?: DigestedPullspec;
  /** Whether ostree says that it has deployed something, and has not. */
  readonly deploysNothing?: boolean;
  /** What the tool installs, unless it is what it was asked for. */
  readonly installs?: PackageSet;
  /** What ostree fails to deploy. */
  readonly refuses?: DigestedPullspec;
}

/** A host whose tool brings images, which runs one of them. */
async function hostUnderTest(given: Given = {}) {
  const host = await OstreeHost.create(third);
  host.version = given.version ?? host.version;
  host.composefs = given.composefs;
  const made = new Map<string, { readonly image: DigestedPullspec; readonly packages: PackageSet }>([
    [commitOf(third), { image: third, packages: noPackages }],
  ]);
  const calls: string[] = [];
  const stageNew = async (image: DigestedPullspec, set: PackageSet, locked: boolean) => {
    const commit = commitOf(`${image} ${set.installed.join(' ')}`);
    made.set(commit, { image, packages: set });
    const deployment = { id: host.nextId(commit), kernelArguments: ["the tool's own"] };
    await host.put(deployment);
    await host.stage({ ...deployment, locked });
  };
  const tool: ImageTool = {
    name: given.installsPackages === true ? 'rpm-ostree' : 'bootc',
    keepsLock: given.installsPackages === true,
    deployments: async () =>
      new Map(
        [...(host.staged === undefined ? [] : [host.staged]), ...host.written].map(({ id }) => [
          id,
          {
            isBooted: id === host.booted.id,
            isPinned: given.isPinned?.(id) === true,
            canSoftReboot: given.canSoftReboot === true && id !== host.booted.id,
            packages: noPackages,
            ...present({ ...made.get(id.slice(0, 64)) }),
          },
        ]),
      ),
    pull: async (image, { mustBeSigned }) => {
      calls.push(mustBeSigned ? 'pull signed' : 'pull');
      if (given.failsToPull === image) throw new Error('the registry is gone');
      await stageNew(given.pulls ?? image, noPackages, false);
      if (given.failsAfterPulling === image) throw new Error('no room');
    },
    dropNext: async (count) => {
      calls.push(`drop ${count}`);
      await host.stage(undefined);
      await host.boot(host.written.slice(host.written.findIndex(({ id }) => id === host.booted.id)));
    },
    rollback: async () => {
      calls.push('rollback');
      await host.boot(host.written.toReversed());
    },
    rollbackCommand: ['bootc', 'rollback'],
    cleanup: async () => void calls.push('cleanup'),
    ...(given.installsPackages === true && {
      deployPackages: async (image, { packages: set, former }) => {
        calls.push(`deploy with ${set.installed.join(',')}, former ${former.installed.join(',')}`);
        await stageNew(image, given.installs ?? set, true);
        given.endsWhileDeploying?.abort();
        if (given.failsAfterDeploying === true) throw new Error('no such package');
      },
    }),
  };
  const opened: DigestedPullspec[] = [];
  const isReachable = { now: true };
  const backend = new ImageToolBackend({
    tool,
    sysroot: host.sysroot,
    root: host.root,
    run: async (command, options) => {
      const refused = given.refuses === undefined ? undefined : commitOf(`${given.refuses} `);
      if (refused !== undefined && command.at(-1) === refused) throw new Error('no room');
      if (given.deploysNothing === true && command.includes('deploy')) return '';
      return host.run(command, options);
    },
    commandPath: (place) => place,
    pullSecretFile: '/var/lib/kubelet/config.json',
    architecture: 'x86_64',
    source: {
      open: async (image) => {
        opened.push(image);
        if (!isReachable.now) throw new Error('the registry is gone');
        const digest = `sha256:${'7'.repeat(64)}`;
        const { layerBytes } = given;
        const layers =
          layerBytes === undefined ? [] : [{ digest, diffId: digest, size: layerBytes } as SourceLayer];
        return { labels: { of: image }, layers };
      },
    },
  });
  const stage = (image: DigestedPullspec, more: Partial<StageOptions> = {}) =>
    backend.stage(image, { extraKernelArguments: none, signal, ...more });
  /** The host shuts down, which writes what is staged, and starts what is first. */
  const reboot = async () => {
    const before = host.written.filter(({ id }) => id === host.booted.id);
    const lock = path.join(host.root, LOCK);
    const isLocked = await access(lock).then(
      () => true,
      () => false,
    );
    if (host.staged !== undefined && isLocked) await host.stage(undefined);
    if (host.staged !== undefined) {
      const { id, kernelArguments } = host.staged;
      await host.stage(undefined);
      await host.boot([{ id, kernelArguments }, ...before]);
    }
    host.booted = host.written[0] ?? host.booted;
  };
  const state = path.join(host.root, nodePaths.state);
  return { host, backend, calls, opened, isReachable, stage, reboot, state };
}

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
  ['fetch', 'it is not the deployment that is held back'],
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
  host.refs.set(layerRefOf(`sha256:${'7'.repeat(64)}`), commitOf('layer'));
  const told: string[] = [];
  await stage(first, { onProgress: (done, total) => void told.push(`${done}/${total}`) });
  expect(told).toEqual(['0/0', '0/0']);
});

describe('packages', () => {
  test('are refused where the tool installs none', async () => {
    const { stage, calls } = await hostUnderTest();
    const extraPackages = { remove: noPackages, add: packages('vim') };
    await expect(stage(first, { extraPackages })).rejects.toThrow(PackagesRefused);
    await stage(first, { extraPackages: { remove: noPackages, add: noPackages } });
    expect(calls).toEqual(['pull']);
  });

  test('come with the image, and what was prepared is held back until Shale stages it', async () => {
    const { stage, calls, host } = await hostUnderTest({ installsPackages: true });
    await stage(second);
    const extraPackages = { remove: packages('nano'), add: packages('vim') };
    const staged = await stage(first, { extraPackages });
    expect(calls).toEqual(['pull', 'drop 1', 'deploy with vim, former nano']);
    expect(host.staged).toEqual({ id: staged.id, kernelArguments: ['rw'] });
    expect((await stage(first, { extraPackages })).id).toBe(staged.id);
    expect(calls).toHaveLength(3);
  });

  test('on an image that is on the disk need nothing of its registry but its labels', async () => {
    const { stage, opened } = await hostUnderTest({ installsPackages: true, layerBytes: 2 ** 60 });
    const extraPackages = { remove: noPackages, add: packages('vim') };
    const staged = await stage(third, { extraPackages });
    expect([staged.image, staged.labels, opened]).toEqual([third, { of: third }, [third]]);
  });

  test('that are not those that were asked for are reported with the image', async () => {
    const { stage } = await hostUnderTest({
      installsPackages: true,
      installs: { installed: ['nano', 'vim'], removed: ['kernel'] },
    });
    const extraPackages = { remove: noPackages, add: packages('vim') };
    await expect(stage(first, { extraPackages })).rejects.toThrow(
      `rpm-ostree has staged ${first} with nano, vim without kernel; expected ${first} with vim`,
    );
  });

  test('come from the repository of an image, where one is named', async () => {
    const { stage, calls, opened } = await hostUnderTest({ installsPackages: true });
    const extraPackages = { remove: noPackages, add: packages('vim'), repository: second };
    await expect(stage(first, { extraPackages })).rejects.toThrow(`${second}: has nothing in`);
    expect(opened).toEqual([first, second]);
    expect(calls).toEqual([]);
  });

  test('that can not be installed leave nothing prepared', async () => {
    const { stage, host, calls } = await hostUnderTest({ installsPackages: true, failsAfterDeploying: true });
    const extraPackages = { remove: noPackages, add: packages('vim') };
    await expect(stage(first, { extraPackages })).rejects.toThrow('no such package');
    expect(host.staged).toBeUndefined();
    expect(calls.at(-1)).toBe('drop 1');
  });
});

test('packages whose installation is interrupted are left to the next try, which drops them', async () => {
  const endsWhileDeploying = new AbortController();
  const given = { installsPackages: true, failsAfterDeploying: true, endsWhileDeploying };
  const { stage, calls } = await hostUnderTest(given);
  const extraPackages = { remove: noPackages, add: packages('vim') };
  await expect(stage(first, { extraPackages, signal: endsWhileDeploying.signal })).rejects.toThrow();
  expect(calls).toEqual(['deploy with vim, former ']);
  await expect(stage(second, { extraPackages })).rejects.toThrow('no such package');
  expect(calls.slice(1)).toEqual(['drop 1', 'deploy with vim, former ', 'drop 1']);
});

describe('what was prepared and is held back', () => {
  test('is neither the next boot nor finalized, but dropped with the rest', async () => {
    const { backend, host, calls } = await hostUnderTest({ canSoftReboot: true });
    const held: HostDeployment = { id: `${commitOf('held')}.0`, kernelArguments: [] };
    await host.put(held);
    await host.stage({ ...held, locked: true });
    expect((await backend.status(signal)).staged).toBeUndefined();
    await expect(backend.finalizeStaged(new Map(), signal)).rejects.toThrow(NoDeploymentError);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(SoftRebootRefused);
    await backend.unstage(signal);
    expect(calls).toEqual(['drop 1']);
    await backend.unstage(signal);
    expect(calls).toEqual(['drop 1']);
  });

  test('is never the next boot in place of what was staged before', async () => {
    const { backend, stage, reboot, host } = await hostUnderTest();
    await stage(first);
    await backend.fetch(second, { extraKernelArguments: none, signal });
    expect((await backend.status(signal)).staged).toBeUndefined();
    await reboot();
    expect(host.booted.id.slice(0, 64)).toBe(commitOf(third));
  });

  // What is staged is another image that was applied live, or one that was fetched before.
  describe.each(['2022.7', '2026.4'])('with ostree %s', (version) => {
    test.each(['applied live', 'fetched'])(
      'is at no moment the next boot in place of one that was %s',
      async (before) => {
        const { backend, stage, host } = await hostUnderTest({ version });
        if (before === 'fetched') await backend.fetch(first, { extraKernelArguments: none, signal });
        else await stage(first);
        await backend.fetch(second, { extraKernelArguments: { remove: [], add: ['quiet'] }, signal });
        expect(host.staged?.id.slice(0, 64)).toBe(commitOf(`${second} `));
        expect(host.nextBoots).not.toContain(commitOf(`${second} `));
        expect((await backend.status(signal)).staged).toBeUndefined();
      },
    );

    test.each<[string, Given]>([
      ['is not to be found', {}],
      ['can not be pulled', { failsToPull: second }],
    ])('is nothing where it %s: what was staged before is the next boot again', async (_why, given) => {
      const { backend, stage, isReachable, host } = await hostUnderTest({ version, ...given });
      await stage(first, { extraKernelArguments: { remove: [], add: ['quiet'] } });
      isReachable.now = given.failsToPull !== undefined;
      await expect(backend.fetch(second, { extraKernelArguments: none, signal })).rejects.toThrow('is gone');
      const { staged } = await backend.status(signal);
      expect(staged).toMatchObject({ image: first, kernelArguments: ['rw', 'quiet'] });
      expect(host.nextBoot()).toBe(commitOf(`${first} `));
    });
  });

  test.each<[string, Given]>([
    ['ostree', { refuses: second }],
    ['the tool', { failsAfterPulling: second }],
  ])('is held back as soon as the tool has staged it, also where %s fails then', async (_what, given) => {
    const { backend, stage, host, reboot } = await hostUnderTest({ version: '2026.4', ...given });
    await stage(first);
    const fetching = backend.fetch(second, { extraKernelArguments: none, signal });
    await expect(fetching).rejects.toThrow('no room');
    expect((await backend.status(signal)).staged).toBeUndefined();
    await reboot();
    expect(host.booted.id.slice(0, 64)).toBe(commitOf(third));
  });

  test('is what is staged already, which stays the next boot', async () => {
    const { backend, stage, calls } = await hostUnderTest();
    await stage(first);
    await backend.fetch(first, { extraKernelArguments: none, signal });
    expect((await backend.status(signal)).staged?.image).toBe(first);
    expect(calls).toEqual(['pull']);
  });
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

describe('a soft reboot', () => {
  test('is prepared for what the tool says it can boot', async () => {
    const { backend, stage, host } = await hostUnderTest({ canSoftReboot: true, composefs: 'yes' });
    expect((await stage(first)).canSoftReboot).toBe(true);
    expect((await backend.status(signal)).booted).not.toHaveProperty('canSoftReboot');
    await backend.finalizeStaged(new Map(), signal);
    await backend.prepareSoftReboot(signal);
    expect(host.commands.slice(-2)).toEqual([
      'admin prepare-soft-reboot --reset',
      'admin prepare-soft-reboot 0',
    ]);
  });

  test.each([undefined, 'no', 'maybe', 'signed'])(
    'is not promised for a root that ostree refuses: composefs %s',
    async (composefs) => {
      const { backend, stage, host } = await hostUnderTest({
        canSoftReboot: true,
        ...present({ composefs }),
      });
      const staged = await stage(first);
      expect(staged).not.toHaveProperty('canSoftReboot');
      await backend.finalizeStaged(new Map(), signal);
      await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(SoftRebootRefused);
      expect(host.commands.join('\n')).not.toContain('prepare-soft-reboot');
    },
  );

  test('is refused for anything else', async () => {
    const { backend, stage } = await hostUnderTest();
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(/that the booted deployment supports/);
    const { id } = await stage(first);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(`that ${id} supports`);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(SoftRebootRefused);
  });
});

describe('a rollback', () => {
  test('drops what is staged, and has the tool boot the previous deployment', async () => {
    const { backend, stage, calls, reboot, host } = await hostUnderTest();
    await stage(first);
    await reboot();
    await stage(second);
    calls.length = 0;
    await backend.rollback(signal);
    expect(calls).toEqual(['drop 1', 'rollback']);
    expect((await backend.status(signal)).staged?.image).toBe(third);
    // Asked again the tool would swap them back.
    await backend.rollback(signal);
    expect(calls).toEqual(['drop 1', 'rollback']);
    expect(host.written).toHaveLength(2);
  });

  test('is refused without a previous deployment', async () => {
    const { backend, stage } = await hostUnderTest();
    await expect(backend.rollback(signal)).rejects.toThrow(NoDeploymentError);
    await stage(first);
    await expect(backend.rollback(signal)).rejects.toThrow('there is no previous deployment to roll back to');
  });

  test('by the host itself is the command of the tool', async () => {
    const { backend } = await hostUnderTest();
    expect(await backend.rollbackScript([], signal)).toBe('bootc rollback');
    await expect(backend.rollbackScript([], AbortSignal.abort())).rejects.toThrow(/abort/);
  });
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
