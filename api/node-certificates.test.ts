import { expect, test } from 'vitest';
import { dataDigest, registryOfKey } from './node-certificates.ts';

test('the digest depends on the data and not on its order', () => {
  expect(dataDigest({ a: '1', b: '2' })).toBe(dataDigest({ b: '2', a: '1' }));
  expect(dataDigest({ a: '1' })).not.toBe(dataDigest({ a: '2' }));
  expect(dataDigest({ a: '1' })).not.toBe(dataDigest({ b: '1' }));
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
