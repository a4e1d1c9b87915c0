import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { bootedDirectory, rebootCommand } from './systemd-host.ts';

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
