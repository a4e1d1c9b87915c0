import { describe, expect, test } from 'vitest';
import { annotations } from '../../api/names.ts';
import { parseDigest } from '../../api/references.ts';
import { digestTag } from '../../image/artifact.ts';
import type { PushedImagesRecord } from '../../opt-in/pushed-images/record.ts';
import { aBuild } from '../../test/fixtures/objects.ts';
import { machineConfigNode } from '../../test/fixtures/observed-cluster.ts';
import { strayDigests } from './stray-images.ts';

const REPOSITORY = 'r.io:5000/os/worker';
const digest = (digit: string) => parseDigest(`sha256:${digit.repeat(64)}`);
const image = (digit: string) => `${REPOSITORY}@${digest(digit)}`;
const tag = (digit: string) => `worker-${digit.repeat(32)}`;

function build(digit: string, more: { status?: object; earlier?: string } = {}) {
  const made = aBuild(tag(digit), 'rendered-worker-1', { status: more.status ?? {} });
  return {
    ...made,
    metadata: { ...made.metadata, annotations: { [annotations.earlierImages]: more.earlier ?? '' } },
    spec: { ...made.spec, renderedImagePushSpec: `${REPOSITORY}:${tag(digit)}` },
  };
}

/** @param named tags of the repository with the digit of what they name. */
function strays(
  named: Readonly<Record<string, string>>,
  builds: ReturnType<typeof build>[],
  machineConfigNodes: ReturnType<typeof machineConfigNode>[] = [],
  leftImages: PushedImagesRecord = new Map(),
) {
  const digests = new Map(Object.entries(named).map(([name, digit]) => [name, digest(digit)]));
  const side = Object.values(named).flatMap((digit) => [
    digestTag(digest(digit)),
    `${digestTag(digest(digit))}.sig`,
  ]);
  const tags = [...Object.keys(named), ...side, 'latest', '1.0'];
  return [
    ...strayDigests({ repository: REPOSITORY, tags, digests }, { builds, machineConfigNodes, leftImages }),
  ];
}

describe('an image of a repository', () => {
  const of = (digit: string, ...tags: readonly string[]) => [
    digest(digit),
    [...tags, digestTag(digest(digit)), `${digestTag(digest(digit))}.sig`],
  ];

  test('is a stray when no build records it, with what lies beside it', () => {
    expect(strays({ [tag('a')]: '1', [`${tag('a')}-arm64`]: '2' }, [])).toEqual([
      of('1', tag('a')),
      of('2', `${tag('a')}-arm64`),
    ]);
  });

  test('is none under the tag of a build that exists, or of one of its architectures', () => {
    expect(strays({ [tag('a')]: '1', [`${tag('a')}-arm64`]: '2' }, [build('a')])).toEqual([]);
  });

  test.each([
    ['its image', { digestedImagePushSpec: image('1') }],
    ['its engine image', { engineImage: image('1') }],
    ['an image of its index', { instances: [{ architecture: 'arm64', image: image('1'), baseImage: 'b' }] }],
    ['what it pushed', { pushedImages: [image('1')] }],
    ['the record of its base', { baseRecord: { chainID: digest('5'), image: image('1') } }],
    [
      'that of an instance',
      {
        instances: [
          {
            architecture: 'arm64',
            image: image('2'),
            baseImage: 'b',
            baseRecord: { chainID: digest('5'), image: image('1') },
          },
        ],
      },
    ],
  ])('is none where a build records it: %s', (_what, status) => {
    expect(strays({ [`engine-${'e'.repeat(32)}`]: '1' }, [build('b', { status })])).toEqual([]);
  });

  test('is none while the operator has it on record for deletion', () => {
    const entry = {
      pool: 'worker',
      poolUID: 'u',
      repository: REPOSITORY,
      created: '',
      digests: [digest('1')],
    };
    expect(strays({ [tag('a')]: '1' }, [], [], new Map([[tag('a'), entry]]))).toEqual([]);
  });

  test('is none where a build records it of an earlier one, or a node runs it', () => {
    expect(strays({ [tag('a')]: '1' }, [build('b', { earlier: image('1') })])).toEqual([]);
    const runs = machineConfigNode('a', { configImage: { currentImage: image('1') } });
    expect(strays({ [tag('a')]: '1' }, [], [runs])).toEqual([]);
  });

  test('is found by its signature where another image has taken its tag', () => {
    const tags = [tag('a'), `${digestTag(digest('1'))}.sig`];
    const digests = new Map([[tag('a'), digest('2')]]);
    const cluster = { builds: [build('a')], machineConfigNodes: [], leftImages: new Map() };
    expect([...strayDigests({ repository: REPOSITORY, tags, digests }, cluster)]).toEqual([
      [digest('1'), [`${digestTag(digest('1'))}.sig`]],
    ]);
  });
});
