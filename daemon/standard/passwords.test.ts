import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PasswordError, readPasswordFields } from './passwords.ts';

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
