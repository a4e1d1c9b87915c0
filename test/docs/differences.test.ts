import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { nodeConditions } from '../../api/machine-config-node.ts';

const page = readFileSync(new URL('../../docs/differences-from-mco.md', import.meta.url), 'utf8');
const [, withoutEffect = ''] = page.split('\n## Fields without effect\n');

/** Of a MachineConfigNode (openshift/api, machineconfiguration/v1, StateProgress). */
const CONDITION_TYPES = [
  'UpdatePrepared',
  'UpdateExecuted',
  'UpdatePostActionComplete',
  'UpdateComplete',
  'Updated',
  'Resumed',
  'Drained',
  'AppliedFiles',
  'AppliedOSImage',
  'AppliedFilesAndOS',
  'ImagePulledFromRegistry',
  'Cordoned',
  'Uncordoned',
  'RebootedNode',
  'NodeDegraded',
  'PinnedImageSetsProgressing',
  'PinnedImageSetsDegraded',
  'InternalReleaseImageDegraded',
];

test('every condition type of MCO on nodes is written, or listed as one that is not', () => {
  const left = CONDITION_TYPES.filter((type) => !Object.hasOwn(nodeConditions, type));
  expect(left.filter((type) => !withoutEffect.includes(`\`${type}\``))).toEqual([]);
  // And none is listed that is written.
  const written = CONDITION_TYPES.filter((type) => Object.hasOwn(nodeConditions, type));
  expect(written.filter((type) => withoutEffect.includes(`the condition \`${type}\``))).toEqual([]);
});
