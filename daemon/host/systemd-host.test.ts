import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { osCommandRunner } from '../os/os-command.ts';
import { bootedDirectory, HOST_INIT, hostNamespaces, rebootCommand } from './systemd-host.ts';

describe('rebootCommand', () => {
  it('gives the reason as one line', () => {
    expect(rebootCommand('kernel\narguments')).toEqual([
      'systemctl',
      'reboot',
      '--no-block',
      '--message=shale: kernel arguments',
    ]);
  });
});

const notRoot = process.getuid?.() !== 0;
if (notRoot) process.stderr.write('skipped: namespaces are entered by root only\n');

describe.skipIf(notRoot)('hostNamespaces', () => {
  const own = hostNamespaces(HOST_INIT).map((part) =>
    part === '--target=1' ? `--target=${process.pid}` : part,
  );
  const { signal } = new AbortController();

  it('does not let a command take the host for a container', async () => {
    const run = osCommandRunner(['env', 'container=oci', ...own]);
    const shown = await run(['env'], { timeoutMs: 10_000, signal });
    expect(shown).not.toMatch(/^container=/m);
  });

  it('lets a command be ended from outside', async () => {
    const run = osCommandRunner(own);
    await expect(run(['sleep', '60'], { timeoutMs: 200, signal })).rejects.toThrow('took longer than 0.2 s');
  });
});

describe('bootedDirectory', () => {
  it('finds the deployment that is the running root, and says when there is none', async () => {
    const sysroot = await mkdtemp(path.join(tmpdir(), 'shale-sysroot-'));
    try {
      const deploy = path.join(sysroot, 'ostree/deploy/debian/deploy');
      await mkdir(path.join(deploy, 'aaa.0'), { recursive: true });
      await mkdir(path.join(deploy, 'bbb.0'));
      await symlink(path.join(deploy, 'bbb.0'), path.join(sysroot, 'running'));
      expect(await bootedDirectory(sysroot, path.join(sysroot, 'running'))).toBe(path.join(deploy, 'bbb.0'));
      await expect(bootedDirectory(sysroot, sysroot)).rejects.toThrow('was not booted by ostree');
    } finally {
      await rm(sysroot, { recursive: true });
    }
  });
});
