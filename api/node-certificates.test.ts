import { expect, test } from 'vitest';
import { registryCAsDigest, registryOfKey } from './node-certificates.ts';

test('the digest depends on the data and not on its order', () => {
  expect(registryCAsDigest({ a: '1', b: '2' })).toBe(registryCAsDigest({ b: '2', a: '1' }));
  expect(registryCAsDigest({ a: '1' })).not.toBe(registryCAsDigest({ a: '2' }));
  expect(registryCAsDigest({ a: '1' })).not.toBe(registryCAsDigest({ b: '1' }));
});

test.each([
  ['registry.example.com', 'registry.example.com'],
  ['registry.example.com..5000', 'registry.example.com:5000'],
  ['127.0.0.1..5000', '127.0.0.1:5000'],
  ['localhost', 'localhost'],
  ['..', undefined],
  ['../etc', undefined],
  ['a..b', undefined],
  ['', undefined],
])('key %j is of registry %j', (key, registry) => {
  expect(registryOfKey(key)).toBe(registry);
});
