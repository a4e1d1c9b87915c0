import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { registryCAsDigest } from '../../api/registry-cas.ts';
import { appliedRegistryCAs, applyRegistryCAs, CertificatesRefused } from './registry-cas.ts';

async function emptyRoot(): Promise<string> {
  const root = await mkdtemp(path.join(tmpdir(), 'cas-'));
  onTestFinished(() => rm(root, { recursive: true }));
  return root;
}
const apply = (root: string, data: Record<string, string>) =>
  applyRegistryCAs(root, data, registryCAsDigest(data));
const containers = (root: string, ...names: string[]) => path.join(root, 'etc/containers/certs.d', ...names);

test('each registry gets its bundle where both runtimes look', async () => {
  const root = await emptyRoot();
  const data = { 'r.example.com..5000': 'PEM' };
  await apply(root, data);
  for (const directory of ['etc/containers/certs.d', 'etc/docker/certs.d']) {
    expect(await readFile(path.join(root, directory, 'r.example.com:5000/shale-ca.crt'), 'utf8')).toBe('PEM');
  }
  expect(await appliedRegistryCAs(root)).toBe(registryCAsDigest(data));
});

test("a registry that is gone loses Shale's file and keeps an admin's", async () => {
  const root = await emptyRoot();
  await apply(root, { 'a.io': 'A', 'b.io': 'B' });
  await writeFile(containers(root, 'b.io', 'admin.crt'), 'mine');
  await apply(root, { 'c.io': 'C' });
  expect((await readdir(containers(root))).sort()).toEqual(['b.io', 'c.io']);
  expect(await readdir(containers(root, 'b.io'))).toEqual(['admin.crt']);
});

test('other data than the operator named is refused, and nothing is written', async () => {
  const root = await emptyRoot();
  await expect(applyRegistryCAs(root, { 'a.io': 'A' }, registryCAsDigest({ 'a.io': 'B' }))).rejects.toThrow(
    CertificatesRefused,
  );
  expect(await readdir(root)).toEqual([]);
});

test.each(['../../etc', 'a/b', '..'])('key %j is refused, and nothing is written', async (key) => {
  const root = await emptyRoot();
  await expect(apply(root, { [key]: 'A' })).rejects.toThrow(CertificatesRefused);
  expect(await readdir(root)).toEqual([]);
});

test('a link in the way does not lead out of the root', async () => {
  const root = await emptyRoot();
  const outside = await emptyRoot();
  await mkdir(path.join(root, 'etc/containers'), { recursive: true });
  await symlink(outside, path.join(root, 'etc/containers/certs.d'));
  await apply(root, { 'a.io': 'A' }).catch(() => undefined);
  expect(await readdir(outside)).toEqual([]);
});
