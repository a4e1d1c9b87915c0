/**
 * Live apply on a directory node with ostree's own repository: the root afterwards, and after a kill before each
 * step.
 */
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DigestedPullspec } from '../../../api/references.ts';
import type { LayerItem } from '../../../image/layer/entry.ts';
import { deadline, patience } from '../../../test/fixtures/patience.ts';
import { everyCase, samplePoints, seed } from '../../../test/fixtures/sample.ts';
import {
  createTestNode,
  layerFile,
  noDirectoryNodes,
  type TestNode,
} from '../../../test/fixtures/test-node.ts';
import { programFile } from '../../../workshop/sandbox/programs.ts';
import { readTree } from '../../files/read-tree.ts';
import { contentDigest } from '../../files/tree-entry.ts';
import type { WriteStep } from '../../files/write-step.ts';
import { noLabels } from '../../host/selinux-labels.ts';
import { readManagedPaths } from '../../records/managed-paths.ts';
import { applyLive, verifyLive } from './live-apply.ts';
import { untouchedManagedPaths } from './managed-etc.ts';

if (noDirectoryNodes !== undefined) process.stderr.write(`skipped: ${noDirectoryNodes}\n`);

const CHRONY = '/etc/chrony.conf';
const FRAGMENT = '/usr/lib/tmpfiles.d/shale.conf';
const extraKernelArguments = { remove: [], add: [] };

