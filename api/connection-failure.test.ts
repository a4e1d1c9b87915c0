import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { errorMessage, fileErrorMessage } from './error-message.ts';

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
  [
    failed('ENOENT', { syscall: 'connect', address: '/run/docker.sock' }),
    'the socket /run/docker.sock does not exist',
  ],
  [
    failed('EACCES', { syscall: 'listen', address: '::', port: 80 }),
    'permission to listen on :::80 is denied',
  ],
  [failed('ENOENT', { syscall: 'open', path: '/a' }), 'connect ENOENT'],
  [failed('EADDRINUSE', { address: '127.0.0.1', port: 80 }), '127.0.0.1:80 is already in use'],
  [failed('EPROTO'), 'the server does not use TLS, or none that is understood'],
  [failed('HPE_INVALID_CONSTANT'), 'the server does not respond with HTTP'],
  [new TypeError('fetch failed', { cause: failed('ECONNREFUSED') }), 'connection refused by the server'],
  [new DOMException('The operation was aborted due to timeout', 'TimeoutError'), 'no response in time'],
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
  expect(errorMessage(error)).toBe(words);
});

test('a certificate of an unknown authority is told without the code', () => {
  expect(errorMessage(failed('SELF_SIGNED_CERT_IN_CHAIN'))).toContain('an authority that is not trusted');
});

test('what is no error is text', () => {
  expect(errorMessage('gone')).toBe('gone');
});

test('a code that is a number says nothing of a connection', () => {
  expect(errorMessage(Object.assign(new Error('Forbidden'), { code: 403 }))).toBe('Forbidden');
});

test('an error of a file is told without the code and the path', async () => {
  const error: unknown = await readFile('/nowhere/file').catch((reason: unknown) => reason);
  expect(fileErrorMessage(error)).toBe('no such file or directory');
  expect(fileErrorMessage(new Error('other'))).toBe('other');
});
