import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  fieldsBefore,
  PasswordError,
  passwordDrifts,
  planPasswords,
  readPasswordFields,
} from './passwords.ts';

async function rootWith(files: Readonly<Record<string, string>>): Promise<string> {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-passwords-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'etc'));
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(root, 'etc', name), text);
  return root;
}

test('the fields are those of the users of passwd; one that shadow lacks has no password', async () => {
  const root = await rootWith({
    passwd: 'root:x:0:0:root:/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n',
    shadow: 'root:$6$hash:19000::::::\nold:$6$other:19000::::::\n',
  });
  const fields = await readPasswordFields(root);
  expect([...fields].filter(([user]) => user !== '')).toEqual([
    ['root', '$6$hash'],
    ['core', '*'],
  ]);
});

test('without a shadow file there is no place for a hash', async () => {
  const root = await rootWith({ passwd: 'root:x:0:0:root:/root:/bin/sh\n' });
  await expect(readPasswordFields(root)).rejects.toThrow(PasswordError);
  await expect(readPasswordFields(root)).rejects.toThrow('/etc/shadow: is not there');
});

const hashes = (given: Readonly<Record<string, string>>) => ({
  passwordHashes: new Map(Object.entries(given)),
});
const fields = new Map(Object.entries({ core: '$6$now', admin: '*', root: '!' }));

test('passwords are set where they differ, in the order of users, and those that no config has any more are locked', () => {
  const from = hashes({ root: '!', core: '$6$now', gone: '$6$gone' });
  expect(planPasswords({ from, to: hashes({ core: '$6$new', admin: '*', gone: '$6$new' }) }, fields)).toEqual(
    {
      changes: [
        { user: 'core', before: '$6$now', after: '$6$new' },
        { user: 'root', before: '!', after: '*' },
      ],
      foreign: [],
    },
  );
});

test('one that somebody else has set since is reported, if it would be overwritten', () => {
  const message = '/etc/shadow: user core has another password';
  const foreign = { path: '/etc/shadow', what: 'content', message };
  const plan = (written: string, coming: string) =>
    planPasswords({ from: hashes({ core: written }), to: hashes({ core: coming }) }, fields).foreign;
  expect(plan('$6$before', '$6$new')).toEqual([foreign]);
  expect(plan('$6$before', '$6$now')).toEqual([]);
  expect(planPasswords({ from: hashes({}), to: hashes({ core: '$6$new' }) }, fields).foreign).toEqual([]);
});

test.each(['$6$a:b', '$6$a b', '$6$a\nroot', '$6$ä'])('%j is no hash, and is not quoted', (hash) => {
  const plan = () => planPasswords({ from: hashes({}), to: hashes({ core: hash }) }, fields);
  expect(plan).toThrow(PasswordError);
  expect(plan).toThrow('password hash of user core: has a colon');
  expect(plan).not.toThrow('$6$');
});

test('a password has drifted if the node knows the user and has another one', () => {
  expect(passwordDrifts(hashes({ core: '$6$other', admin: '*', unknown: '$6$a' }), fields)).toEqual([
    { path: '/etc/shadow', what: 'content', message: '/etc/shadow: user core has another password' },
  ]);
});

test('only passwords that are still as they were set are restored', () => {
  const changes = [
    { user: 'core', before: '$6$old', after: '$6$now' },
    { user: 'admin', before: '$6$old', after: '$6$now' },
  ];
  expect(fieldsBefore(changes, fields)).toEqual(new Map([['core', '$6$old']]));
});

test('a tree without users has no fields', async () => {
  expect((await readPasswordFields(await rootWith({ shadow: 'root:*:::::::\n' }))).size).toBe(0);
});
