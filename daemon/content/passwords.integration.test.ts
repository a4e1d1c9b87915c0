/** shadow files in a real tree, written by the host's chpasswd. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { chpasswd } from '../host/chpasswd.ts';
import { OsCommandError, osCommandRunner } from '../os/os-command.ts';
import { PasswordError, passwordDrifts, planPasswords, readPasswordFields } from './passwords.ts';

const hashes = (entries: Readonly<Record<string, string>>) => ({
  passwordHashes: new Map(Object.entries(entries)),
});
const none = hashes({});
const fields = new Map([
  ['core', '!'],
  ['other', '$6$other'],
]);

async function rootWith(files: Readonly<Record<string, string>>): Promise<string> {
  const root = await mkdtemp(path.join(tmpdir(), 'passwords-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'etc'));
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(root, 'etc', name), text);
  return root;
}
const accounts = {
  passwd: 'root:x:0:0::/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n',
  shadow: 'root:*:20000:0:99999:7:::\ncore:!:20000:0:99999:7:::\n',
};

test.each<[string, typeof none, typeof none, object]>([
  ['a hash for a user without a password', none, hashes({ core: '$6$a' }), { core: '$6$a' }],
  ['no hash any more', hashes({ other: '$6$other' }), none, { other: '*' }],
  ['the same hash', hashes({ other: '$6$other' }), hashes({ other: '$6$other' }), {}],
  ['a user whom the node does not know', none, hashes({ stranger: '$6$a' }), {}],
  ['a user in neither config', none, none, {}],
])('%s', (_name, from, to, wanted) => {
  const { changes, foreign } = planPasswords({ from, to }, fields);
  expect(Object.fromEntries(changes.map(({ user, after }) => [user, after]))).toEqual(wanted);
  expect(foreign).toEqual([]);
});

test('a password that somebody else has set since is told, by user and not by hash', () => {
  const { foreign } = planPasswords({ from: hashes({ other: '$6$was' }), to: none }, fields);
  expect(foreign.map(({ message }) => message)).toEqual(['/etc/shadow: user other has another password']);
  expect(passwordDrifts(hashes({ other: '$6$was' }), fields)).toEqual(foreign);
  expect(passwordDrifts(hashes({ other: '$6$other', stranger: '$6$a' }), fields)).toEqual([]);
});

test.each(['a:0:0', 'a\nroot:', 'a b', 'ä'])('%j is no hash', (hash) => {
  expect(() => planPasswords({ from: none, to: hashes({ core: hash }) }, fields)).toThrow(PasswordError);
  expect(() => planPasswords({ from: none, to: hashes({ core: hash }) }, fields)).not.toThrow(hash);
});

test('a tree without a shadow file takes no hash', async () => {
  const root = await rootWith({ passwd: accounts.passwd });
  await expect(readPasswordFields(root)).rejects.toThrow(PasswordError);
});

test('hashes are set in a tree, all or none, and no message has one', async () => {
  const root = await rootWith(accounts);
  const setPasswords = chpasswd(osCommandRunner());
  const signal = deadline(10_000);
  await setPasswords(root, new Map([['core', '$6$secret']]), signal);
  expect((await readPasswordFields(root)).get('core')).toBe('$6$secret');
  const wrong = new Map([
    ['core', '$6$hidden'],
    ['stranger', '$6$hidden'],
  ]);
  const failed = await setPasswords(root, wrong, signal).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(OsCommandError);
  expect(String(failed)).toContain('stranger');
  expect(JSON.stringify([failed, (failed as Error).cause, String((failed as Error).cause)])).not.toContain(
    'hidden',
  );
  expect((await readFile(path.join(root, 'etc/shadow'), 'utf8')).match(/\$6\$\w+/g)).toEqual(['$6$secret']);
});
