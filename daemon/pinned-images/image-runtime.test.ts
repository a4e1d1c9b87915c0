import { describe, expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { OsCommandError, type RunOsCommand } from '../os/os-command.ts';
import { crictl, whyOf } from './image-runtime.ts';

const signal = deadline(30_000);

/** A runtime that gives one answer, and what it was asked. */
function runtime(answer: string) {
  const asked: { readonly command: string; readonly env: unknown }[] = [];
  const run: RunOsCommand = async (command, { env }) => {
    asked.push({ command: command.join(' '), env });
    return answer;
  };
  return { crictl: crictl(run), asked };
}

test('images are listed by digest, and pinned only where the runtime says so', async () => {
  const images = [
    { repoDigests: ['r.io/a@sha256:1', 'r.io/b@sha256:1'], pinned: true },
    { repoDigests: null, pinned: false },
    { repoDigests: [] },
  ];
  const { crictl: of, asked } = runtime(JSON.stringify({ images }));
  expect(await of.list(signal)).toEqual([
    { names: ['r.io/a@sha256:1', 'r.io/b@sha256:1'], isPinned: true },
    { names: [], isPinned: false },
    { names: [], isPinned: false },
  ]);
  expect(asked).toEqual([{ command: 'crictl images --output=json', env: undefined }]);
});

test.each(['', 'FATA[0000] x', '{}', '{"images":[{"repoDigests":"a"}]}', '[]'])(
  'what is no list of images is refused: %s',
  async (text) => {
    await expect(runtime(text).crictl.list(signal)).rejects.toThrow(
      'crictl images --output=json: the output is not the expected JSON',
    );
  },
);

describe('where images are', () => {
  const systems = (...mountpoints: readonly string[]) =>
    mountpoints.map((mountpoint) => ({ fsId: { mountpoint } }));
  test.each([
    ['as cri-tools say it', { imageFilesystems: systems('/var/lib/containers') }],
    ['as some of them say it', { status: { imageFilesystems: systems('/var/lib/containers') } }],
  ])('is known %s', async (_what, answer) => {
    const { crictl: of, asked } = runtime(JSON.stringify(answer));
    expect(await of.storage(signal)).toEqual(['/var/lib/containers']);
    expect(asked.map(({ command }) => command)).toEqual(['crictl imagefsinfo --output=json']);
  });

  test.each([
    [{ imageFilesystems: [] }, 'names no image filesystem'],
    [{ imageFilesystems: systems('var') }, 'the output is not the expected JSON'],
    [{}, 'the output is not the expected JSON'],
  ])('is not known of %j', async (answer, message) => {
    await expect(runtime(JSON.stringify(answer)).crictl.storage(signal)).rejects.toThrow(message);
  });
});

test('credentials of a pull are in its environment alone, and there only where there are any', async () => {
  const { crictl: of, asked } = runtime('');
  await of.pull('r.io/a@sha256:1', 'dXNlcjp3b3Jk', signal);
  await of.pull('r.io/a@sha256:1', undefined, signal);
  const command = 'crictl pull r.io/a@sha256:1';
  expect(asked).toEqual([
    { command, env: { CRICTL_AUTH: 'dXNlcjp3b3Jk' } },
    { command, env: undefined },
  ]);
});

test('a pull has half an hour, a question a minute', async () => {
  const limits: Record<string, number> = {};
  const of = crictl(async ([, verb = ''], { timeoutMs }) => {
    limits[verb] = timeoutMs;
    return '{"images":[]}';
  });
  await of.list(signal);
  await of.pull('r.io/a@sha256:1', undefined, signal);
  expect(limits).toEqual({ images: 60_000, pull: 1_800_000 });
});

test.each<[unknown, string]>([
  [
    new OsCommandError(['crictl', 'images'], 'not installed', { code: 'ENOENT', stderr: '' }),
    'crictl is not installed on the node; images can only be pinned with it',
  ],
  // What the command itself says was not installed.
  [
    new OsCommandError(['crictl', 'pull'], 'exit code 1', { exitCode: 1, stderr: 'runc: not installed' }),
    'crictl pull: exit code 1\nrunc: not installed',
  ],
  [
    new OsCommandError(['crictl', 'pull'], 'took longer than 5 s', { stderr: '' }),
    'crictl pull: took longer than 5 s',
  ],
  [new Error('not installed'), 'not installed'],
  ['text', 'text'],
])('what prevented it is said in words: %s', (error, expected) => {
  expect(whyOf(error)).toBe(expected);
});
