import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { deadline } from '../../../test/fixtures/patience.ts';
import { NEXT_ROOT_NOTE, parseUserspaceBoot, untilBootSettled } from './userspace-boot.ts';

const clocks = { now: 1_000_000, monotonicMs: 50_000 };

describe('parseUserspaceBoot', () => {
  test('a systemd that counts soft reboots', () => {
    const shown = 'SoftRebootsCount=2\nUserspaceTimestampMonotonic=30000000\n';
    expect(parseUserspaceBoot(shown, clocks)).toEqual({ softReboots: 2, startedAt: 980_000 });
  });
  test('one that does not, as Debian 12’s', () => {
    expect(parseUserspaceBoot('UserspaceTimestampMonotonic=1500000\n', clocks)).toEqual({
      softReboots: undefined,
      startedAt: 951_500,
    });
  });
  test('no systemd at all', () => {
    expect(() => parseUserspaceBoot('', clocks)).toThrow('expected UserspaceTimestampMonotonic');
  });
});

describe('untilBootSettled', () => {
  let root: string;
  const signal = deadline(60_000);
  const note = () => path.join(root, NEXT_ROOT_NOTE);
  let commands: string[];
  /** The unit finds nothing to do, unless it is to. */
  const boot = (work: () => Promise<void> = async () => undefined) => ({
    root,
    startedAt: 100_000,
    run: async (command: readonly string[]) => {
      commands.push(command.join(' '));
      await work();
      return '';
    },
  });
  beforeEach(async () => {
    commands = [];
    root = await mkdtemp(path.join(tmpdir(), 'shale-userspace-'));
    await mkdir(path.dirname(note()), { recursive: true });
  });
  afterEach(() => rm(root, { recursive: true }));

  it('does not wait where no root was prepared', async () => {
    await untilBootSettled(boot(), signal, 0);
    expect(commands).toEqual([]);
  });

  it('has ostree look again, whose unit systemd starts after the first soft reboot only', async () => {
    await writeFile(note(), '');
    await utimes(note(), 99, 99);
    await untilBootSettled(
      boot(() => rm(note())),
      signal,
      0,
    );
    expect(commands).toEqual(['systemctl restart ostree-boot-complete.service']);
  });

  it('gives ostree two minutes to look, and takes a failure of it for one', async () => {
    await writeFile(note(), '');
    await utimes(note(), 99, 99);
    const failing = async (_command: readonly string[], { timeoutMs }: { readonly timeoutMs: number }) => {
      throw new Error(`failed within ${timeoutMs}`);
    };
    await expect(untilBootSettled({ ...boot(), run: failing }, signal, 0)).rejects.toThrow(
      'failed within 120000',
    );
  });

  it('waits while the note is older than the boot, and no longer than its limit', async () => {
    await writeFile(note(), '');
    await utimes(note(), 99, 99);
    await expect(untilBootSettled(boot(), signal, 0)).rejects.toThrow('ostree-boot-complete.service');
    const settled = untilBootSettled(boot(), signal);
    await rm(note());
    await settled;
  });

  it('takes a note of the very moment of the boot for one from before', async () => {
    await writeFile(note(), '');
    await utimes(note(), 100, 100);
    await expect(untilBootSettled(boot(), signal, 0)).rejects.toThrow('ostree-boot-complete.service');
  });

  it('leaves a root alone that was prepared since: it is for the next reboot', async () => {
    await writeFile(note(), '');
    await utimes(note(), 101, 101);
    await untilBootSettled(boot(), signal, 0);
    expect(commands).toEqual([]);
  });
});
