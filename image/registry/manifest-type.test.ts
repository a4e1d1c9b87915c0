import { expect, test } from 'vitest';
import { manifestType } from './manifest-type.ts';

const OCI = 'application/vnd.oci.image';
const DOCKER = 'application/vnd.docker.distribution.manifest';

test.each<[why: string, header: string | undefined, body: unknown, type: string]>([
  ['the header says it', `${OCI}.index.v1+json; charset=utf-8`, {}, `${OCI}.index.v1+json`],
  ['the header says it in capitals', `${DOCKER.toUpperCase()}.v2+json`, {}, `${DOCKER}.v2+json`],
  ['the manifest says it', 'text/plain', { mediaType: `${DOCKER}.v2+json` }, `${DOCKER}.v2+json`],
  ['it has manifests', undefined, { manifests: [] }, `${OCI}.index.v1+json`],
  ["its config is OCI's", '', { config: { mediaType: `${OCI}.config.v1+json` } }, `${OCI}.manifest.v1+json`],
  [
    "its config is Docker's",
    'application/json',
    { mediaType: '', config: { mediaType: 'application/vnd.docker.container.image.v1+json' } },
    `${DOCKER}.v2+json`,
  ],
])('a manifest is known where %s', (_why, header, body, type) => {
  expect(manifestType(header, Buffer.from(JSON.stringify(body)))).toBe(type);
});

test.each(['', '{', 'null', '5', '"text"', '[]', '{}', '{"config":null}', '{"config":{"mediaType":1}}'])(
  'what is no manifest keeps the type that was sent with it: %s',
  (body) => {
    expect(manifestType('text/html', Buffer.from(body))).toBe('text/html');
    expect(manifestType(undefined, Buffer.from(body))).toBe('');
  },
);
