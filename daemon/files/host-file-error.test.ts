import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { hasCode, namingFile } from './host-file-error.ts';

const missing = () => readFile('/nonexistent/of-the-daemon');

test("an error of the system has the host's name of the file, that of the innermost operation", async () => {
  const failure = namingFile('/etc/outer', () => namingFile('/etc/inner', missing));
  await expect(failure).rejects.toMatchObject({ name: 'HostFileError', code: 'ENOENT' });
  await expect(failure).rejects.toThrow(/^\/etc\/inner: ENOENT/);
  const error: unknown = await failure.catch((caught: unknown) => caught);
  expect([hasCode(error, 'EACCES', 'ENOENT'), hasCode(error, 'EACCES')]).toEqual([true, false]);
});

test('any other error is thrown as it is', async () => {
  const other = Object.assign(new Error('of another kind'), { code: 'ERR_OTHER' });
  await expect(namingFile('/etc/file', () => Promise.reject(other))).rejects.toBe(other);
  expect(hasCode('ENOENT', 'ENOENT')).toBe(false);
});
