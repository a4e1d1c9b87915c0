import { expect, test } from 'vitest';
import { whyDisconnected } from './connection-failure.ts';

const failed = (code: string, more: object = {}) =>
  Object.assign(new Error(`connect ${code}`), { code, ...more });

test.each<[Error, string]>([
  [failed('ECONNREFUSED', { address: '127.0.0.1', port: 6443 }), 'connection refused by 127.0.0.1:6443'],
  [failed('ENOTFOUND', { hostname: 'api.example.com' }), 'the name api.example.com does not exist'],
  [
    failed('EAI_AGAIN', { hostname: 'api.example.com' }),
    "the name api.example.com can't be resolved at the moment",
  ],
  [failed('ETIMEDOUT', { address: '192.0.2.1', port: 443 }), '192.0.2.1:443 does not respond'],
  [failed('EHOSTUNREACH'), 'there is no route to the server'],
  [failed('ECONNRESET'), 'the connection was closed before the whole response had arrived'],
  [failed('CERT_HAS_EXPIRED'), "the server's certificate has expired"],
  [
    failed('ERR_TLS_CERT_ALTNAME_INVALID', { host: 'api.example.com' }),
    "the server's certificate is not for the name api.example.com",
  ],
  [
    new AggregateError([failed('ECONNREFUSED', { address: '::1', port: 1 }), failed('ETIMEDOUT')], ''),
    'connection refused by ::1:1',
  ],
  [new AggregateError([], 'none'), 'none'],
  [Object.assign(new Error(''), { code: 'EUNKNOWN' }), 'EUNKNOWN'],
  [new Error('no response within 30 s'), 'no response within 30 s'],
])('%o', (error, words) => {
  expect(whyDisconnected(error)).toBe(words);
});

test('a certificate of an unknown authority is told without the code', () => {
  expect(whyDisconnected(failed('SELF_SIGNED_CERT_IN_CHAIN'))).toContain('an authority that is not trusted');
});

test('what is no error is text', () => {
  expect(whyDisconnected('gone')).toBe('gone');
});
