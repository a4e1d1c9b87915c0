import { expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import type { RunOsCommand } from '../os/os-command.ts';
import { chpasswd } from './chpasswd.ts';

const signal = deadline(30_000);
const HASHES = new Map([
  ['core', '$y$j9T$a'],
  ['admin', '*'],
]);

/** @returns each command that was run, with what it read. */
async function ran(
  root: string,
  fields: ReadonlyMap<string, string>,
  ...options: Parameters<typeof chpasswd> extends [unknown, ...infer Rest] ? Rest : never
) {
  const commands: { readonly command: readonly string[]; readonly input: string | undefined }[] = [];
  const run: RunOsCommand = async (command, { input }) => {
    commands.push({ command, input });
    return '';
  };
  await chpasswd(run, ...options)(root, fields, signal);
  return commands;
}

test('hashes go through standard input, all in one command, for the tree where the host sees it', async () => {
  expect(await ran('/host', HASHES, { commandPath: (place) => place.replace(/^\/host/, '') || '/' })).toEqual(
    [{ command: ['chpasswd', '--encrypted', '--root', '/'], input: 'core:$y$j9T$a\nadmin:*\n' }],
  );
});

test('the lock of passwd(1) is waited for as long as that may take', async () => {
  const limits: number[] = [];
  const run: RunOsCommand = async (_command, { timeoutMs }) => {
    limits.push(timeoutMs);
    return '';
  };
  await chpasswd(run)('/host', HASHES, signal);
  expect(limits).toEqual([60_000]);
});

test('without any, nothing is run', async () => {
  expect(await ran('/host', new Map())).toEqual([]);
});

test.each([
  ['/sysroot/ostree/deploy/fcos/deploy/a.0', undefined, '/sysroot'],
  ['/physical/ostree/deploy/fcos/deploy/a.0', '/physical', '/physical'],
])(
  'for a deployment, %s, the physical root is made writable in mounts of the command’s own',
  async (root, sysroot, expected) => {
    const [each] = await ran(root, HASHES, sysroot === undefined ? {} : { sysroot });
    const { command = [], input } = each ?? {};
    expect(command.slice(0, 6)).toEqual(['unshare', '--mount', '--propagation=private', '--', 'sh', '-c']);
    expect(command.slice(7)).toEqual([expected, 'chpasswd', '--encrypted', '--root', root]);
    expect(input).toBe('core:$y$j9T$a\nadmin:*\n');
  },
);

test('a tree beside the physical root is no deployment', async () => {
  const [each] = await ran('/sysroot-of-another', HASHES);
  expect(each?.command).toEqual(['chpasswd', '--encrypted', '--root', '/sysroot-of-another']);
});
