import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { RecordError, readRecord, removeRecord, writeRecord } from './durable-json.ts';

const Schema = z.object({ version: z.literal(1) });
const record = { version: 1 } as const;

let directory: string;
let file: string;
beforeEach(async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'durable-'));
  onTestFinished(async () => {
    await chmod(root, 0o700);
    await rm(root, { recursive: true });
  });
  directory = path.join(root, 'state');
  file = path.join(directory, 'record.json');
});

test('a record is read as it was written, by root alone, and nothing else is left beside it', async () => {
  await writeRecord(file, record);
  await writeRecord(file, record);
  expect(await readRecord(file, Schema)).toEqual(record);
  expect(await readdir(directory)).toEqual(['record.json']);
  expect([(await stat(directory)).mode & 0o777, (await stat(file)).mode & 0o777]).toEqual([0o700, 0o600]);
});

test('where there is none, there is none', async () => {
  expect(await readRecord(file, Schema)).toBeUndefined();
});

test('one that can not be read is not taken for none', async () => {
  await mkdir(file, { recursive: true });
  await expect(readRecord(file, Schema)).rejects.toThrow('EISDIR');
});

test.each([
  ['of an unknown version', '{"version":"$6$secret"}'],
  ['of an earlier version', '{"version":0}'],
  ['no JSON', '{"version":1,"hash":"$6$secret'],
])('%s is no record, and is quoted nowhere', async (_what, text) => {
  await mkdir(directory);
  await writeFile(file, text);
  const failed = await readRecord(file, Schema).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(RecordError);
  expect((failed as Error).message).toBe(`${file}: not a record that this version of the daemon can read`);
  expect(JSON.stringify([String(failed), (failed as Error).cause])).not.toContain('secret');
});

test.each([
  ['names its version', Schema],
  ['names none so far', z.object({})],
])('one that %s is refused when a later version wrote it, with what to do', async (_what, schema) => {
  await mkdir(directory);
  await writeFile(file, '{"version":2,"hash":"$6$secret"}');
  const failed = await readRecord(file, schema).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(RecordError);
  expect((failed as Error).message).toBe(
    `${file}: a later version of Shale wrote this record (version 2; this daemon reads version 1). Install that version of Shale again, or a later one`,
  );
  expect((failed as Error).cause).toBeUndefined();
});

test('a write that fails leaves the old record, and no other file', async () => {
  await writeRecord(file, record);
  const loop: Record<string, unknown> = {};
  loop['self'] = loop;
  await expect(writeRecord(file, loop)).rejects.toThrow(TypeError);
  expect(await readdir(directory)).toEqual(['record.json']);
  expect(await readFile(file, 'utf8')).toBe('{"version":1}');
});

test('one that is not known to be there is removed', async () => {
  await writeRecord(file, record);
  await removeRecord(file);
  expect(await readRecord(file, Schema)).toBeUndefined();
  await removeRecord(file);
  // Not even its directory is there.
  await removeRecord(path.join(directory, 'none/record.json'));
});

test('one that can not be removed is not taken for removed', async () => {
  await mkdir(path.join(file, 'child'), { recursive: true });
  await expect(removeRecord(file)).rejects.toThrow();
  await writeFile(path.join(directory, 'plain'), '');
  await expect(removeRecord(path.join(directory, 'plain/record.json'))).rejects.toThrow('ENOTDIR');
});
