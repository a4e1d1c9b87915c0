import { execFileSync } from 'node:child_process';
import { chmod, lstat, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { OsCommandError, type RunOsCommand } from '../os-command.ts';
import { ostree, ostreeRollbackScript, parseChecksums, retryRemount } from './ostree.ts';

const options = { timeoutMs: 1_000, signal: new AbortController().signal };
const BUSY = 'error: Remounting /sysroot read-write: Device or resource busy';

/** A command that fails so often with this on its standard error. */
function failing(times: number, stderr: string) {
  let runs = 0;
  const run: RunOsCommand = async (command) => {
    runs += 1;
    if (runs <= times) throw new OsCommandError(command, 'exit code 1', { exitCode: 1, stderr });
    return 'done';
  };
  return { run: retryRemount(run), runs: () => runs };
}

test('a command whose remount the kernel refused for a moment is run again', async () => {
  const { run, runs } = failing(2, BUSY);
  expect(await run(['ostree', 'prune'], options)).toBe('done');
  expect(runs()).toBe(3);
});

test('one whose remount stays refused fails with the reason', async () => {
  const { run, runs } = failing(9, BUSY);
  await expect(run(['ostree', 'prune'], options)).rejects.toThrow('exit code 1');
  expect(runs()).toBe(5);
});

test('one that is to end does not wait until it is run again', async () => {
  const { run, runs } = failing(1, BUSY);
  await expect(run(['ostree', 'prune'], { ...options, signal: AbortSignal.abort() })).rejects.toThrow(
    /abort/,
  );
  expect(runs()).toBe(1);
});

test.each(['error: Writing content object: Device or resource busy', 'error: min-free-space-percent', ''])(
  'one that fails for another reason (%j) is not run again',
  async (stderr) => {
    const { run, runs } = failing(1, stderr);
    await expect(run(['ostree', 'commit'], options)).rejects.toThrow('exit code 1');
    expect(runs()).toBe(1);
  },
);

test('what writes a whole operating system has half an hour, and what reads minutes', async () => {
  const limits = new Map<string, number>();
  const run: RunOsCommand = async ([, ...words], { timeoutMs }) => {
    limits.set(words.filter((word) => !word.startsWith('--repo=')).join(' '), timeoutMs);
    return '';
  };
  const { signal } = options;
  const host = ostree(run, '/');
  await host.commit({ ref: 'r', directory: '/d', overlay: '/o.tar', metadata: { a: 'b' } }, signal);
  await host.commit({ ref: 'r', directory: '/d', metadata: {} }, signal);
  await host.checkout({ ref: 'r', destination: '/d', subpath: '/usr' }, signal);
  await host.checkout({ ref: 'r', destination: '/d' }, signal);
  await host.checksums('r', ['/usr/lib'], signal);
  await host.deleteRefs(['r', 's'], signal);
  await host.deploy({ osName: 'fcos', ref: 'r', originFile: '/o', kernelArguments: ['rw'] }, signal);
  await host.undeploy(3, signal);
  await host.prepareSoftReboot(signal);
  await host.cleanup(signal);
  const [short, long] = [120_000, 1_800_000];
  const commit =
    'commit --branch=r --consume --link-checkout-speedup --parent=none --timestamp=1970-01-01T00:00:00Z';
  expect(Object.fromEntries(limits)).toEqual({
    [`${commit} --add-metadata-string=a=b --tar-autocreate-parents --tree=dir=/d --tree=tar=/o.tar`]: long,
    [`${commit} --tar-autocreate-parents --tree=dir=/d`]: long,
    'checkout -H --subpath=/usr r /d': long,
    'checkout -H r /d': long,
    'ls --checksum r /usr/lib': short,
    'refs --delete r s': short,
    'admin deploy --sysroot=/ --os=fcos --origin-file=/o --karg-none --karg-append=rw r': long,
    'admin undeploy --sysroot=/ 3': short,
    'admin prepare-soft-reboot --sysroot=/ --reset': short,
    'admin prepare-soft-reboot --sysroot=/ 0': short,
    'admin cleanup --sysroot=/': long,
  });
});

test('no refs to delete are no command', async () => {
  const run = vi.fn(async () => '');
  await ostree(run, '/').deleteRefs([], options.signal);
  expect(run).not.toHaveBeenCalled();
});

/** As `ostree ls --checksum` prints it, 2022.7 and 2026.4 alike. */
const LISTED = `d00755 0 0      0 44b427fc8c3330a938d36ae158501e99a4308573787f39e8ed12c30ee328e210 446a0ef11b7cc167f3b603e585c7eeeeb675faa412d5ec73f62988eb0b6c5488 /usr/lib
-00644 0 0      2 6abdb25dda90fad84ff4db6ee3a0c3e7c1bc0ac9d4b49e3ba1d8b86a0fb4a6e9 /usr/lib/os release
l00777 0 0      0 d1e3b8f7b1f25e1b1e4f2a4b0bb3f8b3a6a8b5e0e6ac8b8a2b7a4d1a2b3c4d5e /usr/lib/link -> /usr/lib/modules
d00755 0 0      0 125baca79b7b2e1f9bf943a0845cc6d0964e50aad1278e3e50c7a8053381ddc3 446a0ef11b7cc167f3b603e585c7eeeeb675faa412d5ec73f62988eb0b6c5488 /usr/lib/modules`;

test('a directory has the checksums of its contents and of its own metadata, a file has one', () => {
  const metadata = '446a0ef11b7cc167f3b603e585c7eeeeb675faa412d5ec73f62988eb0b6c5488';
  expect([...parseChecksums(LISTED)]).toEqual([
    ['/usr/lib', `44b427fc8c3330a938d36ae158501e99a4308573787f39e8ed12c30ee328e210 ${metadata}`],
    ['/usr/lib/os release', '6abdb25dda90fad84ff4db6ee3a0c3e7c1bc0ac9d4b49e3ba1d8b86a0fb4a6e9'],
    ['/usr/lib/modules', `125baca79b7b2e1f9bf943a0845cc6d0964e50aad1278e3e50c7a8053381ddc3 ${metadata}`],
  ]);
  expect([...parseChecksums('')]).toEqual([]);
});

test("a rollback by the host's own script has Shale's paths of /etc as the deployment had them", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-rollback-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const at = (name: string) => path.join(dir, name);
  await mkdir(at('former/etc/team/deep/er'), { recursive: true });
  await mkdir(at('next/etc'), { recursive: true });
  const modes = { 'etc/team': 0o2750, 'etc/team/deep': 0o700, 'etc/team/deep/er': 0o711 };
  for (const [name, mode] of Object.entries(modes)) await chmod(at(`former/${name}`), mode);
  await writeFile(at('former/etc/team/deep/file'), 'of the deployment', { mode: 0o640 });
  await symlink('deep', at('former/etc/team/link'));
  await mkdir(at('former/etc/mode'), { mode: 0o700 });
  await mkdir(at('next/etc/mode'), { mode: 0o755 });
  await writeFile(at('next/etc/gone'), 'of the image');
  const deployment = {
    osName: 'os',
    id: 'abc.0',
    commit: 'abc',
    kernelArguments: [],
    directory: at('former'),
  };
  const script = ostreeRollbackScript({ commandSysroot: '/', sysroot: '/' }, deployment, []);
  const functions = script.slice(script.indexOf('\n# $1:'), script.indexOf('\n[ -d "$former" ] && '));
  const names = ['/etc/team/deep/er', '/etc/team/deep/file', '/etc/team/link', '/etc/mode', '/etc/gone'];
  execFileSync('sh', [
    ...['-euc', `former=$1 next=$2; shift 2\n${functions}\nfor each; do as_before "$each"; done`, 'sh'],
    ...[at('former'), at('next'), ...names],
  ]);
  for (const [name, mode] of Object.entries({ ...modes, 'etc/mode': 0o700, 'etc/team/deep/file': 0o640 })) {
    expect([name, (await lstat(at(`next/${name}`))).mode & 0o7777]).toEqual([name, mode]);
  }
  expect(await readFile(at('next/etc/team/link/file'), 'utf8')).toBe('of the deployment');
  await expect(lstat(at('next/etc/gone'))).rejects.toThrow('ENOENT');
});