describe.skipIf(noDirectoryNodes !== undefined)('live apply on a directory node', () => {
  let node: TestNode;
  let signal: AbortSignal;
  const inRoot = (name: string) => path.join(node.host.root, name);
  const read = (name: string) => readFile(inRoot(name), 'utf8');

  beforeEach(async () => {
    signal = deadline(120_000);
    node = await createTestNode();
  });
  afterEach(() => node[Symbol.asyncDispose]());

  const apply = async (image: DigestedPullspec, of = node): Promise<readonly WriteStep[]> => {
    const staged = await of.backend.stage(image, { extraKernelArguments, signal });
    const { booted } = await of.backend.status(signal);
    const steps: WriteStep[] = [];
    const beforeStep = async (step: WriteStep) => {
      steps.push(step);
    };
    await applyLive({
      host: of.host,
      relabel: noLabels,
      booted,
      staged,
      beforeStep,
      signal,
    });
    expect(await verifyLive({ host: of.host, booted, staged, signal })).toEqual([]);
    return steps;
  };
  const reboot = async (of = node) => {
    const managed = await untouchedManagedPaths(of.host.root, await readManagedPaths(of.host.root));
    await of.backend.finalizeStaged(managed, signal);
    await of.boot();
  };

  it('changes the running root, and takes only the steps there are to take', async () => {
    const image = node.addImage([layerFile(CHRONY, 'server a\n'), layerFile('/usr/share/shale/x', 'x\n')]);
    const steps = await apply(image);
    expect(await read(CHRONY)).toBe('server a\n');
    expect(steps.map((step) => `${step.kind} ${step.name}`)).toEqual([
      'directory /usr/share/shale',
      'copy /usr/share/shale/x',
      `copy ${CHRONY}`,
    ]);
    expect(await apply(image)).toEqual([]);
  });

  it('leaves the deployments and the repository as they were', async () => {
    await apply(node.addImage([layerFile('/usr/bin/kubelet', 'patched\n', 0o755)]));
    const { booted } = await node.backend.status(signal);
    expect(await read('/usr/bin/kubelet')).toBe('patched\n');
    expect((await stat(path.join(booted.root, 'usr/bin/kubelet'))).size).toBe(64 * 1024);
  });

  it('does not let a live-applied file shadow a later image', async () => {
    await apply(node.addImage([layerFile(CHRONY, 'live 1\n'), layerFile('/etc/added.conf', 'live\n')]));
    await apply(node.addImage([layerFile(CHRONY, 'live 2\n')]));
    expect(await read(CHRONY)).toBe('live 2\n');
    expect(existsSync(inRoot('/etc/added.conf'))).toBe(false);
    await node.backend.stage(node.addImage([layerFile(CHRONY, 'booted 3\n')]), {
      extraKernelArguments,
      signal,
    });
    await reboot();
    expect(await read(CHRONY)).toBe('booted 3\n');
    expect(existsSync(inRoot('/etc/added.conf'))).toBe(false);
  });

  it('gives the base image’s own version back', async () => {
    await apply(node.addImage([layerFile(CHRONY, 'live\n')]));
    await apply(node.addImage([layerFile('/etc/other.conf', 'x\n')]));
    expect(await read(CHRONY)).toContain('pool.ntp.org');
  });

  it('goes back to the booted image, live or by a reboot', async () => {
    await apply(node.addImage([layerFile(CHRONY, 'live 1\n')]));
    await node.backend.stage(node.stock, { extraKernelArguments, evenIfBooted: true, signal });
    await reboot();
    expect(await read(CHRONY)).toContain('pool.ntp.org');

    await apply(node.addImage([layerFile(CHRONY, 'live 2\n')]));
    const booted = await node.backend.stage(node.stock, { extraKernelArguments, signal });
    await applyLive({
      host: node.host,
      relabel: noLabels,
      booted,
      staged: booted,
      signal,
    });
    expect(await read(CHRONY)).toContain('pool.ntp.org');
    expect((await node.backend.status(signal)).staged).toBeUndefined();
  });

  it('leaves an admin’s edit alone, also one of a live-applied file', async () => {
    await writeFile(inRoot('/etc/hosts'), '10.0.0.1 db\n');
    await apply(node.addImage([layerFile('/etc/hosts', 'image\n'), layerFile(CHRONY, 'live\n')]));
    expect(await read('/etc/hosts')).toBe('10.0.0.1 db\n');
    await writeFile(inRoot(CHRONY), 'admin\n');
    await apply(node.addImage([layerFile(CHRONY, 'live 2\n')]));
    expect(await read(CHRONY)).toBe('admin\n');
    await reboot();
    expect(await read(CHRONY)).toBe('admin\n');
    expect(await read('/etc/hosts')).toBe('10.0.0.1 db\n');
  });

  it('takes no notice of an owner that the image’s fragment sets', async () => {
    const fragment = layerFile(FRAGMENT, 'z /etc/core.conf 0640 core core - -\n');
    const first = node.addImage([layerFile('/etc/core.conf', '1\n'), fragment]);
    await node.backend.stage(first, { extraKernelArguments, signal });
    await reboot();
    expect((await stat(inRoot('/etc/core.conf'))).uid).toBe(1000);
    await apply(node.addImage([layerFile('/etc/core.conf', '2\n'), fragment]));
    expect(await read('/etc/core.conf')).toBe('2\n');
    await reboot();
    expect((await stat(inRoot('/etc/core.conf'))).uid).toBe(1000);
    await apply(node.addImage([layerFile('/etc/core.conf', '3\n')]));
    expect([await read('/etc/core.conf'), (await stat(inRoot('/etc/core.conf'))).uid]).toEqual(['3\n', 0]);
  });

  it('stages nothing when an edit stands in the way, as a link that leads out of the root', async () => {
    const outside = path.join(node.dir, 'outside');
    await mkdir(outside);
    await symlink(outside, inRoot('/etc/motd.d'));
    await expect(apply(node.addImage([layerFile('/etc/motd.d/shale', 'x\n')]))).rejects.toThrow(
      'cannot merge',
    );
    expect(existsSync(path.join(outside, 'shale'))).toBe(false);
    expect((await node.backend.status(signal)).staged).toBeUndefined();
  });

  it('refuses what only a reboot can bring', async () => {
    const { booted } = await node.backend.status(signal);
    const refused = async (layer: LayerItem) => {
      const staged = await node.backend.stage(node.addImage([layerFile(CHRONY, 'x\n'), layer]), {
        extraKernelArguments,
        signal,
      });
      await applyLive({
        host: node.host,
        relabel: noLabels,
        booted,
        staged,
        signal,
      });
    };
    const kargs = layerFile('/usr/lib/bootc/kargs.d/50-shale.toml', 'kargs = ["nosmt"]\n');
    await expect(refused(kargs)).rejects.toThrow('kernel arguments take effect at boot only');
    await expect(refused(layerFile('/usr/lib/modules/6.12.57-shale/x.ko', 'x'))).rejects.toThrow(
      'at boot only',
    );
    expect(await read(CHRONY)).toContain('pool.ntp.org');
  });

  it('ends in the same state after a kill before any of its steps', {
    timeout: patience(120_000),
  }, async () => {
    const first = [
      layerFile(CHRONY, 'live 1\n'),
      layerFile('/etc/gone/x.conf', 'x\n'),
      layerFile(FRAGMENT, '# one\n'),
    ];
    const second = [
      layerFile(CHRONY, 'live 2\n'),
      layerFile('/etc/new/x.conf', 'x\n'),
      layerFile('/usr/share/shale/y', 'y\n'),
      layerFile(FRAGMENT, '# two\n'),
    ];
    const prepare = async (of: TestNode) => {
      await apply(of.addImage(first), of);
      await of.backend.stage(of.addImage(second), { extraKernelArguments, signal });
    };
    await prepare(node);
    const steps = await apply(node.addImage(second));
    const expected = await snapshot(node);
    expect(steps.length).toBeGreaterThanOrEqual(8);
    for (const index of samplePoints('steps that a live apply is killed before', steps.length, 2)) {
      await using victim = await createTestNode();
      await prepare(victim);
      const script = programFile(
        path.join(import.meta.dirname, '../../../test/fixtures/killed/killed-live-apply.ts'),
      );
      const killed = await execa(process.execPath, [script, victim.dir, String(index)], { reject: false });
      expect(killed.signal, `before step ${index}`).toBe('SIGKILL');
      await apply(victim.addImage(second), victim);
      expect(await snapshot(victim), `killed before step ${index}`).toEqual(expected);
    }
  });

  it('leaves the running root as a reboot leaves it', { timeout: patience(120_000) }, async () => {
    const content = fc.constantFrom(undefined, 'A\n', 'B\n');
    const edit = fc.constantFrom('none', 'remove', 'write', 'chmod', 'chown', 'chmod parent');
    const names = ['/etc/a.conf', '/etc/d/x.conf', '/etc/d/y.conf', '/etc/e/z.conf'];
    const cases = fc.tuple(
      ...names.map((name) => fc.record({ name: fc.constant(name), first: content, second: content, edit })),
    );
    await fc.assert(
      fc.asyncProperty(cases, async (files) => {
        await using other = await createTestNode();
        const layer = (which: 'first' | 'second') => [
          layerFile('/etc/always', which),
          ...files.flatMap((file) => (file[which] === undefined ? [] : [layerFile(file.name, file[which])])),
        ];
        await other.backend.stage(other.addImage(layer('first')), { extraKernelArguments, signal });
        await reboot(other);
        for (const file of files) await editFile(path.join(other.host.root, file.name), file.edit);
        await apply(other.addImage(layer('second')), other);
        // A live apply leaves the node what it has made of these, and ostree's merge does not, unless something in them
        // is kept.
        const closed = files
          .filter(({ edit }) => edit === 'chmod parent')
          .map(({ name }) => path.dirname(name));
        const live = await snapshot(other, closed);
        await reboot(other);
        expect(await snapshot(other, closed)).toEqual(live);
      }),
      everyCase ? { numRuns: 8 } : { seed, numRuns: 3 },
    );
  });

  /** @param closed directories of which mode and owner don't count. */
  async function snapshot(
    of: TestNode,
    closed: readonly string[] = [],
  ): Promise<Readonly<Record<string, string>>> {
    const trees = await Promise.all(
      ['/etc', '/usr'].map((name) => readTree(path.join(of.host.root, name), name, signal)),
    );
    const opt = await readTree(path.join(of.host.root, 'opt'), '/opt', signal);
    const entries = [...trees.flatMap((tree) => [...tree]), ...opt];
    // The base of the /etc merge stays the booted image's until the reboot.
    const compared = entries.filter(([name]) => name !== '/etc/machine-id' && !name.startsWith('/usr/etc'));
    const comparable = ([name, entry]: (typeof compared)[number]) =>
      closed.includes(name) ? entry.kind : contentDigest(entry);
    return Object.fromEntries(compared.map((each) => [each[0], comparable(each)]));
  }
});

async function editFile(file: string, edit: string): Promise<void> {
  switch (edit) {
    case 'remove':
      return rm(file, { force: true });
    case 'write':
      await mkdir(path.dirname(file), { recursive: true });
      return writeFile(file, 'local\n');
    case 'chmod':
      return existsSync(file) ? chmod(file, 0o600) : undefined;
    case 'chown':
      return existsSync(file) ? chown(file, 1000, 1000) : undefined;
    case 'chmod parent': {
      const parent = path.dirname(file);
      return existsSync(parent) && path.basename(parent) !== 'etc' ? chmod(parent, 0o700) : undefined;
    }
  }
}
