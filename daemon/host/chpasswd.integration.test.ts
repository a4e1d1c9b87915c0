/** The host's chpasswd in a mount namespace whose root is read-only: what it can write there. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { osCommandRunner } from '../os/os-command.ts';
import { chpasswd } from './chpasswd.ts';

/** A host's mounts, in which the physical root is read-only; they end with the command. */
const READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"';
const hostWith = (sysroot: string) =>
  osCommandRunner(['unshare', '--mount', '--propagation=private', '--', 'sh', '-c', READ_ONLY, sysroot]);

describe.skipIf(process.getuid?.() !== 0)('chpasswd', () => {
  const signal = deadline(60_000);
  let sysroot: string;
  let deployment: string;

  beforeEach(async () => {
    sysroot = await mkdtemp(path.join(tmpdir(), 'shale-chpasswd-'));
    deployment = path.join(sysroot, 'ostree/deploy/os/deploy/0.0');
    await mkdir(path.join(deployment, 'etc'), { recursive: true });
    await writeFile(path.join(deployment, 'etc/passwd'), 'core:x:1000:1000::/home/core:/bin/sh\n');
    await writeFile(path.join(deployment, 'etc/shadow'), 'core:*:20000:0:99999:7:::\n', { mode: 0o600 });
  });
  afterEach(() => rm(sysroot, { recursive: true }));

  it('sets a hash in a deployment that the host has mounted read-only', async () => {
    const run = hostWith(sysroot);
    await expect(
      run(['touch', path.join(deployment, 'etc/shadow')], { timeoutMs: 10_000, signal }),
    ).rejects.toThrow('Read-only file system');
    await chpasswd(run, { sysroot })(deployment, new Map([['core', '$6$salt$hash']]), signal);
    expect(await readFile(path.join(deployment, 'etc/shadow'), 'utf8')).toMatch(/^core:\$6\$salt\$hash:/);
  });

  it('sets one where it can be written to, with no mount of its own', async () => {
    await chpasswd(osCommandRunner(), { sysroot })(deployment, new Map([['core', '!']]), signal);
    expect(await readFile(path.join(deployment, 'etc/shadow'), 'utf8')).toMatch(/^core:!:/);
  });

  it('says why it could not, and names no hash', async () => {
    const set = chpasswd(hostWith(sysroot), { sysroot });
    const failed = await set(deployment, new Map([['nobody-here', '$6$secret']]), signal).catch(String);
    expect(failed).toContain('nobody-here');
    expect(failed).not.toContain('secret');
  });
});
