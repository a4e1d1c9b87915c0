import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { nodePaths } from '../../../api/names.ts';
import { parseDigestedPullspec } from '../../../api/references.ts';
import { standard } from '../../../test/fixtures/step-context.ts';
import { writeRecord } from '../../records/durable-json.ts';
import { carryCertificates, handedOverTo, pathsOfConfigs } from './owned-paths.ts';

const CA = '/etc/kubernetes/kubelet-ca.crt';
let root: string;
let staged: string;

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-owned-'));
  onTestFinished(() => rm(root, { recursive: true }));
  staged = path.join(root, 'staged');
  await mkdir(path.join(root, 'etc/kubernetes'), { recursive: true });
  await mkdir(path.join(staged, 'etc/kubernetes'), { recursive: true });
  await writeFile(path.join(root, CA), 'PEM');
});

async function deliver(...names: readonly string[]): Promise<void> {
  const files = Object.fromEntries(names.map((name) => [name, 'digest']));
  const given = { kubeletCA: { version: 'v', files, untold: [] } };
  await writeRecord(path.join(root, nodePaths.state, 'certificates.json'), { version: 1, given });
}

async function carry(tree: string, name: string): Promise<void> {
  const { rendered } = standard('rendered', [{ path: name, content: 'x' }]);
  const place = path.join(tree, nodePaths.imageConfig);
  await mkdir(path.dirname(place), { recursive: true });
  await writeFile(place, JSON.stringify(rendered));
}

describe('a delivered file', () => {
  test('is copied into the next boot that lacks it', async () => {
    await deliver(CA);
    expect(await carryCertificates(root, staged)).toEqual([CA]);
    expect(await readFile(path.join(staged, CA), 'utf8')).toBe('PEM');
  });

  test('leaves alone what the next boot has there', async () => {
    await deliver(CA);
    await writeFile(path.join(staged, CA), 'of the image');
    expect(await carryCertificates(root, staged)).toEqual([]);
    expect(await readFile(path.join(staged, CA), 'utf8')).toBe('of the image');
  });

  test.each<[string, () => Promise<unknown>]>([
    [
      'whose directory the next boot lacks',
      () => rm(path.join(staged, 'etc/kubernetes'), { recursive: true }),
    ],
    ['that somebody has removed', () => rm(path.join(root, CA))],
    [
      'in whose place somebody has put a link',
      async () => {
        await rm(path.join(root, CA));
        await symlink('elsewhere', path.join(root, CA));
      },
    ],
  ])('%s is not copied', async (_what, change) => {
    await deliver(CA);
    await change();
    await carryCertificates(root, staged);
    await expect(lstat(path.join(staged, CA))).rejects.toThrow('ENOENT');
    expect(await readdir(path.join(staged, 'etc'))).not.toContain('kubelet-ca.crt');
  });

  test('is handed over to an image whose config has it, and to no other', async () => {
    await carry(staged, CA);
    expect(await handedOverTo(root, staged)).toEqual(new Map());
    await deliver(CA, '/etc/other.crt', '/var/lib/kubelet/ca.crt');
    expect(await handedOverTo(root, staged)).toEqual(new Map([[CA, ['digest']]]));
    await carry(staged, '/etc/app.conf');
    expect(await handedOverTo(root, staged)).toEqual(new Map());
  });
});

test('the paths of configs are those of what runs and of what is on its way', async () => {
  await carry(root, '/etc/image.conf');
  const next = standard('rendered-2', [{ path: '/etc/next.conf', content: 'x' }]);
  const image = parseDigestedPullspec(`r.io/os@sha256:${'1'.repeat(64)}`);
  const current = { version: 1, mode: 'Layered', config: 'rendered-1', image } as const;
  const both = await pathsOfConfigs(root, { current, journal: { next } });
  expect([...both]).toEqual(['/etc/image.conf', '/etc/next.conf']);
  expect(await pathsOfConfigs(root, { current: undefined, journal: undefined })).toEqual(new Set());
});
