import { expect, test } from 'vitest';
import { readPolicyJson } from './policy-json.ts';

const accept = [{ type: 'insecureAcceptAnything' }];
const reject = [{ type: 'reject' }];

const signed = (by: object) => ({
  type: 'sigstoreSigned',
  ...by,
  signedIdentity: { type: 'matchRepository' },
});

const policy = (transports: Readonly<Record<string, unknown>> = {}) => ({
  default: accept,
  transports: { atomic: {}, ...transports },
});

test.each([
  [policy()],
  [{ ...policy(), default: reject }],
  [policy({ docker: { 'q.io': accept, 'r.io/x': reject } })],
  [policy({ 'docker-daemon': { '': accept } })],
  [policy({ docker: { 'q.io': [...accept, signed({ keyData: 'YQ==' })] } })],
  [policy({ docker: { 'q.io': [signed({ pki: { caRootsData: 'YQ==' } })] } })],
  [policy({ atomic: { 'q.io:5000': accept, 'q.io/a/b:c': reject, '': accept } })],
])('%j is accepted', (given) => {
  expect(readPolicyJson(JSON.stringify(given))).toEqual({ ok: true });
});

test.each([
  [{}, /^default: /],
  [{ ...policy(), default: [] }, /^default: a list of requirements must not be empty$/],
  [{ ...policy(), default: [{ type: 'signedBy' }] }, /^default\.0\.type: /],
  [{ ...policy(), default: [{ type: 'reject', more: 1 }] }, /^default\.0: /],
  [{ ...policy(), more: 1 }, /^: .*more/],
  [policy({ docker: { 'q.io': [signed({})] } }), /^transports\.docker\.q\.io\.0: needs exactly one of/],
  [policy({ docker: { 'q.io': [signed({ keyData: 'a b' })] } }), /^transports\.docker\.q\.io\.0\.keyData: /],
  [
    policy({ docker: { 'q.io': [signed({ keyData: 'YQ==', key: 'YQ==' })] } }),
    /^transports\.docker\.q\.io\.0: .*key/,
  ],
  [policy({ docker: { 'q.io': [] } }), /^transports\.docker\.q\.io: a list of/],
  [policy({ docker: accept }), /^transports\.docker: /],
  [policy({ atomic: { 'q.io/a/b/c': accept } }), /^transports\.atomic\.q\.io\/a\/b\/c: /],
  [policy({ atomic: { 'q.io/a:b': accept } }), /^transports\.atomic\.q\.io\/a:b: /],
])('%j is refused', (given, why) => {
  expect(readPolicyJson(JSON.stringify(given))).toEqual({ ok: false, why: expect.stringMatching(why) });
});

test('what is not JSON is refused without its text', () => {
  expect(readPolicyJson('{"default": secret')).toEqual({ ok: false, why: 'is not JSON' });
});
