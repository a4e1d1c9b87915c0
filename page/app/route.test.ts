import { expect, test } from 'vitest';
import { hashOf, keyIn, type Route, routeOf } from './route.ts';

test.each<Route>([
  { kind: 'node', name: 'worker-05.example.com' },
  { kind: 'pool', name: 'infra' },
  { kind: 'build', name: 'worker-9f8e7d6c' },
  { kind: 'policy', name: 'file /etc/50% of/x y.conf (worker, infra)' },
  { kind: 'lease', name: 'worker-1' },
])('the address of a $kind leads to it', (route) => {
  const hash = hashOf(route);
  expect(hash).toMatch(/^#\/[a-z]+\/[^\s/]+$/);
  expect(routeOf(hash)).toEqual(route);
  expect(keyIn(hash)).toBeUndefined();
});

test.each(['', '#', '#nodes', '#timeline', '#/', '#/node/', '#/cluster/x', '#/node/%E0%A4%A', '#/node/a/b'])(
  '%j leads to nothing',
  (hash) => {
    expect(routeOf(hash)).toBeUndefined();
    expect(keyIn(hash)).toBeUndefined();
  },
);

test('a one-time key is no address of a thing', () => {
  // 32 bytes in base64url.
  const key = '-_v7'.repeat(11).slice(0, 43);
  expect(keyIn(`#${key}`)).toBe(key);
  expect(routeOf(`#${key}`)).toBeUndefined();
});
