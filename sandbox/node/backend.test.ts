import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { contentDigestAt } from '../../daemon/records/managed-paths.ts';
import { stockImage } from './stock-image.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from './testing.ts';

if (noDirectoryNodes !== undefined) process.stderr.write(`skipped: ${noDirectoryNodes}\n`);

const noExtra = { remove: [], add: [] };
const CHRONY = '/etc/chrony.conf';

describe.skipIf(noDirectoryNodes !== undefined)('the ostree backend on a directory node', () => {
  let node: TestNode;
  const signal = AbortSignal.timeout(60_000);
  const stage = (image: Parameters<typeof node.backend.stage>[0], extraKernelArguments = noExtra as Extra) =>
    node.backend.stage(image, { extraKernelArguments, signal });
  const inRoot = (name: string) => path.join(node.host.root, name);

  beforeEach(async () => {
    node = await createTestNode();
  });
  afterEach(() => node[Symbol.asyncDispose]());

  it('runs the stock image, with the host’s and the image’s kernel arguments', async () => {
    const { booted, staged, rollback } = await node.backend.status(signal);
    expect(booted.image).toBe(node.stock);
    expect(booted.kernelArguments).toEqual([
      'root=LABEL=root',
      'rw',
      'console=ttyS0',
      'quiet',
      'systemd.unified_cgroup_hierarchy=1',
    ]);
    expect([staged, rollback]).toEqual([undefined, undefined]);
  });

  it('boots a staged image with /etc merged, and keeps the former one to go back to', async () => {
    const image = node.addImage([layerFile(CHRONY, 'server a\n'), layerFile('/etc/new.conf', 'new\n')], {
      a: 'b',
    });
    await writeFile(inRoot('/etc/hosts'), '10.0.0.1 db\n');
    const progress: number[] = [];
    const staged = await node.backend.stage(image, {
      extraKernelArguments: noExtra,
      signal,
      onProgress: (done, total) => progress.push(done / total),
    });
    expect(staged).toMatchObject({ image, labels: { a: 'b' } });
    expect(progress.at(-1)).toBe(1);
    await writeFile(inRoot('/etc/late.conf'), 'edited after staging\n');
    await node.backend.finalizeStaged(new Map(), signal);
    await node.boot();

    const { booted, rollback } = await node.backend.status(signal);
    expect([booted.image, rollback?.image]).toEqual([image, node.stock]);
    expect(await readFile(inRoot(CHRONY), 'utf8')).toBe('server a\n');
    expect(await readFile(inRoot('/etc/hosts'), 'utf8')).toBe('10.0.0.1 db\n');
    expect(await readFile(inRoot('/etc/late.conf'), 'utf8')).toBe('edited after staging\n');
    expect(await readFile(inRoot('/etc/hostname'), 'utf8')).toBe('test\n');

    await node.backend.rollback(signal);
    await node.boot();
    expect((await node.backend.status(signal)).booted.image).toBe(node.stock);
    expect(await readFile(inRoot(CHRONY), 'utf8')).toContain('pool.ntp.org');
  });

  it('does nothing when the image is staged or booted already', async () => {
    const image = node.addImage([layerFile(CHRONY, 'server a\n')]);
    const first = await stage(image);
    expect(await stage(image)).toEqual(first);
    const back = await stage(node.stock);
    const status = await node.backend.status(signal);
    expect(back).toEqual(status.booted);
    expect(status.staged).toBeUndefined();
  });

  it('replaces a staged image, merging /etc from the running one and not from the staged', async () => {
    await stage(node.addImage([layerFile('/etc/one.conf', '1\n')]));
    const second = await stage(node.addImage([layerFile('/etc/two.conf', '2\n')]));
    expect(existsSync(path.join(second.root, 'etc/one.conf'))).toBe(false);
    expect(await readFile(path.join(second.root, 'etc/two.conf'), 'utf8')).toBe('2\n');
  });

  it('takes the booted image’s kernel arguments away and keeps the host’s', async () => {
    const kargs = (value: string) =>
      layerFile('/usr/lib/bootc/kargs.d/50-shale.toml', `kargs = ["${value}"]\n`);
    const extra = { remove: [], add: ['extra=1'] };
    const first = await stage(node.addImage([kargs('nosmt')]), extra);
    expect(first.kernelArguments.slice(-2)).toEqual(['nosmt', 'extra=1']);
    await node.backend.finalizeStaged(new Map(), signal);
    await node.boot();
    const second = await stage(node.addImage([kargs('hugepages=4')]), { remove: ['extra=1'], add: [] });
    expect(second.kernelArguments).toEqual([
      'root=LABEL=root',
      'rw',
      'console=ttyS0',
      'quiet',
      'systemd.unified_cgroup_hierarchy=1',
      'hugepages=4',
    ]);
  });

  it('does not let a file that Shale wrote shadow a later image, but lets an admin’s', async () => {
    await writeFile(inRoot(CHRONY), 'standard mode\n');
    await writeFile(inRoot('/etc/motd'), 'standard mode\n');
    await rm(inRoot('/etc/nsswitch.conf'));
    const managed = new Map<string, string>();
    for (const name of [CHRONY, '/etc/motd', '/etc/nsswitch.conf']) {
      managed.set(name, await contentDigestAt(node.host.root, name));
    }
    await writeFile(inRoot('/etc/motd'), 'admin was here\n');
    await stage(node.addImage([layerFile(CHRONY, 'image\n'), layerFile('/etc/motd', 'image\n')]));
    await node.backend.finalizeStaged(managed, signal);
    await node.boot();
    expect(await readFile(inRoot(CHRONY), 'utf8')).toBe('image\n');
    expect(await readFile(inRoot('/etc/motd'), 'utf8')).toBe('admin was here\n');
    expect(await readFile(inRoot('/etc/nsswitch.conf'), 'utf8')).toContain('passwd: files');
  });

  it('removes a file that Shale wrote and the image does not have, with its directory', async () => {
    await mkdir(inRoot('/etc/own'));
    await chmod(inRoot('/etc/own'), 0o755);
    await writeFile(inRoot('/etc/own/x.conf'), 'standard mode\n');
    const managed = new Map<string, string>();
    for (const name of ['/etc/own', '/etc/own/x.conf'])
      managed.set(name, await contentDigestAt(node.host.root, name));
    await stage(node.addImage([layerFile(CHRONY, 'image\n')]));
    await node.backend.finalizeStaged(managed, signal);
    await node.boot();
    expect(existsSync(inRoot('/etc/own'))).toBe(false);
  });

  it('can be finalized again after a stop in between', async () => {
    const image = node.addImage([layerFile(CHRONY, 'server a\n')]);
    await stage(image);
    const once = await node.backend.finalizeStaged(new Map(), signal);
    expect(await node.backend.finalizeStaged(new Map(), signal)).toEqual(once);
    await node.backend.unstage(signal);
    await expect(node.backend.finalizeStaged(new Map(), signal)).rejects.toThrow('nothing is staged');
  });

  it('merges layers by OCI’s whiteout rules', async () => {
    const image = node.addWholeImage({
      labels: {},
      layers: [
        stockImage(),
        [
          layerFile('/usr/share/a/one', '1'),
          layerFile('/usr/share/a/two', '2'),
          layerFile('/usr/share/b/old', 'old'),
          layerFile('/usr/share/c', 'file'),
          layerFile('/etc/gone.conf', 'gone'),
        ],
        [
          { type: 'whiteout', path: 'usr/share/a/one' },
          { type: 'whiteout', path: '/etc/gone.conf' },
          { type: 'opaque', path: 'usr/share/b' },
          layerFile('/usr/share/b/new', 'new'),
          layerFile('/usr/share/c/now-a-directory', 'x'),
          layerFile('/bin/through-a-link', 'x', 0o755),
          { type: 'hardlink', path: '/usr/share/a/three', target: '/usr/share/a/two' },
        ],
      ],
    });
    const { root } = await stage(image);
    const files = execFileSync('find', ['usr/share/a', 'usr/share/b', 'usr/bin/through-a-link', 'bin'], {
      cwd: root,
    });
    expect(files.toString().trim().split('\n').sort()).toEqual([
      'bin',
      'usr/bin/through-a-link',
      'usr/share/a',
      'usr/share/a/three',
      'usr/share/a/two',
      'usr/share/b',
      'usr/share/b/new',
    ]);
    expect(existsSync(path.join(root, 'etc/gone.conf'))).toBe(false);
    expect(existsSync(path.join(root, 'usr/share/c/now-a-directory'))).toBe(true);
  });

  it('fetches only the layers it does not have', async () => {
    const fetched: number[] = [];
    await node.backend.stage(node.addImage([layerFile(CHRONY, 'twelve bytes')]), {
      extraKernelArguments: noExtra,
      signal,
      onProgress: (_done, total) => fetched.push(total),
    });
    expect(fetched).toEqual([12]);
  });

  it('refuses a layer that leads out of the tree, and stages nothing', async () => {
    const outside = node.addImage([layerFile('/usr/../../outside', 'x')]);
    await expect(stage(outside)).rejects.toThrow('".."');
    const through = node.addImage([
      { type: 'symlink', path: '/usr/share/out', target: '/tmp', uid: 0, gid: 0 },
      layerFile('/usr/share/out/x', 'x'),
    ]);
    await expect(stage(through)).rejects.toThrow('leads through /usr/share/out');
    expect((await node.backend.status(signal)).staged).toBeUndefined();
  });

  it('stages whole or not at all when killed before any command, and then stages again', {
    timeout: 120_000,
  }, async () => {
    const script = path.join(import.meta.dirname, 'killed-stage.ts');
    for (let commands = 0; ; commands += 1) {
      await using victim = await createTestNode();
      const image = victim.addImage([layerFile(CHRONY, 'killed\n')]);
      const ended = await execa(process.execPath, [script, victim.dir, image, String(commands)], {
        reject: false,
      });
      const { booted, staged } = await victim.backend.status(signal);
      expect(booted.image).toBe(victim.stock);
      if (staged !== undefined)
        expect(await readFile(path.join(staged.root, 'etc/chrony.conf'), 'utf8')).toBe('killed\n');
      await victim.backend.stage(image, { extraKernelArguments: noExtra, signal });
      await victim.backend.finalizeStaged(new Map(), signal);
      await victim.boot();
      expect((await victim.backend.status(signal)).booted.image).toBe(image);
      if (ended.exitCode === 0) {
        expect(commands).toBeGreaterThanOrEqual(8);
        return;
      }
      expect(ended.signal).toBe('SIGKILL');
    }
  });

  it('can stage an image whose download broke off', async () => {
    const image = node.addImage([layerFile(CHRONY, 'whole\n')]);
    const stop = new AbortController();
    const broken = node.backend.stage(image, {
      extraKernelArguments: noExtra,
      signal: stop.signal,
      onProgress: () => stop.abort(new Error('registry stalled')),
    });
    await expect(broken).rejects.toThrow('registry stalled');
    expect((await node.backend.status(signal)).staged).toBeUndefined();
    expect((await stage(image)).image).toBe(image);
  });

  it('cleans up images and layers that no deployment needs', async () => {
    const kept = node.addImage([layerFile(CHRONY, 'kept\n')]);
    await stage(node.addImage([layerFile(CHRONY, 'dropped\n')]));
    await stage(kept);
    await node.backend.cleanup(signal);
    const repo = path.join(node.host.root, 'sysroot/ostree/repo');
    const refs = execFileSync('ostree', ['refs', `--repo=${repo}`, '--list', 'shale'])
      .toString()
      .trim()
      .split('\n');
    expect(refs.filter((ref) => ref.startsWith('shale/image/'))).toHaveLength(2);
    expect(refs.filter((ref) => ref.startsWith('shale/layer/'))).toHaveLength(2);
    expect((await node.backend.status(signal)).staged?.image).toBe(kept);
  });
});

interface Extra {
  readonly remove: readonly string[];
  readonly add: readonly string[];
}
