/** What is asked of systemd, in which order, and the namespaces of a real process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { patience } from '../../test/fixtures/patience.ts';
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

  it('ends a command in a host that is a container, at whatever moment it is given up', async () => {
    await using container = await startContainer();
    const run = osCommandRunner(hostNamespaces(container.init));
    expect(await run(['sh', '-c', 'echo $PPID'], { timeoutMs: patience(10_000), signal })).toBe('0');
    // nsenter has entered, forked, or started the command by then.
    for (let step = 0; step < 40; step += 1) {
      const stop = new AbortController();
      const running = run(['sleep', '600'], { timeoutMs: 600_000, signal: stop.signal });
      const giveUpAt = performance.now() + step / 5;
      while (performance.now() < giveUpAt);
      stop.abort(new Error('given up'));
      await expect(running).rejects.toThrow('given up');
    }
  });
});

/** @returns a process that is the first of a namespace of process ids, as a host's init is in a container. */
async function startContainer(): Promise<AsyncDisposable & { readonly init: number }> {
  const own = ['--pid', '--fork', '--kill-child', '--mount', '--mount-proc'];
  const child = spawn('unshare', [...own, 'sh', '-c', 'echo; exec sleep 600'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
  return {
    init: Number(children),
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

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
