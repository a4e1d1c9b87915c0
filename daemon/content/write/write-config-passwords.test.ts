import { writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { emptyNodeConfig } from '../../../machineconfig/node-config.ts';
import { config, createTree } from '../../../test/fixtures/config-tree.ts';
import { readPasswordFields } from '../passwords.ts';

describe('passwords', () => {
  const withPassword = (hash: string) =>
    config('with-password', {}, { passwordHashes: new Map([['core', hash]]) });
  const users = async () => {
    const tree = await createTree();
    await writeFile(tree.at('etc/passwd'), 'core:x:1:1::/:\nroot:x:0:0::/:\n');
    await writeFile(tree.at('etc/shadow'), 'core:*:1::::::\nroot:*:1::::::\n');
    return { ...tree, password: async () => (await readPasswordFields(tree.target.root)).get('core') };
  };

  test('are set, changed, and gone when no config has one', async () => {
    const { write, password } = await users();
    expect(await write(emptyNodeConfig, withPassword('$6$a'))).toEqual({
      written: ['/etc/shadow'],
      removed: [],
    });
    expect(await password()).toBe('$6$a');
    expect(await write(withPassword('$6$a'), withPassword('$6$a'))).toEqual({ written: [], removed: [] });
    await write(withPassword('$6$a'), emptyNodeConfig);
    expect(await password()).toBe('*');
  });

  test('that were set are restored when the write fails afterwards', async () => {
    const { write, password } = await users();
    const relabel = () => Promise.reject(new Error('no policy'));
    await expect(write(emptyNodeConfig, withPassword('$6$a'), { target: { relabel } })).rejects.toThrow(
      'no policy',
    );
    expect(await password()).toBe('*');
  });

  test('that somebody else has set are refused, unless forced', async () => {
    const { write, password, at } = await users();
    await write(emptyNodeConfig, withPassword('$6$a'));
    await writeFile(at('etc/shadow'), 'core:$6$own:1::::::\nroot:*:1::::::\n');
    await expect(write(withPassword('$6$a'), withPassword('$6$b'))).rejects.toThrow(
      'user core has another password',
    );
    expect(await password()).toBe('$6$own');
    await write(withPassword('$6$a'), withPassword('$6$b'), { force: true });
    expect(await password()).toBe('$6$b');
  });
});
