import path from 'node:path';
import { expect, test } from 'vitest';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { BASE_POLICIES, judgePolicies } from './check-policies.ts';

const all = new Set(Object.keys(BASE_POLICIES));
const without = (name: string) => new Set([...all].filter((each) => each !== name));

test('the policies that are checked are those of the base, each with a binding of its name', async () => {
  const base = await readKustomization(path.join(import.meta.dirname, '../../manifests/base'));
  const named = (kind: string) =>
    base
      .filter((object) => object.kind === kind)
      .map(({ metadata }) => metadata.name)
      .filter((name) => name !== 'shale-build-pods')
      .toSorted();
  expect(named('ValidatingAdmissionPolicy')).toEqual([...all].toSorted());
  expect(named('ValidatingAdmissionPolicyBinding')).toEqual([...all].toSorted());
});

test('one that is missing is named with what is open, and so is one without its binding', () => {
  const name = 'shale-machine-os-config-secrets';
  const finding = expect.objectContaining({
    level: 'warning',
    what: expect.stringMatching(/shale-machine-os-config-secrets or its binding.*every Secret/),
  });
  expect(judgePolicies(without(name), all)).toEqual([finding]);
  expect(judgePolicies(all, without(name))).toEqual([finding]);
  expect(judgePolicies(all, all)).toMatchObject([{ level: 'ok' }]);
});

test('a user who may not list them is told so', () => {
  expect(judgePolicies(undefined, all)).toMatchObject([{ level: 'warning' }]);
});
