import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { extract, type Header } from 'tar-stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findSecret, secretFile, writeBuildContext } from './build-context.ts';

async function entriesOf(archive: Buffer): Promise<{ header: Header; content: string }[]> {
  const entries: { header: Header; content: string }[] = [];
  const reader = extract();
  Readable.from([archive]).pipe(reader);
  for await (const entry of reader) {
    entries.push({ header: entry.header, content: (await buffer(entry)).toString() });
  }
  return entries;
}

const secret = (id: string, value: string) => ({ id, value: Buffer.from(value) });
const file = (name: string, mode = 0o644) =>
  ({ type: 'file', path: name, mode, uid: 7, gid: 7, content: Buffer.from(`of ${name}`) }) as const;

describe('a build context', () => {
  const context = {
    containerfile: 'FROM configs\n',
    tree: [
      file('/etc/b'),
      file('/etc/a', 0o755),
      { type: 'directory', path: '/etc', mode: 0o755, uid: 0, gid: 0 } as const,
    ],
    secrets: [secret('s/a', 'one'), secret('s/b', 'two')],
  };

  test('has the Containerfile, the secrets that no COPY reaches, and the sorted files of the config', async () => {
    const entries = await entriesOf(await writeBuildContext(context));
    expect(entries.map(({ header, content }) => [header.name, header.mode, content])).toEqual([
      ['Containerfile', 0o644, 'FROM configs\n'],
      ['.containerignore', 0o644, '.shale-secret-*\n'],
      ['.dockerignore', 0o644, '.shale-secret-*\n'],
      [secretFile(0), 0o600, 'one'],
      [secretFile(1), 0o600, 'two'],
      ['machineconfig/etc/a', 0o755, 'of /etc/a'],
      ['machineconfig/etc/b', 0o644, 'of /etc/b'],
    ]);
    expect(entries.every(({ header }) => header.uid === 0 && header.gid === 0)).toBe(true);
    expect(entries.every(({ header }) => header.mtime?.getTime() === 0)).toBe(true);
  });

  test('is the same for the same input', async () => {
    const other = { ...context, tree: context.tree.toReversed() };
    expect((await writeBuildContext(other)).equals(await writeBuildContext(context))).toBe(true);
  });
});

describe('a secret in a layer', () => {
  function layer(...pieces: (string | Buffer)[]): string {
    const dir = mkdtempSync(path.join(tmpdir(), 'shale-layer-'));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const name = path.join(dir, 'layer');
    writeFileSync(name, Buffer.concat(pieces.map((piece) => Buffer.from(piece))));
    return name;
  }
  const secrets = [
    secret('a/one', 'value-one\n'),
    secret('b/two', ' other-value-two '),
    secret('c/short', '1234567'),
  ];

  test.each<[string, (string | Buffer)[], string | undefined]>([
    ['is found', ['x value-one y'], 'a/one'],
    ['is found without the blanks around it', ['other-value-two'], 'b/two'],
    ['at the end of the file is found', [Buffer.alloc(70_000), 'value-one'], 'a/one'],
    ['that is cut is not', ['value-on', 'x'], undefined],
    ['that is short stands in any file by chance', ['1234567'], undefined],
    ['is not in an empty file', [], undefined],
  ])('%s', async (_, pieces, id) => {
    expect(await findSecret(layer(...pieces), secrets)).toBe(id);
  });

  test('is found wherever the chunks of the file end', async () => {
    for (let before = 65_536 - 12; before <= 65_536 + 1; before += 1) {
      expect(await findSecret(layer(Buffer.alloc(before, 'x'), 'value-one', 'yy'), secrets)).toBe('a/one');
    }
  });

  test('a value of eight characters is looked for', async () => {
    expect(await findSecret(layer('--12345678--'), [secret('d/eight', '12345678')])).toBe('d/eight');
  });
});
