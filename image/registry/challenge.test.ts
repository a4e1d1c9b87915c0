import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Challenge, parseChallenges } from './challenge.ts';

const bearer = (more: Partial<Extract<Challenge, { scheme: 'bearer' }>> = {}): Challenge => ({
  scheme: 'bearer',
  realm: 'https://a.io/token',
  scopes: [],
  ...more,
});

test.each<[string, Challenge[]]>([
  ['', []],
  ['Basic realm="r"', [{ scheme: 'basic' }]],
  ['basic', [{ scheme: 'basic' }]],
  ['Bearer realm="https://a.io/token"', [bearer()]],
  [
    'Bearer realm="https://a.io/token",service="s",scope="repository:os:pull,push"',
    [bearer({ service: 's', scopes: ['repository:os:pull,push'] })],
  ],
  [
    'Bearer realm="https://a.io/token", scope="repository:a:pull repository:b:pull"',
    [bearer({ scopes: ['repository:a:pull', 'repository:b:pull'] })],
  ],
  ['BEARER Realm = "https://a.io/token" , Service=s', [bearer({ service: 's' })]],
  ['Bearer realm="https://a.io/token",service="a \\"b\\", Basic"', [bearer({ service: 'a "b", Basic' })]],
  ['Basic realm="r", Bearer realm="https://a.io/token"', [{ scheme: 'basic' }, bearer()]],
  ['Bearer realm="https://a.io/token", Basic realm="r"', [bearer(), { scheme: 'basic' }]],
  ['Negotiate, Basic realm="r"', [{ scheme: 'basic' }]],
  ['Negotiate YWJj==, Basic realm="r"', [{ scheme: 'basic' }]],
  ['Digest realm="r", nonce="n", Basic', [{ scheme: 'basic' }]],
  ['Bearer realm="nowhere"', []],
  ['Bearer', []],
  ['Basic realm="r", "?', [{ scheme: 'basic' }]],
])('%j', (header, challenges) => {
  expect(parseChallenges(header)).toEqual(challenges);
});

test('whatever the header, it is read to an end', () => {
  const piece = fc.constantFrom('Basic', 'Bearer', 'realm', '=', '"', ',', ' ', 'https://a.io', '\\', 'ü');
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((pieces) => pieces.join('')),
      ),
      (header) => {
        for (const challenge of parseChallenges(header))
          expect(['basic', 'bearer']).toContain(challenge.scheme);
      },
    ),
  );
});

test('a realm, a service and scopes come through quoting as they were', () => {
  const text = fc.string({ unit: 'grapheme-ascii' });
  fc.assert(
    fc.property(text, (service) => {
      const quoted = service.replace(/["\\]/g, '\\$&');
      const header = `Bearer realm="https://a.io/token",service="${quoted}", Basic`;
      expect(parseChallenges(header)).toEqual([bearer({ service }), { scheme: 'basic' }]);
    }),
  );
});
