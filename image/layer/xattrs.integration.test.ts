/** GNU tar and getcap read the layer: a capability arrives as one. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { writeLayer } from './write-layer.ts';

const run = promisify(execFile);
/** cap_net_raw=ep as the kernel stores it (linux/capability.h, vfs_cap_data version 2): bytes that are no text. */
const CAP_NET_RAW = Buffer.from('0100000200200000000000000000000000000000', 'hex');

// Only root may set a capability, and getcap is in the package libcap2-bin.
test('GNU tar unpacks a file capability, and getcap reads it', async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'xattrs-'));
  try {
    const long = `usr/bin/${'p'.repeat(110)}`;
    const { bytes } = await writeLayer([
      {
        type: 'file',
        path: `/${long}`,
        mode: 0o755,
        uid: 300_000,
        gid: 0,
        content: Buffer.from(long),
        xattrs: { 'security.capability': CAP_NET_RAW },
      },
    ]);
    await writeFile(path.join(dir, 'layer.tar.gz'), bytes);
    const options = ['--xattrs', '--xattrs-include=*', '--numeric-owner'];
    await run('tar', ['-C', dir, ...options, '-xf', path.join(dir, 'layer.tar.gz')]);
    const { stdout } = await run('/sbin/getcap', [path.join(dir, long)]);
    expect(stdout).toContain('cap_net_raw=ep');
    expect((await run('stat', ['-c', '%u %a', path.join(dir, long)])).stdout.trim()).toBe('300000 755');
  } finally {
    await rm(dir, { recursive: true });
  }
});
