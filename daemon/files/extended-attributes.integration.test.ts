/** The kernel's own attributes of real files, as the tools of libcap read them after a live apply. */
import { createHash } from 'node:crypto';
import { chmod, chown, lstat, mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { takeSteps, type WriteStep } from './write-step.ts';

/** What the kernel and the tools of libcap have of files that a live apply gives back. */
const signal = deadline(60_000);

let root: string;
const at = (name: string) => path.join(root, name);
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-attributes-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(at('usr/bin'), { recursive: true });
  await writeFile(at('source'), 'of the base');
});

const change = (more: Partial<Extract<WriteStep, { kind: 'copy' }>> = {}): WriteStep => ({
  kind: 'copy',
  name: '/usr/bin/ping',
  source: at('source'),
  sha256: createHash('sha256').update('of the base').digest('hex'),
  mode: 0o755,
  uid: 0,
  gid: 0,
  ...more,
});
const capabilities = async (name: string) => (await execa('getcap', [at(name)])).stdout;

describe('a file that comes by a live apply', () => {
  it.each([
    ['of root', 0, 0o755],
    ['of another user', 998, 0o750],
    ['that is setuid', 0, 0o4755],
  ])('has the capabilities of its image: one %s', async (_whose, uid, mode) => {
    await writeFile(at('usr/bin/ping'), 'of the layer');
    await utimes(at('source'), 0, 0);
    await chown(at('source'), uid, uid);
    await chmod(at('source'), mode);
    await execa('setcap', ['cap_net_raw=ep', at('source')]);
    await takeSteps({ root }, [change({ mode, uid, gid: uid })], { signal });
    expect(await capabilities('usr/bin/ping')).toBe(`${at('usr/bin/ping')} cap_net_raw=ep`);
    const stats = await lstat(at('usr/bin/ping'));
    expect([stats.uid, stats.gid, stats.mode & 0o7777]).toEqual([uid, uid, mode]);
    expect(stats.mtimeMs).toBeGreaterThan((await lstat(at('source'))).mtimeMs);
    expect(await readFile(at('usr/bin/ping'), 'utf8')).toBe('of the base');
  });

  it('has none of those that the file had which it replaces', async () => {
    await writeFile(at('usr/bin/ping'), 'of the layer');
    await execa('setcap', ['cap_net_raw=ep', at('usr/bin/ping')]);
    await takeSteps({ root }, [change()], { signal });
    expect(await capabilities('usr/bin/ping')).toBe('');
  });
});
