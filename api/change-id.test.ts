import { expect, test } from 'vitest';
import { changeOf } from './change-id.ts';

test('the id of a change is the hash in the name of its rendered config', () => {
  expect(changeOf('rendered-infra-a-0123456789abcdef0123456789abcdef')).toBe(
    '0123456789abcdef0123456789abcdef',
  );
});

test('a config with another name has a stable id of the same form', () => {
  const id = changeOf('rendered-worker-1a2b3c4d');
  expect(id).toMatch(/^[a-f0-9]{32}$/);
  expect(changeOf('rendered-worker-1a2b3c4d')).toBe(id);
  expect(changeOf('rendered-worker-1a2b3c4e')).not.toBe(id);
});
