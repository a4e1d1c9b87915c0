import { expect, test } from 'vitest';
import { node } from '../../test/fixtures/observed-cluster.ts';
import { named } from './named.ts';

test('finds an object by its name, in each list its own', () => {
  const [a, b, otherA] = [node('a'), node('b'), node('a')];
  const [list, other] = [[a, b], [otherA]];

  expect(named(list, 'a')).toBe(a);
  expect(named(list, 'b')).toBe(b);
  expect(named(other, 'a')).toBe(otherA);
  expect(named(other, 'b')).toBeUndefined();
});
