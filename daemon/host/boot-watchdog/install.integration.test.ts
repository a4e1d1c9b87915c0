/** The watchdog's files in a deployment on a disk: owners, modes, SELinux labels, and nothing left after it. */
import { lstat, mkdir, mkdtemp, readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { present } from '../../../api/present.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { OSTREE_BOOT_SCRIPT } from '../../os/ostree/boot-script.ts';
import {
  hasWatchdog,
  installWatchdog,
  removeWatchdog,
  retireWatchdog,
  takeOverFromWatchdog,
} from './install.ts';
import { readMark, WATCHDOG_UNIT, watchdogPaths } from './watchdog-files.ts';

const ID = `${'a'.repeat(64)}.0`;
const isRoot = process.getuid?.() === 0;

/** What is written belongs to root. */
describe.skipIf(!isRoot)('the boot watchdog', () => {
  let base: string;
  let root: string;
  let staged: string;
  let stopped: string[];
  let labelled: [string, readonly string[]][];
  const signal = deadline(60_000);

  beforeEach(async () => {
    base = await mkdtemp(path.join(tmpdir(), 'shale-watchdog-'));
    [root, staged] = [path.join(base, 'root'), path.join(base, 'staged')];
    for (const each of [root, staged]) await mkdir(path.join(each, 'etc'), { recursive: true });
    stopped = [];
    labelled = [];
  });
  afterEach(() => rm(base, { recursive: true }));

  const inStaged = (name: string) => path.join(staged, name);
  /** As far as a watchdog needs a node. */
  const node = (next: string | undefined) =>
    ({
      host: { root, bootID: async () => 'boot-2+1' },
      services: { stop: async (unit: string) => void stopped.push(unit) },
      relabel: async (tree: string, names: readonly string[]) => void labelled.push([tree, names]),
      backend: {
        status: async () => ({
          booted: {},
          ...present({ staged: next && { id: ID, root: next } }),
        }),
        rollbackScript: async (keep: readonly string[]) => `: ${keep.join(' ')}`,
        bootScript: async () => OSTREE_BOOT_SCRIPT,
      },
    }) as unknown as Parameters<typeof installWatchdog>[0] & Parameters<typeof takeOverFromWatchdog>[0];
  const install = (next: string | undefined) => installWatchdog(node(next), { limitMs: 900_000, signal });
  const leaveMark = async (bootID: string) => {
    await mkdir(path.join(root, 'var/lib/shale'), { recursive: true });
    const text = `deployment ${ID}\nbootID ${bootID}\nreason DaemonNeverStarted\n\n`;
    await writeFile(path.join(root, watchdogPaths.mark), text);
  };

  it('is in the next deployment alone, where systemd starts it', async () => {
    await leaveMark('long-ago');
    expect(await install(staged)).toBe(true);
    expect([await hasWatchdog(staged), await hasWatchdog(root)]).toEqual([true, false]);
    expect(await readlink(inStaged(watchdogPaths.link))).toBe(watchdogPaths.unit);
    expect(await readMark(root)).toBeUndefined();
    expect(await install(staged)).toBe(true);
  });

  it('belongs to root, which alone may change it', async () => {
    await install(staged);
    const { link, script, unit, wants } = watchdogPaths;
    for (const [name, mode] of [
      [script, 0o644],
      [unit, 0o644],
      [wants, 0o755],
      [link, 0o777],
    ] as const) {
      const { uid, gid, mode: found } = await lstat(inStaged(name));
      expect([name, uid, gid, found & 0o7777]).toEqual([name, 0, 0, mode]);
    }
  });

  it('has the labels of the next deployment, without which SELinux would not let systemd start it', async () => {
    await install(staged);
    const { link, script, unit, wants } = watchdogPaths;
    expect(labelled).toEqual([[staged, [wants, script, unit, link]]]);
  });

  it('has nothing to watch over where the booted deployment is booted again', async () => {
    expect(await install(undefined)).toBe(false);
  });

  it('goes without a trace, and leaves what is not its own', async () => {
    await install(staged);
    const { wants } = watchdogPaths;
    await symlink('/usr/lib/systemd/system/kubelet.service', inStaged(`${wants}/kubelet.service`));
    await removeWatchdog(staged);
    await removeWatchdog(staged);
    expect(await readdir(inStaged(wants))).toEqual(['kubelet.service']);
    expect(await readdir(inStaged('/etc/systemd/system'))).toEqual(['multi-user.target.wants']);
    await rm(inStaged(`${wants}/kubelet.service`));
    await removeWatchdog(staged);
    expect(await readdir(inStaged('/etc/systemd/system'))).toEqual([]);
  });

  it('leaves an empty directory that is the image’s', async () => {
    const { wants } = watchdogPaths;
    await mkdir(inStaged(`/usr${wants}`), { recursive: true });
    await install(staged);
    await removeWatchdog(staged);
    expect(await readdir(inStaged('/etc/systemd/system'))).toEqual(['multi-user.target.wants']);
  });

  it('is taken over by a daemon, and stopped where it has begun in this boot', async () => {
    const alive = path.join(root, watchdogPaths.alive);
    await takeOverFromWatchdog(node(undefined), signal);
    expect(await readdir(root)).toEqual(['etc']);
    await install(root);
    await takeOverFromWatchdog(node(undefined), signal);
    expect(await readdir(path.dirname(alive))).toEqual([path.basename(alive)]);
    const { uid, gid, mode, size } = await lstat(alive);
    expect([uid, gid, mode & 0o7777, size]).toEqual([0, 0, 0o644, 0]);
    await leaveMark('boot-1');
    await takeOverFromWatchdog(node(undefined), signal);
    expect(stopped).toEqual([]);
    await leaveMark('boot-2');
    await takeOverFromWatchdog(node(undefined), signal);
    expect(stopped).toEqual([WATCHDOG_UNIT]);
    await retireWatchdog(root);
    expect([await hasWatchdog(root), await readMark(root)]).toEqual([false, undefined]);
  });

  it('does not take a sign of life for one of the next boot: a soft reboot leaves /run as it is', async () => {
    await install(root);
    await takeOverFromWatchdog(node(undefined), signal);
    await install(staged);
    expect(await readdir(path.join(root, 'run/shale'))).toEqual([]);
  });
});
