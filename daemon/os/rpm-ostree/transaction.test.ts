import { describe, expect, it } from 'vitest';
import { OsCommandError, type RunOsCommand } from '../os-command.ts';
import { transaction, transactionFailure } from './transaction.ts';

const BUSY =
  'error: Transaction in progress: upgrade\n You can cancel the current transaction with `rpm-ostree cancel`\n';
const GONE =
  'error: Bus owner changed, aborting. This likely means the daemon crashed; check logs with `journalctl -xe`.\n';

describe('transactionFailure', () => {
  it.each([
    ['busy', BUSY],
    ['daemonGone', GONE],
    [
      'daemonGone',
      'error: GDBus.Error:org.freedesktop.DBus.Error.NoReply: Message recipient disconnected from message bus without replying\n',
    ],
    [
      'daemonGone',
      'error: Error calling StartServiceByName for org.projectatomic.rpmostree1: org.freedesktop.DBus.Error.TimedOut\n',
    ],
    ['daemonGone', 'Job for rpm-ostreed.service canceled.\nerror: Loading sysroot: exit status: 1\n'],
    ['failed', 'error: Loading sysroot: No such file or directory\n'],
    ['failed', 'error: No such image\n'],
    ['failed', 'error: Reboot initiated, cannot start new transaction\n'],
    ['failed', ''],
  ] as const)('%s: %s', (expected, stderr) => {
    expect(transactionFailure(stderr)).toBe(expected);
  });
});

describe('transaction', () => {
  const limits = { busyMs: 10_000, restartMs: 10_000, retryEveryMs: 1 };
  const command = ['rpm-ostree', 'rollback'] as const;
  const options = { timeoutMs: 1_000, signal: new AbortController().signal };
  /** @returns a runner that fails so often, and what it ran. */
  const failing = (...failures: readonly OsCommandError[]) => {
    const ran: string[] = [];
    const run: RunOsCommand = async (argv) => {
      if (argv[0] === 'systemctl') return 'LoadState=loaded\nActiveState=active\n';
      ran.push(argv.slice(1).join(' '));
      const failure = argv[1] === 'cancel' ? undefined : failures[ran.length - 1];
      if (failure !== undefined) throw failure;
      return '';
    };
    return { run, ran };
  };
  const failed = (stderr: string) => new OsCommandError(command, 'exit code 1', { exitCode: 1, stderr });

  it('waits for another transaction, and for the daemon to come back', async () => {
    const { run, ran } = failing(failed(BUSY), failed(GONE), failed(BUSY));
    await transaction(run, command, options, limits);
    expect(ran).toHaveLength(4);
  });

  describe('that fails by a program of the daemon', () => {
    const CHILD = 'error: Importing: Failed to commit tar: ExitStatus(unix_wait_status(15))\n';
    const host = (state: () => string) => {
      const ran: string[] = [];
      const run: RunOsCommand = async ([program, ...words]) => {
        if (program === 'systemctl') return state();
        ran.push(words.join(' '));
        if (ran.length === 1) throw failed(CHILD);
        return '';
      };
      return { run, ran };
    };

    it.each(['deactivating', 'inactive', 'failed', 'activating'])(
      'is repeated where systemd has ended the daemon with it: %s',
      async (state) => {
        const { run, ran } = host(() => `LoadState=loaded\nActiveState=${state}\n`);
        await transaction(run, command, options, limits);
        expect(ran).toHaveLength(2);
        const once = host(() => `LoadState=loaded\nActiveState=${state}\n`);
        await expect(
          transaction(once.run, command, { ...options, isRepeatable: false }, limits),
        ).rejects.toThrow('commit tar');
      },
    );

    it.each([
      ['runs', () => 'LoadState=loaded\nActiveState=active\n'],
      ['is no unit', () => 'LoadState=not-found\nActiveState=inactive\n'],
      [
        'can’t be asked for',
        () => {
          throw new OsCommandError(['systemctl'], 'not installed', { stderr: '' });
        },
      ],
    ])('is not where the daemon %s', async (_name, state) => {
      const { run, ran } = host(state);
      await expect(transaction(run, command, options, limits)).rejects.toThrow('commit tar');
      expect(ran).toHaveLength(1);
    });
  });

  it('does not repeat what failed', async () => {
    const { run, ran } = failing(failed('error: No previous deployment'));
    await expect(transaction(run, command, options, limits)).rejects.toThrow('No previous deployment');
    expect(ran).toHaveLength(1);
  });

  it.each([
    ['another transaction', BUSY, { busyMs: -1 }],
    ['the daemon', GONE, { restartMs: -1 }],
  ])('waits for %s no longer than the limit, and says what it waited for', async (_name, stderr, limit) => {
    const { run } = failing(failed(stderr));
    await expect(transaction(run, command, options, { ...limits, ...limit })).rejects.toThrow(stderr.trim());
  });

  it('does not repeat what would undo itself', async () => {
    const { run, ran } = failing(failed(BUSY), failed(GONE));
    const once = { ...options, isRepeatable: false };
    await expect(transaction(run, command, once, limits)).rejects.toThrow('Bus owner changed');
    expect(ran).toHaveLength(2);
  });

  it('cancels what took too long', async () => {
    const { run, ran } = failing(new OsCommandError(command, 'took longer than 1 s', { stderr: '' }));
    await expect(transaction(run, command, options, limits)).rejects.toThrow(OsCommandError);
    expect(ran).toEqual(['rollback', 'cancel']);
  });

  it('cancels what the caller gave up, and ends with the caller’s reason', async () => {
    const stop = new AbortController();
    const ran: string[] = [];
    const run: RunOsCommand = async (argv, { signal }) => {
      ran.push(String(argv[1]));
      if (argv[1] === 'rollback') stop.abort(new Error('shutting down'));
      signal.throwIfAborted();
      return '';
    };
    await expect(
      transaction(run, command, { timeoutMs: 1_000, signal: stop.signal }, limits),
    ).rejects.toThrow('shutting down');
    expect(ran).toEqual(['rollback', 'cancel']);
  });
});
