import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodePaths } from '../../api/names.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { readEtcTrees } from './etc-trees.ts';

const signal = deadline(30_000);
const WANTS = '/etc/systemd/system/multi-user.target.wants';
const INSTALL = '[Install]\nWantedBy=multi-user.target\n';

let dir: string;
const at = (name: string) => path.join(dir, name);
const put = async (name: string, text: string) => {
  await mkdir(path.dirname(at(name)), { recursive: true });
  await writeFile(at(name), text);
};
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-etc-trees-'));
});
afterEach(() => rm(dir, { recursive: true }));

const trees = () =>
  readEtcTrees({ root: at('root'), booted: { root: at('booted') }, staged: { root: at('staged') } }, signal);

/** An image with two units of the base: one that it enables itself, and one that it doesn't. */
async function anImageOf(units: readonly object[]): Promise<void> {
  await put('staged/usr/lib/systemd/system/on.service', INSTALL);
  await put('staged/usr/etc/systemd/system/off.service', INSTALL);
  await mkdir(path.dirname(at(`staged/usr${WANTS}/on.service`)), { recursive: true });
  await symlink('/usr/lib/systemd/system/on.service', at(`staged/usr${WANTS}/on.service`));
  const spec = { config: { ignition: { version: '3.4.0' }, systemd: { units } } };
  await put(`staged${nodePaths.imageConfig}`, JSON.stringify({ metadata: { name: 'rendered-a' }, spec }));
}

test('the three versions of /etc are those of the booted and the staged image, and the running one', async () => {
  for (const name of ['booted/usr/etc/base', 'root/etc/running', 'staged/usr/etc/next'])
    await put(name, 'text');
  const { base, running, staged, notInImage } = await trees();
  expect([[...base.keys()], [...running.keys()], [...staged.keys()]]).toEqual([
    ['/etc/base'],
    ['/etc/running'],
    ['/etc/next'],
  ]);
  expect(notInImage.size).toBe(0);
});

test('an image whose config disables a unit of its base has no link that enables it', async () => {
  await anImageOf([{ name: 'on.service', enabled: false }]);
  const { staged, notInImage } = await trees();
  expect([...staged.keys()]).not.toContain(`${WANTS}/on.service`);
  expect([...notInImage]).toEqual([`${WANTS}/on.service`]);
});

test('an image whose config enables a unit of its base has the link, with its directory', async () => {
  await anImageOf([{ name: 'off.service', enabled: true }]);
  await rm(at(`staged/usr${WANTS}`), { recursive: true });
  const { staged, notInImage } = await trees();
  expect(staged.get(`${WANTS}/off.service`)).toMatchObject({ kind: 'symlink', uid: 0, gid: 0 });
  expect(staged.get(WANTS)).toEqual({ kind: 'directory', mode: 0o755, uid: 0, gid: 0 });
  expect([...notInImage].toSorted()).toEqual([WANTS, `${WANTS}/off.service`]);
});

test('an image whose config wants a unit as the base has it differs in nothing', async () => {
  await anImageOf([
    { name: 'on.service', enabled: true },
    { name: 'unknown.service', enabled: false },
  ]);
  expect((await trees()).notInImage.size).toBe(0);
});

test('an image that is made of no config is as its /usr/etc has it', async () => {
  await anImageOf([]);
  await rm(at(`staged${nodePaths.imageConfig}`));
  const { staged, notInImage } = await trees();
  expect(staged.get(`${WANTS}/on.service`)).toMatchObject({ kind: 'symlink' });
  expect(notInImage.size).toBe(0);
});
