import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Digest } from '../api/references.ts';
import { formatReference, manifestKey, parseReference, type Reference } from './reference.ts';

const digest = `sha256:${'a'.repeat(64)}`;

describe('parseReference', () => {
  test.each([
    ['r.io/os:1', { registry: 'r.io', repository: 'os', tag: '1' }],
    [`r.io:5000/a/b@${digest}`, { registry: 'r.io:5000', repository: 'a/b', digest }],
    [`r.io/a:t@${digest}`, { registry: 'r.io', repository: 'a', tag: 't', digest }],
    ['localhost/a', { registry: 'localhost', repository: 'a' }],
    ['127.0.0.1:5000/a/b_c-d', { registry: '127.0.0.1:5000', repository: 'a/b_c-d' }],
    ['[::1]:5000/a', { registry: '[::1]:5000', repository: 'a' }],
    ['[2001:db8::1]/a', { registry: '[2001:db8::1]', repository: 'a' }],
    // No repository has a capital letter, so it is a host's.
    ['Registry/a', { registry: 'Registry', repository: 'a' }],
    ['registry:65535/a', { registry: 'registry:65535', repository: 'a' }],
    ['docker.io/debian', { registry: 'docker.io', repository: 'debian' }],
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
    ['r.io:/a', /no host/],
    ['r.io:0/a', /no host/],
    ['r.io:65536/a', /no host/],
    ['-r.io/a', /no host/],
    ['r..io/a', /no host/],
    ['r.1/a', /no host/],
    ['256.1.1.1/a', /no host/],
    ['[::1/a', /no host/],
    ['[::1::2]/a', /no host/],
    ['::1/a', /no host/],
    ['https://r.io/a', /no host/],
    ['r.io/a\n', /no repository/],
    ['r.io/a:t:u', /no tag/],
    [`r.io/a:${'t'.repeat(129)}`, /no tag/],
    [`r.io/a@sha512:${'a'.repeat(128)}`, /not a digest/],
    [`r.io/a@${digest.toUpperCase()}`, /not a digest/],
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

const label = fc.stringMatching(/^[A-Za-z0-9]([A-Za-z0-9-]{0,5}[A-Za-z0-9])?$/);
/** Of a host alone: not a number, and no punycode, which would have to be right. */
const name = label.filter((text) => !/^(\d+|0x[0-9a-f]*)$|^xn--/i.test(text));
const domain = fc
  .array(label, { minLength: 2, maxLength: 4 })
  .map((labels) => labels.join('.'))
  .filter((text) => !/(^|\.)(\d+|0x[0-9a-f]*)$|xn--/i.test(text));
const port = fc.integer({ min: 1, max: 65_535 }).map((number) => `:${number}`);
const address = fc.oneof(
  fc.ipV4(),
  fc
    .ipV6()
    // No container runtime takes the form that ends in an IPv4 address (distribution/reference, regexp.go).
    .filter((text) => !text.includes('.'))
    .map((text) => `[${text}]`),
  domain,
  fc.constant('localhost'),
);
const registry = fc.oneof(
  fc.tuple(address, fc.option(port, { nil: '' })).map((parts) => parts.join('')),
  fc.tuple(name, port).map((parts) => parts.join('')),
  name.filter((text) => /[A-Z]/.test(text)),
);
const part = fc.stringMatching(/^[a-z0-9]{1,4}((\.|_|__|-{1,3})[a-z0-9]{1,3}){0,2}$/);
const repository = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
const reference: fc.Arbitrary<Reference> = fc.record(
  {
    registry,
    repository,
    tag: fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/),
    digest: fc.stringMatching(/^sha256:[a-f0-9]{64}$/).map((text) => text as Digest),
  },
  { requiredKeys: ['registry', 'repository'] },
);

describe('any reference', () => {
  test('is read as it was written, part by part', () => {
    fc.assert(
      fc.property(reference, (written) => {
        expect(parseReference(formatReference(written))).toEqual(written);
      }),
    );
  });

  test('is no reference any more with a character in it that has no place there', () => {
    const stray = fc.constantFrom(' ', '\n', '\0', '\\', '%', '?', '#', 'é', '\u202e');
    fc.assert(
      fc.property(reference, stray, fc.nat(), (written, character, at) => {
        const text = formatReference(written);
        const index = at % (text.length + 1);
        const broken = text.slice(0, index) + character + text.slice(index);
        expect(() => parseReference(broken)).toThrow(TypeError);
      }),
    );
  });

  test('names a path of its registry that leads nowhere else', () => {
    fc.assert(
      fc.property(reference, (written) => {
        const path = `/v2/${written.repository}/manifests/${manifestKey(written)}`;
        const url = new URL(path, `https://${written.registry}`);
        expect(url.pathname).toBe(path);
        expect([url.username, url.password, url.search, url.hash]).toEqual(['', '', '', '']);
      }),
    );
  });
});

test('a digest is asked for rather than a tag', () => {
  expect(manifestKey(parseReference(`r.io/a:t@${digest}`))).toBe(digest);
  expect(manifestKey(parseReference('r.io/a:t'))).toBe('t');
  expect(manifestKey(parseReference('r.io/a'))).toBe('latest');
});
