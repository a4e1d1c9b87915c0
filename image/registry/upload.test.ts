import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { ContentError } from './registry-error.ts';
import { uploadOf } from './upload.ts';

const at = { registry: 'r.io', repository: 'os' };
const answer = (headers: IncomingMessage['headers']) => ({ headers }) as IncomingMessage;

test.each([
  [undefined, 0],
  ['0', 0],
  ['1048576', 1_048_576],
  ['many', 0],
  ['1.5', 0],
  ['9007199254740992', 0],
])('an OCI-Chunk-Min-Length of %s is a smallest piece of %i bytes', (minimum, minPiece) => {
  const headers = {
    location: '/v2/1',
    ...(minimum === undefined ? {} : { 'oci-chunk-min-length': minimum }),
  };
  expect(uploadOf(at, answer(headers))).toEqual({ location: '/v2/1', minPiece });
});

test('an upload without a place is refused by the name of its repository', () => {
  expect(() => uploadOf(at, answer({}))).toThrow(ContentError);
  expect(() => uploadOf(at, answer({}))).toThrow(
    'r.io/os: the registry started an upload without a Location header',
  );
});
