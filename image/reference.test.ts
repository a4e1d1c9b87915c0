import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatReference, manifestKey, parseReference } from './reference.ts';

const digest = `sha256:${'a'.repeat(64)}`;

describe('parseReference', () => {
  test.each([
    ['r.io/os:1', { registry: 'r.io', repository: 'os', tag: '1' }],
    [`r.io:5000/a/b@${digest}`, { registry: 'r.io:5000', repository: 'a/b', digest }],
    [`r.io/a:t@${digest}`, { registry: 'r.io', repository: 'a', tag: 't', digest }],
    ['localhost/a', { registry: 'localhost', repository: 'a' }],
    ['127.0.0.1:5000/a/b_c-d', { registry: '127.0.0.1:5000', repository: 'a/b_c-d' }],
    ['[::1]:5000/a', { registry: '[::1]:5000', repository: 'a' }],
  ])('%s', (text, reference) => {
    expect(parseReference(text)).toEqual(reference);
    expect(formatReference(parseReference(text))).toBe(text);
  });

  test.each([
    ['', /no registry host/],
    ['ubuntu', /no registry host/],
    ['library/ubuntu', /no registry host/],
    ['r.io/', /no repository/],
    ['r.io/Upper', /no repository/],
    ['r.io/a//b', /no repository/],
    ['r.io/../a', /no repository/],
    ['r.io/a:', /no tag/],
    ['r.io/a:t@sha256:12', /not a digest/],
    [`r.io/a@${digest}@${digest}`, /more than one @/],
    ['user@r.io/a', /no registry host/],
    ['r_io.x/a', /no host/],
  ])('%j is refused', (text, why) => {
    expect(() => parseReference(text)).toThrow(why);
  });

  test('whatever the text, it is refused or comes back as it was', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        let parsed: ReturnType<typeof parseReference>;
        try {
          parsed = parseReference(text);
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError);
          return;
        }
        expect(formatReference(parsed)).toBe(text);
      }),
    );
  });
});

test('a digest is asked for rather than a tag', () => {
  expect(manifestKey(parseReference(`r.io/a:t@${digest}`))).toBe(digest);
  expect(manifestKey(parseReference('r.io/a:t'))).toBe('t');
  expect(manifestKey(parseReference('r.io/a'))).toBe('latest');
});
