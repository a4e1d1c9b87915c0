import { expect, test } from 'vitest';
import { parseDigest } from '../../api/references.ts';
import { aMachineOSConfig, aRenderedConfig } from '../../test/fixtures/objects.ts';
import type { BaseLookup, BaseLookups } from './base-lookup.ts';
import { baseRemarks } from './base-remarks.ts';
import type { ImageInputs } from './image-to-build.ts';

const DIGEST = parseDigest(`sha256:${'1'.repeat(64)}`);
const found: BaseLookup = { kind: 'found', digest: DIGEST, platforms: new Map() };
const refused: BaseLookup = { kind: 'unknown', why: 'r.test: connection refused' };
const [ONE, TWO] = ['r.test/os:1', 'r.test/os:2'];

function inputs(baseImage: string | undefined, lookups: BaseLookups): ImageInputs {
  const config = aMachineOSConfig('worker');
  const machineOSConfig =
    baseImage === undefined ? undefined : { ...config, spec: { ...config.spec, baseImage } };
  return { rendered: aRenderedConfig('rendered-worker-1'), machineOSConfig, policyDigest: '', lookups };
}

test.each<[string, string | undefined, string | undefined, Record<string, BaseLookup>, string[]]>([
  ['a pool that is not layered', ONE, undefined, {}, []],
  ['names by digest', `${ONE}@${DIGEST}`, `${TWO}@${DIGEST}`, {}, []],
  ['a tag that stays, without a registry', ONE, ONE, {}, []],
  ['a tag that stays and was looked up', ONE, ONE, { [ONE]: found }, []],
  [
    'a tag that stays and can not be looked up',
    ONE,
    ONE,
    { [ONE]: refused },
    [
      "base image r.test/os:1 can't be looked up, so it is assumed that its tag was not moved: r.test: connection refused",
    ],
  ],
  ['tags that were looked up', ONE, TWO, { [ONE]: found, [TWO]: found }, []],
  [
    'tags of which one can not be looked up',
    ONE,
    TWO,
    { [ONE]: found, [TWO]: refused },
    [
      'the digest of base image r.test/os:2 is not known, so a reboot is planned for it: r.test: connection refused',
    ],
  ],
  [
    'tags, without a registry',
    `${ONE}@${DIGEST}`,
    TWO,
    {},
    [
      'the digest of base image r.test/os:2 is not known, so a reboot is planned for it: no registry was asked (--resolve-tags asks)',
    ],
  ],
  [
    'a pool that opts in by a tag that can not be looked up',
    undefined,
    ONE,
    { [ONE]: refused },
    [
      'the digest of base image r.test/os:1 is not known, so a reboot is planned for it: r.test: connection refused',
    ],
  ],
])('what is not known of %s', (_what, from, to, answers, lines) => {
  const asked = new Map(Object.entries(answers));
  expect(baseRemarks(inputs(from, asked), inputs(to, asked), asked)).toEqual(lines);
});
