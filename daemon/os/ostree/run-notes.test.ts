import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { GVariantError, readDictionary, readStrings } from './gvariant.ts';
import { parseBootedNote, parseStagedNote, readBootedNote } from './run-notes.ts';

/** /run/ostree/staged-deployment as ostree 2022.7 (Debian 12) wrote it after `ostree admin deploy --stage`. */
const RECORDED = Buffer.from(
  [
    'dGFyZ2V0AABuYW1lAAAAADI2ZGRjNWY1MTZiMmExOGY1MmQxZGJhMjBkNzRlYjllMWIxZjJmMmI4YjQwNmJlZWIzNmIxZjE3OTk0',
    'MmRhOTguMgAAcwUAAG9zbmFtZQAAc3RvY2sAAHMHAAAAAAAAAGJvb3Rjc3VtAAAAAAAAAAA3YzA3MTc3ZjlmNGNiNDlmYjY2MjBl',
    'MmQ1MThhM2Y0NDMwYTEwNWEyYTA0MGRiZGIxMDQzYjYxNWIzNTBkMDNjAABzCU5hvABhe3N2fQcAAG1lcmdlLWRlcGxveW1lbnQA',
    'AAAAAAAAAG5hbWUAAAAAMjZkZGM1ZjUxNmIyYTE4ZjUyZDFkYmEyMGQ3NGViOWUxYjFmMmYyYjhiNDA2YmVlYjM2YjFmMTc5OTQy',
    'ZGE5OC4wAABzBQAAb3NuYW1lAABzdG9jawAAcwcAAAAAAAAAYm9vdGNzdW0AAAAAAAAAADdjMDcxNzdmOWY0Y2I0OWZiNjYyMGUy',
    'ZDUxOGEzZjQ0MzBhMTA1YTJhMDQwZGJkYjEwNDNiNjE1YjM1MGQwM2MAAHMJTmG8AGF7c3Z9EQAAa2FyZ3MAAAByb290PUxBQkVM',
    'PXJvb3QAZHluZGJnPSJmaWxlIHguYyArcCIAECUAYXMGzgCuAeMB',
  ].join(''),
  'base64',
);

describe('parseStagedNote', () => {
  it('reads what ostree wrote', () => {
    expect(parseStagedNote(RECORDED)).toEqual({
      id: '26ddc5f516b2a18f52d1dba20d74eb9e1b1f2f2b8b406beeb36b1f179942da98.2',
      osName: 'stock',
      kernelArguments: ['root=LABEL=root', 'dyndbg="file x.c +p"'],
      isLocked: false,
    });
  });

  it('refuses what was cut off at any byte, and never reads past the end', () => {
    for (let length = 1; length < RECORDED.length; length += 1) {
      expect(() => parseStagedNote(RECORDED.subarray(0, length))).toThrow();
    }
  });

  it.each(['26ddc5f5', 'root=LABEL=root'])('reads other words in its place: %s', (word) => {
    const note = Buffer.from(RECORDED);
    const isId = word === '26ddc5f5';
    note.write(isId ? '../../..' : 'ostree=/boot.1/', note.indexOf(word));
    if (isId)
      expect(() => parseStagedNote(note)).toThrow(
        /target: expected <commit>\.<serial>, got "\.\.\/\.\.\/\.\./,
      );
    else expect(parseStagedNote(note).kernelArguments).toEqual(['dyndbg="file x.c +p"']);
  });

  it('says what is missing', () => {
    expect(() => parseStagedNote(new Uint8Array())).toThrow('target: expected a a{sv}, got nothing');
  });
});

describe('readStrings', () => {
  it.each([
    ['none', '', []],
    ['empty ones', '\0\0\x01\x02', ['', '']],
    ['more than one', 'a\0bc\0\x02\x05', ['a', 'bc']],
  ])('%s', (_name, bytes, expected) => {
    expect(readStrings(Buffer.from(bytes, 'latin1'))).toEqual(expected);
  });

  it('reads wide offsets', () => {
    const long = 'x'.repeat(300);
    const bytes = Buffer.from(`${long}\0\x2d\x01`, 'latin1');
    expect(readStrings(bytes)).toEqual([long]);
  });

  it.each([
    ['ends out of order', 'a\0b\0\x04\x02'],
    ['a table outside', 'a\0\x09'],
    ['no end of string', 'ab\x02'],
  ])('refuses %s', (_name, bytes) => {
    expect(() => readStrings(Buffer.from(bytes, 'latin1'))).toThrow(GVariantError);
  });
});

describe('readDictionary', () => {
  it('refuses an entry without a value', () => {
    expect(() => readDictionary(Buffer.from('a\0\x02\x03', 'latin1'))).toThrow(GVariantError);
  });
});

