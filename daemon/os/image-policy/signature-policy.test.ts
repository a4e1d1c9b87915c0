import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseReference } from '../../../image/reference.ts';
import { evaluatePolicy, requirementsFor, scopesOf } from './signature-policy.ts';

const image = parseReference(`registry.example.com:5000/os/team/worker@sha256:${'1'.repeat(64)}`);
const accept = [{ type: 'insecureAcceptAnything' }];
const reject = [{ type: 'reject' }];
const signed = (more: object = { keyPath: '/etc/pki/shale.pub' }) => [{ type: 'sigstoreSigned', ...more }];
const policy = (docker: object, more: object = { default: reject }) =>
  JSON.stringify({ ...more, transports: { docker } });

test('the scopes of an image, the most specific first', () => {
  expect(scopesOf(image)).toEqual([
    `registry.example.com:5000/os/team/worker@sha256:${'1'.repeat(64)}`,
    'registry.example.com:5000/os/team/worker',
    'registry.example.com:5000/os/team',
    'registry.example.com:5000/os',
    'registry.example.com:5000',
    '*.example.com',
    '*.com',
    '',
  ]);
});

test('a text that is no policy has no requirements to tell', () => {
  expect(() => requirementsFor('{}', image)).toThrow('/etc/containers/policy.json is not a valid policy');
});

test('the most specific scope alone counts', () => {
  const scopes = scopesOf(image);
  fc.assert(
    fc.property(fc.subarray([...scopes], { minLength: 1 }), (some) => {
      const [first] = some;
      const docker = Object.fromEntries(
        scopes.filter((each) => some.includes(each)).map((each) => [each, each === first ? accept : reject]),
      );
      expect(evaluatePolicy(policy(docker), image).kind).toBe('allow');
      const opposite = Object.fromEntries(
        Object.keys(docker).map((each) => [each, each === first ? reject : accept]),
      );
      expect(evaluatePolicy(policy(opposite, { default: accept }), image).kind).toBe('reject');
    }),
  );
});

describe('an image is allowed', () => {
  const none = { kind: 'allow', signatures: [] };
  test.each<[string, string | undefined]>([
    ['where there is no policy', undefined],
    ['by default', JSON.stringify({ default: accept })],
    ['by its host', policy({ 'registry.example.com:5000': accept })],
    ['by its domain', policy({ '*.example.com': accept })],
    ['by the default of its transport', policy({ '': accept })],
  ])('%s', (_name, text) => {
    expect(evaluatePolicy(text, image)).toEqual(none);
  });

  test.each([
    ['a key in a file', { keyPath: '/k' }, [{ kind: 'file', path: '/k' }]],
    [
      'one of several files',
      { keyPaths: ['/k', '/l'] },
      [
        { kind: 'file', path: '/k' },
        { kind: 'file', path: '/l' },
      ],
    ],
    [
      'a key in the policy',
      { keyData: Buffer.from('PEM').toString('base64') },
      [{ kind: 'text', pem: 'PEM' }],
    ],
    [
      'one of several keys',
      { keyDatas: [Buffer.from('PEM').toString('base64')] },
      [{ kind: 'text', pem: 'PEM' }],
    ],
    [
      'its repository',
      { keyPath: '/k', signedIdentity: { type: 'matchRepository' } },
      [{ kind: 'file', path: '/k' }],
    ],
    [
      'its repository and digest',
      { keyPath: '/k', signedIdentity: { type: 'matchRepoDigestOrExact' } },
      [{ kind: 'file', path: '/k' }],
    ],
  ])('once it is signed by %s', (_name, more, keys) => {
    expect(evaluatePolicy(policy({ '': signed(more) }), image)).toEqual({
      kind: 'allow',
      signatures: [{ keys }],
    });
  });

  test('once all that must have signed it have', () => {
    const all = [...signed({ keyPath: '/a' }), ...accept, ...signed({ keyPath: '/b' })];
    expect(evaluatePolicy(policy({ '': all }), image)).toEqual({
      kind: 'allow',
      signatures: [{ keys: [{ kind: 'file', path: '/a' }] }, { keys: [{ kind: 'file', path: '/b' }] }],
    });
  });
});

describe('an image is rejected', () => {
  test.each<[string, string, RegExp]>([
    ['by default', JSON.stringify({ default: reject }), /is rejected .*policy\.json, default\)$/],
    [
      'by its repository',
      policy({ 'registry.example.com:5000/os/team/worker': reject }, { default: accept }),
      /scope registry\.example\.com:5000\/os\/team\/worker\)$/,
    ],
    ['beside what accepts it', policy({ '': [...accept, ...reject] }), /is rejected .*scope "" of docker\)$/],
    ['by another port', policy({ 'registry.example.com': accept }), /default/],
    [
      'by another transport',
      JSON.stringify({ default: reject, transports: { 'docker-daemon': { '': accept } } }),
      /default/,
    ],
    [
      'by what only looks like its repository',
      policy({ 'registry.example.com:5000/os/tea': accept }),
      /default/,
    ],
    [
      'for a GPG signature',
      policy({ '': [{ type: 'signedBy', keyType: 'GPGKeys', keyPath: '/k' }] }),
      /needs a GPG signature/,
    ],
    [
      'for a signed base layer',
      policy({ '': [{ type: 'signedBaseLayer', baseLayerIdentity: {} }] }),
      /signed base layer/,
    ],
    ['for Fulcio', policy({ '': signed({ fulcio: {} }) }), /by fulcio, which Shale does not verify/],
    [
      'for a log',
      policy({ '': signed({ keyPath: '/k', rekorPublicKeyPath: '/r' }) }),
      /by rekorPublicKeyPath/,
    ],
    ['for no key', policy({ '': signed({}) }), /exactly one of/],
    ['for two kinds of keys', policy({ '': signed({ keyPath: '/k', keyData: 'UEVN' }) }), /exactly one of/],
    [
      'for an exact tag',
      policy({ '': signed({ keyPath: '/k', signedIdentity: { type: 'matchExact' } }) }),
      /is matchExact/,
    ],
    [
      'for another identity',
      policy({
        '': signed({
          keyPath: '/k',
          signedIdentity: { type: 'exactRepository', dockerRepository: 'r.io/a' },
        }),
      }),
      /is exactRepository/,
    ],
  ])('%s', (_name, text, why) => {
    expect(evaluatePolicy(text, image)).toEqual({ kind: 'reject', why: expect.stringMatching(why) });
  });

  test.each([
    ['no JSON', '{'],
    ['no default', '{}'],
    ['no requirement', JSON.stringify({ default: [] })],
    ['no requirement in a scope', policy({ '': [] }, { default: accept })],
    ['an unknown requirement', JSON.stringify({ default: [{ type: 'acceptSome' }] })],
    ['an unknown field', JSON.stringify({ default: [{ type: 'insecureAcceptAnything', unless: 'signed' }] })],
    ['an unknown field at its top', JSON.stringify({ default: accept, version: 2 })],
    ['an unknown field of a signature', policy({ '': signed({ keyPath: '/k', since: 'ever' }) })],
    ['an unknown identity', policy({ '': signed({ keyPath: '/k', signedIdentity: { type: 'any' } }) })],
  ])('by a policy with %s', (_name, text) => {
    expect(evaluatePolicy(text, image)).toEqual({
      kind: 'reject',
      why: expect.stringContaining('is not a valid policy'),
    });
  });
});
