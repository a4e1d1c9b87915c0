/** Certificates on a real tree: which files each runtime gets, and links that would lead out of the root. */
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { dataDigest } from '../../../api/node-certificates.ts';
import { fill, noMounts, smallDisk } from '../../../test/fixtures/small-disk.ts';
import { registryCAFiles } from './certificate-files.ts';
import { certificatesOf, deliver, readDeliveries, settleDelivery } from './deliver.ts';
import { handedOverTo } from './owned-paths.ts';

const KUBELET_CA = '/etc/kubernetes/kubelet-ca.crt';

async function emptyRoot(): Promise<string> {
  const root = await mkdtemp(path.join(tmpdir(), 'certificates-'));
  onTestFinished(() => rm(root, { recursive: true }));
  return root;
}
async function apply(root: string, data: Record<string, string>): Promise<void> {
  const version = dataDigest(data);
  const delivery = await deliver(root, 'registryCAs', { version, files: registryCAFiles(data, version) });
  await settleDelivery(root, 'registryCAs', delivery);
}
const one = (text: string, mode = 0o644) => new Map([[KUBELET_CA, { contents: Buffer.from(text), mode }]]);
const containers = (root: string, ...names: string[]) => path.join(root, 'etc/containers/certs.d', ...names);

test('each registry gets its bundle where both runtimes look', async () => {
  const root = await emptyRoot();
  const data = { 'r.example.com..5000': 'PEM' };
  await apply(root, data);
  for (const directory of ['etc/containers/certs.d', 'etc/docker/certs.d']) {
    expect(await readFile(path.join(root, directory, 'r.example.com:5000/shale-ca.crt'), 'utf8')).toBe('PEM');
  }
  expect(await certificatesOf(root)).toEqual({ registryCAs: dataDigest(data) });
});

test("a registry that is gone loses Shale's file and keeps an admin's", async () => {
  const root = await emptyRoot();
  await apply(root, { 'a.io': 'A', 'b.io': 'B' });
  await writeFile(containers(root, 'b.io', 'admin.crt'), 'mine');
  await apply(root, { 'c.io': 'C' });
  expect((await readdir(containers(root))).sort()).toEqual(['b.io', 'c.io']);
  expect(await readdir(containers(root, 'b.io'))).toEqual(['admin.crt']);
  await apply(root, {});
  expect(await certificatesOf(root)).toEqual({ registryCAs: dataDigest({}) });
});

test('a link in the way does not lead out of the root', async () => {
  const root = await emptyRoot();
  const outside = await emptyRoot();
  await mkdir(path.join(root, 'etc/containers'), { recursive: true });
  await symlink(outside, containers(root));
  await apply(root, { 'a.io': 'A' }).catch(() => undefined);
  expect(await readdir(outside)).toEqual([]);
});

test('a file comes with its mode, once, and services have to be told of what changed', async () => {
  const root = await emptyRoot();
  const first = await deliver(root, 'pullSecret', { version: '1', files: one('{}', 0o600) });
  expect(first.untold).toEqual([KUBELET_CA]);
  expect(await certificatesOf(root)).toEqual({});
  const { ino, mode } = await stat(path.join(root, KUBELET_CA));
  expect(mode & 0o777).toBe(0o600);
  const again = await deliver(root, 'pullSecret', { version: '1', files: one('{}', 0o600) });
  expect(again).toEqual(first);
  await settleDelivery(root, 'pullSecret', again);
  expect(await certificatesOf(root)).toEqual({ pullSecret: '1' });
  const newer = await deliver(root, 'pullSecret', { version: '2', files: one('{}', 0o600) });
  expect(newer.untold).toEqual([]);
  expect((await stat(path.join(root, KUBELET_CA))).ino).toBe(ino);
});

test('what somebody else has replaced is no longer what the node was given', async () => {
  const root = await emptyRoot();
  const delivery = await deliver(root, 'kubeletCA', { version: '1', files: one('CA') });
  await settleDelivery(root, 'kubeletCA', delivery);
  await writeFile(path.join(root, KUBELET_CA), 'other');
  expect(await certificatesOf(root)).toEqual({});
});

test("the kubelet's files stay when they are named no more", async () => {
  const root = await emptyRoot();
  await deliver(root, 'kubeletCA', { version: '1', files: one('CA') });
  await deliver(root, 'kubeletCA', { version: '2', files: new Map() });
  expect(await readFile(path.join(root, KUBELET_CA), 'utf8')).toBe('CA');
});

test('what can not be written leaves what was there, on record', async () => {
  const root = await emptyRoot();
  await apply(root, { 'a.io': 'A' });
  await rm(containers(root, 'a.io'), { recursive: true });
  await writeFile(containers(root, 'a.io'), 'in the way');
  await expect(apply(root, { 'a.io': 'B', 'b.io': 'B' })).rejects.toThrow('certs.d/a.io');
  expect(await certificatesOf(root)).toEqual({});
  await rm(containers(root, 'a.io'));
  await apply(root, {});
  expect(await readdir(containers(root))).toEqual([]);
  expect((await readDeliveries(root)).registryCAs?.files).toEqual({});
});

test('an image takes over what its config has, and nothing else', async () => {
  const root = await emptyRoot();
  const image = await emptyRoot();
  await deliver(root, 'kubeletCA', { version: '1', files: one('CA') });
  expect(await handedOverTo(root, image)).toEqual(new Map());
  const files = [{ path: KUBELET_CA, contents: { source: 'data:,own' } }];
  const spec = { config: { ignition: { version: '3.4.0' }, storage: { files } } };
  await mkdir(path.join(image, 'usr/share/shale'), { recursive: true });
  await writeFile(
    path.join(image, 'usr/share/shale/machine-config.json'),
    JSON.stringify({
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name: 'r' },
      spec,
    }),
  );
  expect([...(await handedOverTo(root, image)).keys()]).toEqual([KUBELET_CA]);
});

test.skipIf(noMounts)('a disk that fills up at any block leaves each bundle old or new', async () => {
  const root = await smallDisk(4 * 1024 * 1024);
  const bundles = (text: string) => ({ 'a.io': text.repeat(50_000), 'b.io': text.repeat(90_000) });
  const [before, after] = [bundles('A'), bundles('B')];
  let failures = 0;
  for (let left = 0, failed = true; failed; left += 1) {
    await apply(root, before);
    const empty = await fill(root, left);
    failed = await apply(root, after).then(
      () => false,
      () => true,
    );
    for (const name of ['a.io', 'b.io'] as const) {
      const text = await readFile(containers(root, name, 'shale-ca.crt'), 'utf8');
      expect([before[name], after[name]], `${left} blocks left`).toContain(text);
    }
    await empty();
    if (failed) failures += 1;
    await apply(root, after);
    expect(await readdir(containers(root, 'a.io'))).toEqual(['shale-ca.crt']);
    expect(await readFile(containers(root, 'b.io', 'shale-ca.crt'), 'utf8')).toBe(after['b.io']);
    expect(await certificatesOf(root)).toEqual({ registryCAs: dataDigest(after) });
  }
  expect(failures).toBeGreaterThan(10);
});
