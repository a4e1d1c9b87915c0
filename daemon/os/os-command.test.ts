import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { OsCommandError, osCommandRunner, shellWords } from './os-command.ts';

const signal = new AbortController().signal;

describe('osCommandRunner', () => {
  const run = osCommandRunner();

  it('gives a command’s output, in the C locale and without a shell', async () => {
    expect(await run(['sh', '-c', 'echo "$LC_ALL $1"', 'sh', '$(id) *'], { timeoutMs: 10_000, signal })).toBe(
      'C $(id) *',
    );
  });

  it('says how a command failed and what it wrote', async () => {
    const failed = run(['sh', '-c', 'echo broken >&2; exit 3'], { timeoutMs: 10_000, signal });
    await expect(failed).rejects.toThrow(OsCommandError);
    await expect(failed).rejects.toThrow(/exit code 3\nbroken$/);
  });

  it('says that a program is not installed', async () => {
    await expect(run(['no-such-program'], { timeoutMs: 10_000, signal })).rejects.toMatchObject({
      message: 'no-such-program: not installed',
      code: 'ENOENT',
    });
  });

  it('ends a command that takes too long', async () => {
    await expect(run(['sleep', '60'], { timeoutMs: 50, signal })).rejects.toThrow('took longer than 0.05 s');
  });

  it('ends a command when it is cancelled, with the reason', async () => {
    const stop = new AbortController();
    const running = run(['sleep', '60'], { timeoutMs: 10_000, signal: stop.signal });
    stop.abort(new Error('shutting down'));
    await expect(running).rejects.toThrow('shutting down');
  });

  it('ends what a command has started, too, and is over only then', async () => {
    const stop = new AbortController();
    const running = run(['sh', '-c', 'sleep 600 & wait'], { timeoutMs: 600_000, signal: stop.signal });
    stop.abort(new Error('given up'));
    await expect(running).rejects.toThrow('given up');
    const late = run(['sh', '-c', 'sleep 600 & wait'], { timeoutMs: 100, signal });
    await expect(late).rejects.toThrow('took longer than 0.1 s');
  });

  const withInput = (script: string, input = '') =>
    run(['sh', '-c', script], { timeoutMs: 60_000, input, signal });

  it.each([
    ['that reads an input', { input: '' }],
    ['in a domain of its own', { isConfined: true }],
  ])('gives a command %s nothing but pipes', async (_name, how) => {
    const list = 'cd /proc/$$/fd && for name in *; do echo "$name $(readlink "$name")"; done';
    const open = await run(['sh', '-c', list], { timeoutMs: 60_000, ...how, signal });
    const [input, output, errors, ...others] = open.split('\n');
    expect([input, output, errors].map((line) => line?.replace(/\[.*/, ''))).toEqual([
      '0 pipe:',
      '1 pipe:',
      '2 pipe:',
    ]);
    expect(others.filter((line) => line.includes('socket:'))).toEqual([]);
  });

  it('hands an input over whole, and what such a command prints', async () => {
    const long = 'one line of many\n'.repeat(20_000);
    expect(await withInput('cat', long)).toBe(long.trimEnd());
    expect(await withInput('exit 0', long)).toBe('');
    await expect(withInput('cat; echo broken >&2; exit 3', 'x')).rejects.toThrow(/exit code 3\nbroken$/);
  });

  it('ends a command that reads an input when it takes too long', async () => {
    const late = run(['sleep', '600'], { timeoutMs: 100, input: 'x', signal });
    await expect(late).rejects.toThrow('took longer than 0.1 s');
  });

  it('puts the prefix before each command', async () => {
    const prefixed = osCommandRunner(['env', 'X=1']);
    expect(await prefixed(['sh', '-c', 'echo $X'], { timeoutMs: 10_000, signal })).toBe('1');
  });
});

test('plain words stay as they are', () => {
  expect(shellWords(['ostree', 'admin', 'deploy', '--karg-append=root=UUID=a', '/x'])).toBe(
    'ostree admin deploy --karg-append=root=UUID=a /x',
  );
});

test('a shell reads any words as they were', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string().filter((word) => !word.includes('\0')),
        { maxLength: 8 },
      ),
      (words) => {
        const script = `for word in ${shellWords(words)}; do printf '%s\\0' "$word"; done`;
        const read = words.length === 0 ? '' : execFileSync('sh', ['-c', script], { encoding: 'utf8' });
        expect(read).toBe(words.map((word) => `${word}\0`).join(''));
      },
    ),
    { numRuns: 25 },
  );
});
