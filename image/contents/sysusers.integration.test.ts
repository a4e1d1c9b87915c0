/** Only systemd-sysusers itself can say which numbers its declarations get. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { sysusersAccounts, withDeclared } from './sysusers.ts';

const DECLARED = `
# By number, by pair, by the group of another line, and by nothing.
g wheel 10
u tss 59 "TPM software stack" /dev/null
u locked 61:wheel "Locked"
u "quoted" 63
u own 64:wheel
u chrony -
g bare -
u tss 99
m own wheel
r - 500-900
`;

test('numbers are those that systemd-sysusers gives, and it chooses the ones that are allocated', async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'sysusers-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'etc'));
  await mkdir(path.join(root, 'usr/lib/sysusers.d'), { recursive: true });
  await writeFile(path.join(root, 'usr/lib/sysusers.d/a.conf'), DECLARED);
  await execa('systemd-sysusers', [`--root=${root}`]);
  const accounts = async (name: string) => {
    const lines = (await readFile(path.join(root, 'etc', name), 'utf8')).trim().split('\n');
    return Object.fromEntries(
      lines.map((line) => line.split(':')).map(([who = '', , id]) => [who, Number(id)]),
    );
  };
  const [users, groups] = [await accounts('passwd'), await accounts('group')];
  const declared = withDeclared({ users: new Map(), groups: new Map() }, sysusersAccounts(DECLARED));
  const known = { ...users, ...groups };
  expect(declared.allocated.every((name) => name in known)).toBe(true);
  const fixed = (all: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !declared.allocated.includes(name)));
  expect(Object.fromEntries(declared.users)).toEqual(fixed(users));
  expect(Object.fromEntries(declared.groups)).toEqual(fixed(groups));
});
