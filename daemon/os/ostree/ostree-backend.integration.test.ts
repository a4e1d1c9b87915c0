/** The backend by the host's own ostree: layers merged, labels, kills before each command. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DigestedPullspec } from '../../../api/references.ts';
import { type ContractNode, hasOstreeLock } from '../../../test/fixtures/backend-contract/bench.ts';
import { backendContract } from '../../../test/fixtures/backend-contract/contract.ts';
import { deadline, patience } from '../../../test/fixtures/patience.ts';
import { samplePoints } from '../../../test/fixtures/sample.ts';
import {
  createTestNode,
  layerFile,
  noDirectoryNodes,
  type TestNode,
} from '../../../test/fixtures/test-node.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../../workshop/sandbox/node/directory-host.ts';
import { stockImage } from '../../../workshop/sandbox/node/stock-image.ts';
import { programFile } from '../../../workshop/sandbox/programs.ts';
import { PrepareRefused } from '../../records/current.ts';
import { osCommandRunner } from '../os-command.ts';
import { imageRef } from './image-record.ts';
import { OstreeBackend } from './ostree-backend.ts';

if (noDirectoryNodes !== undefined) process.stderr.write(`skipped: ${noDirectoryNodes}\n`);

backendContract('the ostree backend', {
  create: createContractNode,
  skip: noDirectoryNodes !== undefined,
});

const noExtra = { remove: [], add: [] };
const CHRONY = '/etc/chrony.conf';

describe.skipIf(noDirectoryNodes !== undefined)('the ostree backend on a directory node', () => {
  let node: TestNode;
  const signal = deadline(600_000);
  const stage = (image: DigestedPullspec) =>
    node.backend.stage(image, { extraKernelArguments: noExtra, signal });

  beforeEach(async () => {
    node = await createTestNode();
  });
  afterEach(() => node[Symbol.asyncDispose]());

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

  it('labels an image by its own SELinux policy, and one without a policy not at all', async () => {
    const policy = '/etc/selinux/lab';
    const contexts = [
      '/.*\tsystem_u:object_r:default_t:s0',
      '/usr(/.*)?\tsystem_u:object_r:usr_t:s0',
      '/usr/bin(/.*)?\tsystem_u:object_r:bin_t:s0',
    ];
    const program = layerFile('/usr/bin/program', 'x', 0o755);
    const labelled = node.addImage([
      program,
      layerFile('/etc/selinux/config', 'SELINUX=enforcing\nSELINUXTYPE=lab\n'),
      layerFile(`${policy}/policy/policy.33`, ''),
      layerFile(`${policy}/contexts/files/file_contexts`, `${contexts.join('\n')}\n`),
    ]);
    const plain = node.addImage([program, layerFile('/etc/selinux/config', 'SELINUXTYPE=lab\n')]);
    const labels = async (image: DigestedPullspec) => {
      await node.backend.fetch(image, { extraKernelArguments: noExtra, signal });
      const { sysroot } = directoryNodeLayout(node.dir);
      const repo = path.join(sysroot, 'ostree/repo');
      const places = ['/usr/bin/program', '/usr/share'];
      const listed = execFileSync('ostree', ['ls', '-d', '-X', `--repo=${repo}`, imageRef(image), ...places]);
      return [...listed.toString().matchAll(/\w+_t\b/g)].map(([label]) => label);
    };
    expect(await labels(labelled)).toEqual(['bin_t', 'usr_t']);
    expect(await labels(plain)).toEqual([]);
  });

  it('refuses a root that has to be a composefs where the host’s ostree makes none', async () => {
    const image = node.addImage([
      layerFile('/usr/lib/ostree/prepare-root.conf', '[composefs]\nenabled = yes\n'),
    ]);
    const makes = execFileSync('ostree', ['--version']).includes('- composefs');
    if (makes) {
      const { root } = await stage(image);
      expect(existsSync(path.join(root, '.ostree.cfs'))).toBe(true);
      return;
    }
    await expect(stage(image)).rejects.toThrow(PrepareRefused);
    expect((await node.backend.status(signal)).staged).toBeUndefined();
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
    timeout: patience(120_000),
  }, async () => {
    const script = programFile(
      path.join(import.meta.dirname, '../../../test/fixtures/killed/killed-stage.ts'),
    );
    const run = async (commands: number) => {
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
      return ended;
    };
    const { exitCode, stdout } = await run(Number.POSITIVE_INFINITY);
    expect(exitCode).toBe(0);
    expect(Number(stdout)).toBeGreaterThanOrEqual(7);
    for (const point of samplePoints('commands that a stage is killed before', Number(stdout), 3)) {
      expect((await run(point)).signal).toBe('SIGKILL');
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
    const objects = execFileSync('ostree', ['prune', `--repo=${repo}`, '--refs-only', '--no-prune']);
    expect(objects.toString()).toContain('No unreachable objects');
  });
});

async function createContractNode(): Promise<ContractNode> {
  const node = await createTestNode();
  const layout = directoryNodeLayout(node.dir);
  const { root, sysroot } = layout;
  return {
    root,
    stock: node.stock,
    keeps: 'ostree',
    isHoldingBack: () => hasOstreeLock(root),
    backend: node.backend,
    backendWith: (around) =>
      new OstreeBackend({
        root,
        sysroot,
        source: node.source,
        bootedDirectory: async () => path.join(sysroot, (await readDirectoryMachine(layout)).deployment),
        run: around(osCommandRunner()),
      }),
    addImage: async (layer, labels) => node.addImage(layer, labels),
    shutDownAndBoot: () => node.boot(),
    losePowerAndBoot: () => node.boot(),
    [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
  };
}
