import { expect, test } from 'vitest';
import { node } from '../test/fixtures/observed-cluster.ts';
import { objectNamed } from './named.ts';

test('finds an object by its name, in each list its own', () => {
  const [a, b, otherA] = [node('a'), node('b'), node('a')];
  const [list, other] = [[a, b], [otherA]];

  expect(objectNamed(list, 'a')).toBe(a);
  expect(objectNamed(list, 'b')).toBe(b);
  expect(objectNamed(other, 'a')).toBe(otherA);
  expect(objectNamed(other, 'b')).toBeUndefined();
});
