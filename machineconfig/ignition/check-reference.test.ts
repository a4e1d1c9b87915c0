import { describe, expect, test } from 'vitest';
import { parseIgnition } from './parse.ts';

/** @returns the paths of problems. */
function problems(minor: number, ignition: object, storage: object = {}): readonly string[] {
  const parsed = parseIgnition({ ignition: { version: `3.${minor}.0`, ...ignition }, storage });
  return parsed.ok ? [] : parsed.problems.map(({ path }) => path.replace('$.ignition.', ''));
}

const merged = (source: unknown, more: object = {}) => ({ config: { merge: [{ source, ...more }] } });

describe('a source that Ignition would fetch', () => {
  test.each([
    ['http://example.org:8080/a%20b', 0],
    ['HTTPS://user@example.org/a', 0],
    ['https://[::1]:443/', 0],
    ['http:opaque', 0],
    ['tftp://example.org/a', 0],
    ['s3://bucket/key', 0],
    ['s3://bucket/key?versionId=1', 0],
    ['data:,%7B%7D', 0],
    ['data:;base64,e30=', 0],
    ['gs://bucket/key', 2],
    ['arn:aws:s3:::bucket/key', 4],
    ['arn:aws:s3:us-west-1:123456789012:accesspoint/name/key', 4],
  ])('%s is taken from 3.%i on', (source, since) => {
    expect(problems(since, merged(source))).toEqual([]);
    if (since > 0) expect(problems(since - 1, merged(source))).toEqual(['config.merge[0].source']);
  });

  test.each([
    '',
    'example.org/a',
    'ftp://example.org/a',
    'oem:///a',
    'data:,{}',
    'data:;base64,e30',
    'DATA:,x',
    'http://example.org/%zz',
    'http://example.org:port/',
    'http://exa mple.org/',
    'http://[::1/',
    'https://example.org/\n',
    's3://bucket/key?versionId=',
    'arn:aws:s3:::bucket',
    'arn:aws:ec2:::bucket/key',
    'arn:aws:s3:us-west-1:123456789012:accesspoint/name',
    'arn:aws:s3',
  ])('%j is refused', (source) => {
    expect(problems(5, merged(source))).toEqual(['config.merge[0].source']);
    const certificateAuthorities = [{ source }];
    expect(problems(5, { security: { tls: { certificateAuthorities } } })).toEqual([
      'security.tls.certificateAuthorities[0].source',
    ]);
    const luks = [{ name: 'a', device: '/dev/a', keyFile: { source } }];
    expect(problems(5, {}, { luks })).toEqual(source === '' ? [] : ['$.storage.luks[0].keyFile.source']);
  });

  test('none is needed to replace the config, as in Ignition', () => {
    expect(problems(5, { config: { replace: { source: '' } } })).toEqual([]);
    expect(problems(0, { config: { replace: {} } })).toEqual([]);
    expect(problems(5, { config: { replace: { source: 'x' } } })).toEqual(['config.replace.source']);
  });
});

test.each([
  [{ compression: 'gzip' }, []],
  [{ compression: 'xz' }, ['config.merge[0].compression']],
  [{ verification: { hash: 'md5-x' } }, ['config.merge[0].verification.hash']],
  [{ httpHeaders: [{ name: 'a', value: 'b' }] }, []],
])('%j beside a source has problems in %j', (more, expected) => {
  expect(problems(5, merged('https://example.org/a', more))).toEqual(expected);
});

test('only http has headers', () => {
  const httpHeaders = [{ name: 'a', value: 'b' }];
  expect(problems(5, merged('tftp://example.org/a', { httpHeaders }))).toEqual([
    'config.merge[0].httpHeaders',
  ]);
});

test('spec 2 is checked as the 3.0 that it becomes', () => {
  const append = [{ source: 'gs://bucket/key' }];
  const parsed = parseIgnition({ ignition: { version: '2.2.0', config: { append } } });
  expect(parsed).toMatchObject({ ok: false, problems: [{ path: '$.ignition.config.merge[0].source' }] });
});
