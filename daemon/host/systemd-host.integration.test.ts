import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { osCommandRunner, type RunOsCommand } from '../os/os-command.ts';
import {
  bootedDirectory,
  HOST_INIT,
  hostNamespaces,
  rebootCommand,
  softRebootCommand,
  systemdHost,
} from './systemd-host.ts';

describe('rebootCommand', () => {
  it('gives the reason as one line, and has the kernel started anew', () => {
    expect(rebootCommand('kernel\narguments')).toEqual([
      'env',
      'SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT=1',
      'systemctl',
      'reboot',
      '--no-block',
      '--message=shale: kernel arguments',
    ]);
    expect(softRebootCommand('an\nimage')).toEqual([
      'systemctl',
      'soft-reboot',
      '--no-block',
      '--message=shale: an image',
    ]);
  });
});

describe('systemdHost', () => {
  const { signal } = new AbortController();
  const hostOf = (...shown: readonly string[]) => {
    const asked: string[] = [];
    const run: RunOsCommand = async (command) => {
      asked.push(command.join(' '));
      const text = shown[asked.length - 1];
      if (text === undefined) throw new Error('busy');
      return text;
    };
    return { host: systemdHost({ root: '/', init: HOST_INIT, run }), asked };
  };

  it('tells a soft reboot in the boot id, and asks systemd for it once', async () => {
    const kernel = await hostOf('UserspaceTimestampMonotonic=1\n').host.bootID();
    const { host, asked } = hostOf('SoftRebootsCount=3\nUserspaceTimestampMonotonic=1\n');
    expect([await host.bootID(), await host.bootID()]).toEqual([`${kernel}+3`, `${kernel}+3`]);
    expect(await host.softBootSince()).toBeLessThanOrEqual(Date.now());
    expect(asked).toHaveLength(1);
  });

  it('asks again where systemd did not answer', async () => {
    const { host, asked } = hostOf();
    await expect(host.bootID()).rejects.toThrow('busy');
    await expect(host.bootID()).rejects.toThrow('busy');
    expect(asked).toHaveLength(2);
  });

  it('asks for no soft reboot that nobody could tell afterwards', async () => {
    const { host, asked } = hostOf('UserspaceTimestampMonotonic=1\n');
    expect(await host.softBootSince()).toBeUndefined();
    await expect(host.rebootSoftly('x', signal)).rejects.toThrow('SoftRebootsCount');
    expect(asked).toHaveLength(1);
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
