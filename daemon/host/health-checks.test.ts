import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findHealthChecks } from './health-checks.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'checks-'));
});
afterEach(() => rm(root, { recursive: true }));

async function put(name: string, mode = 0o755, text = ''): Promise<void> {
  const place = path.join(root, name);
  await mkdir(path.dirname(place), { recursive: true });
  await writeFile(place, text);
  await chmod(place, mode);
}

const names = (checks: readonly { readonly name: string }[]) => checks.map(({ name }) => name);

test('a node without checks has none', async () => {
  expect(await findHealthChecks(root)).toEqual({ required: [], wanted: [] });
});

test('checks of all directories run in the order of their names', async () => {
  await put('/etc/shale/health.d/20-disk');
  await put('/etc/shale/health.d/README', 0o644);
  await put('/etc/greenboot/check/required.d/10_dns.sh', 0o644);
  await put('/etc/greenboot/check/required.d/notes.txt');
  await put('/usr/lib/greenboot/check/required.d/10_dns.sh');
  await put('/usr/lib/greenboot/check/wanted.d/30_clock.sh');
  const { required, wanted } = await findHealthChecks(root);
  expect(names(required)).toEqual([
    '/etc/greenboot/check/required.d/10_dns.sh',
    '/usr/lib/greenboot/check/required.d/10_dns.sh',
    '/etc/shale/health.d/20-disk',
  ]);
  expect(required.map(({ program }) => program)).toEqual([
    { place: path.join(root, 'etc/greenboot/check/required.d/10_dns.sh'), interpreter: 'bash' },
    { place: path.join(root, 'usr/lib/greenboot/check/required.d/10_dns.sh'), interpreter: 'bash' },
    { place: path.join(root, 'etc/shale/health.d/20-disk') },
  ]);
  expect(names(wanted)).toEqual(['/usr/lib/greenboot/check/wanted.d/30_clock.sh']);
});

test('what greenboot is told to leave out is left out', async () => {
  await put('/usr/lib/greenboot/check/required.d/01_repository_dns_check.sh');
  await put('/usr/lib/greenboot/check/required.d/02_watchdog.sh');
  const config =
    '# GREENBOOT_MAX_BOOT_ATTEMPTS=3\nDISABLED_HEALTHCHECKS=(\n  "01_repository_dns_check.sh"\n)\n';
  await put('/etc/greenboot/greenboot.conf', 0o644, config);
  expect(names((await findHealthChecks(root)).required)).toEqual([
    '/usr/lib/greenboot/check/required.d/02_watchdog.sh',
  ]);
});

test('a link leads to a file of the node and to no other', async () => {
  await put('/usr/libexec/check');
  await mkdir(path.join(root, 'etc/shale/health.d'), { recursive: true });
  await symlink('/usr/libexec/check', path.join(root, 'etc/shale/health.d/10-linked'));
  await symlink('/bin/sh', path.join(root, 'etc/shale/health.d/20-outside'));
  await symlink('30-loop', path.join(root, 'etc/shale/health.d/30-loop'));
  expect((await findHealthChecks(root)).required).toEqual([
    { name: '/etc/shale/health.d/10-linked', program: { place: path.join(root, 'usr/libexec/check') } },
  ]);
});

test('a chain of links leads as far as the kernel follows one, and no further', async () => {
  await put('/etc/shale/health.d/first');
  for (const links of Array.from({ length: 41 }, (_, index) => index + 1)) {
    await symlink(
      links === 1 ? 'first' : `link-${links - 1}`,
      path.join(root, `etc/shale/health.d/link-${links}`),
    );
  }
  const found = names((await findHealthChecks(root)).required);
  expect(found).toHaveLength(1 + 40);
  expect(found).not.toContain('/etc/shale/health.d/link-41');
});

test.each([
  ['in one line', 'DISABLED_HEALTHCHECKS=(a.sh "b.sh" \'c.sh\')', ['d.sh']],
  ['of none', 'DISABLED_HEALTHCHECKS=()', ['a.sh', 'b.sh', 'c.sh', 'd.sh']],
  ['that is a comment', '# DISABLED_HEALTHCHECKS=("a.sh")', ['a.sh', 'b.sh', 'c.sh', 'd.sh']],
])('a list %s says what greenboot leaves out', async (_what, config, expected) => {
  for (const name of ['a.sh', 'b.sh', 'c.sh', 'd.sh']) await put(`/etc/greenboot/check/wanted.d/${name}`);
  await put('/etc/greenboot/greenboot.conf', 0o644, config);
  const { wanted } = await findHealthChecks(root);
  expect(names(wanted)).toEqual(expected.map((name) => `/etc/greenboot/check/wanted.d/${name}`));
});

test('a directory is no check, and what can not be read is not taken for empty', async () => {
  await mkdir(path.join(root, 'etc/shale/health.d/10-directory'), { recursive: true });
  expect((await findHealthChecks(root)).required).toEqual([]);
  await mkdir(path.join(root, 'etc/greenboot/greenboot.conf'), { recursive: true });
  await expect(findHealthChecks(root)).rejects.toThrow('EISDIR');
});
