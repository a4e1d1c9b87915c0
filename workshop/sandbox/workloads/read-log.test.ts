import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { LogOptions } from '@shale/apiserver/logs/log-options.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LogPlace, readLog } from './read-log.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-log-'));
});
afterAll(() => rm(dir, { recursive: true }));

const NONE = { follow: false, timestamps: false, previous: false };
const AT = Date.parse('2026-01-01T00:00:00Z');
const json = (second: number) =>
  `{"level":"info","time":"${new Date(AT + second * 1000).toISOString()}","msg":"m"}\n`;
const TEXT = `${json(0)}at x.ts\n${json(5)}end`;

async function readWhole(place: LogPlace, options: LogOptions): Promise<string> {
  let text = '';
  for await (const chunk of readLog(place, options, new AbortController().signal)) text += chunk;
  return text;
}

async function logged(text: string, options: object, from = 0): Promise<string> {
  const file = path.join(dir, 'log');
  await writeFile(file, text);
  return readWhole({ file, from }, { ...NONE, ...options });
}

describe('a log', () => {
  test.each<[string, object, string]>([
    ['has what there is, also a line without its end', {}, TEXT],
    ['has its last lines', { tailLines: 2 }, `${json(5)}end`],
    ['has no more lines than there are', { tailLines: 9 }, TEXT],
    ['has none of its last none', { tailLines: 0 }, ''],
    ['has what came since a time', { since: new Date(AT + 1000) }, `${json(5)}end`],
    ['ends after so many bytes', { limitBytes: 12 }, TEXT.slice(0, 12)],
    [
      'begins lines with their time, or that of the line before',
      { timestamps: true, tailLines: 3 },
      `2026-01-01T00:00:00.000Z at x.ts\n2026-01-01T00:00:05.000Z ${json(5)}2026-01-01T00:00:05.000Z end`,
    ],
  ])('%s', async (_, options, expected) => {
    expect(await logged(TEXT, options)).toBe(expected);
  });

  test('has the time of lines that were written for the tools of pino, too', async () => {
    const line = `{"level":30,"time":${AT},"msg":"m"}\n`;
    expect(await logged(line, { timestamps: true })).toBe(`2026-01-01T00:00:00.000Z ${line}`);
  });

  test('begins where its pod did', async () => {
    expect(await logged(`of another\n${TEXT}`, {}, 'of another\n'.length)).toBe(TEXT);
  });

  test('ends where the next container started', async () => {
    const file = path.join(dir, 'of two');
    await writeFile(file, `one\n${TEXT}`);
    expect(await readWhole({ file, from: 0, to: 'one\n'.length }, NONE)).toBe('one\n');
  });

  test('of which there is no file is empty', async () => {
    expect(await readWhole({ file: path.join(dir, 'none'), from: 0 }, NONE)).toBe('');
  });
});

test('a log that is followed has each line as it comes, and what came last before it ended', async () => {
  const file = path.join(dir, 'followed');
  const end = new AbortController();
  const log = readLog({ file, from: 0 }, { ...NONE, follow: true }, end.signal);
  const first = log.next();
  await appendFile(file, 'one\ntw');
  expect((await first).value).toBe('one\n');
  const second = log.next();
  await appendFile(file, 'o\n');
  expect((await second).value).toBe('two\n');
  const last = log.next();
  await appendFile(file, 'three');
  end.abort();
  expect((await last).value).toBe('three');
  expect((await log.next()).done).toBe(true);
});
