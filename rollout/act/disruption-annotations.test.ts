import { expect, test } from 'vitest';
import { annotations } from '../../api/names.ts';
import { aNode } from '../../test/fixtures/objects.ts';
import type { AnnotationsPatch } from '../pools/hooks.ts';
import { disruptionBlocked, disruptionUnblocked } from './disruption-annotations.ts';

const AUTOSCALER = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const KARPENTER = 'karpenter.sh/do-not-disrupt';
const MARK = annotations.disruptionBlocked;

const node = (on: Readonly<Record<string, string>>) =>
  aNode('a', { metadata: { name: 'a', annotations: on } });
const OURS = { [AUTOSCALER]: 'true', [KARPENTER]: 'true', [MARK]: `${AUTOSCALER},${KARPENTER}` };

test.each<[what: string, on: Readonly<Record<string, string>>, patch: AnnotationsPatch]>([
  ['a node without them', {}, OURS],
  ['a node that has them', OURS, {}],
  [
    'a node of which an admin decided one',
    { [KARPENTER]: 'false' },
    { [AUTOSCALER]: 'true', [MARK]: AUTOSCALER },
  ],
  ['a node of which an admin decided both', { [AUTOSCALER]: 'true', [KARPENTER]: 'true' }, {}],
  [
    'a node that lost one of ours',
    { [AUTOSCALER]: 'true', [MARK]: `${AUTOSCALER},${KARPENTER}` },
    { [KARPENTER]: 'true', [MARK]: `${AUTOSCALER},${KARPENTER}` },
  ],
])('%s gets what nobody decided', (_, on, patch) => {
  expect(disruptionBlocked(node(on))).toEqual(patch);
});

test.each<[what: string, on: Readonly<Record<string, string>>, patch: AnnotationsPatch]>([
  ['ours', OURS, { [AUTOSCALER]: null, [KARPENTER]: null, [MARK]: null }],
  [
    'ours alone, beside that of an admin',
    { [AUTOSCALER]: 'true', [KARPENTER]: 'true', [MARK]: KARPENTER },
    { [KARPENTER]: null, [MARK]: null },
  ],
  ['nothing without a mark', { [AUTOSCALER]: 'true', [KARPENTER]: 'true' }, {}],
  ['not what was changed since', { ...OURS, [AUTOSCALER]: 'false' }, { [KARPENTER]: null, [MARK]: null }],
  [
    'no other annotation that a mark names',
    { [MARK]: 'example.com/keep', 'example.com/keep': 'true' },
    { [MARK]: null },
  ],
])('%s is removed', (_, on, patch) => {
  expect(disruptionUnblocked(node(on))).toEqual(patch);
});