/** What GLib writes for the keys that ostree-prepare-root leaves with composefs. */
const WITH_COMPOSEFS = Buffer.from(
  [
    '636f6d706f736566730000000000000001',
    '00620a00000000636f6d706f736566732e7665726974790000',
    '00000000000000006211000000006261636b696e672d726f6f742d6465766963652d696e6f6465',
    '0000000000000001fd000000000000020040080000000000287474291a0000',
    '737973726f6f742d726f0000000000000100620b14346e84',
  ].join(''),
  'hex',
);

test.skipIf(process.arch === 's390x')(
  'the directory of what is booted is read from the note, where there is one',
  async () => {
    const root = await mkdtemp(path.join(tmpdir(), 'run-notes-'));
    onTestFinished(() => rm(root, { recursive: true }));
    expect(await readBootedNote(root)).toMatchObject({ deployment: undefined, image: 'none' });
    await mkdir(path.join(root, 'run'));
    await writeFile(path.join(root, 'run/ostree-booted'), WITH_COMPOSEFS);
    expect(await readBootedNote(root)).toEqual(parseBootedNote(WITH_COMPOSEFS));
  },
);

describe('parseBootedNote', () => {
  it.skipIf(process.arch === 's390x')('reads which directory was booted', () => {
    expect(parseBootedNote(WITH_COMPOSEFS).deployment).toEqual({ dev: 64_769n, ino: 138_412_034n });
  });

  it('takes an empty file, which older ones leave, for nothing said', () => {
    expect(parseBootedNote(new Uint8Array()).deployment).toBeUndefined();
  });

  it('refuses what was cut off at any byte, and never reads past the end', () => {
    for (let length = 1; length < WITH_COMPOSEFS.length; length += 1) {
      try {
        const { deployment } = parseBootedNote(WITH_COMPOSEFS.subarray(0, length));
        if (deployment !== undefined) expect(deployment.dev).toBeTypeOf('bigint');
      } catch (error) {
        if (!(error instanceof GVariantError || error instanceof TypeError)) throw error;
      }
    }
  });
});

/** /run/ostree-booted as ostree 2026.4 wrote it for a soft reboot, whose root was a composefs. */
const AFTER_SOFT_REBOOT = Buffer.from(
  [
    'YmFja2luZy1yb290LWRldmljZS1pbm9kZQAAAAAAAAAA/gAAAAAAAI+IqQAAAAAAACh0dCkaAAByb290LnRyYW5zaWVudAAAAABiDwAA',
    'AAByb290LnRyYW5zaWVudC1ybwAAAAAAAAAAAGISAAAAAGNvbXBvc2VmcwAAAAAAAAABAGIKAAAAAGNvbXBvc2Vmcy52ZXJpdHkAAAAA',
    'AAAAAAAAYhEAAAAAc3lzcm9vdC1ybwAAAAAAAAEAYgs2TGyEpLw=',
  ].join(''),
  'base64',
);

describe('the image of the running root', () => {
  it.each([
    ['what ostree-prepare-root leaves', WITH_COMPOSEFS, 'composefs'],
    ['what a soft reboot leaves', AFTER_SOFT_REBOOT, 'composefs'],
    ['an empty file, which older ones leave', Buffer.of(), 'none'],
  ])('knows %s', (_name, bytes, expected) => {
    expect(parseBootedNote(bytes).image).toBe(expected);
  });

  it('knows a signed one', () => {
    const signed = Buffer.from('composefs.signed\0\0\0\0\0\0\0\0ab\0s\x11', 'latin1');
    const plain = Buffer.from('composefs\0\0\0\0\0\0\0\x01\0b\x0a', 'latin1');
    const padding = Buffer.alloc((8 - (plain.length % 8)) % 8);
    const both = Buffer.concat([plain, padding, signed]);
    expect(parseBootedNote(Buffer.concat([both, Buffer.of(plain.length, both.length)])).image).toBe(
      'signed composefs',
    );
  });
});

test('a note says whether files are verified by fs-verity', () => {
  const [yes, no] = [1, 0].map((value) =>
    // Key, padding to eight bytes, the boolean and its type; where the key ends, and where the entry ends.
    Buffer.from([...Buffer.from('composefs.verity\0'), ...Array(7).fill(0), value, 0, 0x62, 17, 28]),
  );
  expect(parseBootedNote(yes ?? Buffer.of()).verity).toBe(true);
  expect(parseBootedNote(no ?? Buffer.of()).verity).toBe(false);
  expect(parseBootedNote(Buffer.of()).verity).toBeUndefined();
});

test('a note says that /etc is transient by where it lies', () => {
  const entry = Buffer.from('transient-etc\0\0\0/run/ostree/transient-etc.a1\0\0s\x0e', 'latin1');
  expect(parseBootedNote(Buffer.concat([entry, Buffer.of(entry.length)])).isEtcTransient).toBe(true);
  for (const note of [WITH_COMPOSEFS, AFTER_SOFT_REBOOT, Buffer.of()]) {
    expect(parseBootedNote(note).isEtcTransient).toBe(false);
  }
});
