import { expect, test } from 'vitest';
import { newClaims, signToken, tokenReader, userOf } from './service-account-tokens.ts';

const now = new Date('2026-01-01T00:00:00Z');
const key = Buffer.from('key');
const account = { namespace: 'shale-system', serviceAccount: { name: 'shale-daemon', uid: 'u' } };
const claims = newClaims({ ...account, node: { name: 'worker-0', uid: 'n' } }, ['api'], now, 3600);
const token = signToken(claims, key);

test('a token says whose it is and which node it is bound to', () => {
  expect(tokenReader(key)(token, now)).toEqual(claims);
  expect(userOf(claims)).toMatchObject({
    name: 'system:serviceaccount:shale-system:shale-daemon',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:shale-system', 'system:authenticated'],
    extra: { 'authentication.kubernetes.io/node-name': ['worker-0'] },
  });
});

const [header, body, signature] = token.split('.');
const forged = Buffer.from(JSON.stringify({ ...claims, exp: 1e12 })).toString('base64url');
test.each([
  ['another key', token, Buffer.from('other'), now],
  ['its end', token, key, new Date(now.getTime() + 3600_000)],
  ['another body', `${header}.${forged}.${signature}`, key, now],
  ['no signature', `${header}.${body}.`, key, now],
  ['nonsense', 'nonsense', key, now],
])('a token with %s is none', (_, text, withKey, at) => {
  expect(tokenReader(withKey)(text, at)).toBeUndefined();
});

test('a token that was read before holds no longer than it says', () => {
  const read = tokenReader(key);
  expect(read(token, now)).toEqual(claims);
  expect(read(token, new Date(now.getTime() + 3599_000))).toEqual(claims);
  expect(read(token, new Date(now.getTime() + 3600_000))).toBeUndefined();
  expect(read(`${header}.${forged}.${signature}`, now)).toBeUndefined();
});
