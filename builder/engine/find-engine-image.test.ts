import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { aBuild, condition, image } from '../../test/fixtures/objects.ts';
import { recordedEngineImages } from './find-engine-image.ts';

type Status = NonNullable<MachineOSBuild['status']>;

const ended = (buildEnd: string, more: Partial<Status>, succeeded: 'True' | 'False' = 'True') =>
  aBuild(`at-${buildEnd}`, 'rendered-worker-1', {
    status: {
      conditions: [condition('Succeeded', succeeded), condition('Building', 'False')],
      buildEnd,
      ...more,
    },
  });
const instance = (architecture: string, digit: string) => ({
  architecture,
  image: image('e'),
  baseImage: image('f'),
  engineImage: image(digit),
});

test('engine images are those of builds that succeeded, the newest first, each once', () => {
  expect(
    recordedEngineImages([
      ended('2026-01-02T00:00:00Z', { engineImage: image('2') }),
      ended('2026-01-03T00:00:00Z', { instances: [instance('amd64', '3'), instance('arm64', '4')] }),
      ended('2026-01-04T00:00:00Z', { engineImage: image('9') }, 'False'),
      ended('2026-01-01T00:00:00Z', { engineImage: image('1') }),
      ended('2026-01-05T00:00:00Z', { engineImage: image('2') }),
      ended('2026-01-06T00:00:00Z', {}),
      aBuild('running', 'rendered-worker-1', {
        status: { conditions: [condition('Building')], engineImage: image('8') },
      }),
      aBuild('new', 'rendered-worker-1'),
    ]),
  ).toEqual(['2', '3', '4', '1'].map(image));
});
