import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { secretsOf } from './file-secrets.ts';

const secret = (fields: object): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'entitlement' },
  ...fields,
});

test.each([
  ['data', { data: { key: 'YQ==' } }, [['entitlement/key', 'a']]],
  ['stringData', { stringData: { key: 'a' } }, [['entitlement/key', 'a']]],
  [
    'both, of which stringData is stored',
    { data: { key: 'YQ==', more: 'Yw==' }, stringData: { key: 'b' } },
    [
      ['entitlement/key', 'b'],
      ['entitlement/more', 'c'],
    ],
  ],
])('a Secret of a file has %s', (_name, fields, expected) => {
  const values = secretsOf([secret(fields)], ['entitlement']);
  expect(values.map(({ id, value }) => [id, value.toString()])).toEqual(expected);
});

test('a Secret that no file has is named', () => {
  expect(() => secretsOf([secret({})], ['other'])).toThrow('Secret other is not in these files');
});
