import { describe, expect, it } from 'vitest';
import { parseBootedNote } from './booted-note.ts';
import { GVariantError } from './gvariant.ts';

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

describe('parseBootedNote', () => {
  it.skipIf(process.arch === 's390x')('reads which directory was booted', () => {
    expect(parseBootedNote(WITH_COMPOSEFS)).toEqual({ dev: 64_769n, ino: 138_412_034n });
  });

  it('takes an empty file, which older ones leave, for nothing said', () => {
    expect(parseBootedNote(new Uint8Array())).toBeUndefined();
  });

  it('refuses what was cut off at any byte, and never reads past the end', () => {
    for (let length = 1; length < WITH_COMPOSEFS.length; length += 1) {
      try {
        const read = parseBootedNote(WITH_COMPOSEFS.subarray(0, length));
        if (read !== undefined) expect(read.dev).toBeTypeOf('bigint');
      } catch (error) {
        if (!(error instanceof GVariantError || error instanceof TypeError)) throw error;
      }
    }
  });
});
