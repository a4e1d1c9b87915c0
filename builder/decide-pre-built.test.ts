import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import { present } from '../api/present.ts';
import { build, machineOSConfig, name, seen } from '../test/fixtures/build-observation.ts';
import { type BuildObservation, decideBuild } from './decide.ts';

/** When a MachineOSConfig starts from an image that exists, in place of a build. */

const ONE = `r.io/os/worker@sha256:${'1'.repeat(64)}`;
const TWO = `r.io/os/worker@sha256:${'2'.repeat(64)}`;

const naming = (image: string, status: MachineOSConfig['status'] = {}): MachineOSConfig => ({
  ...machineOSConfig,
  metadata: { ...machineOSConfig.metadata, annotations: { [annotations.preBuiltImage]: image } },
  status,
});

/** @param image that it was created to take; undefined: it builds one. */
const created = (image: string | undefined, condition?: string, of = name): MachineOSBuild => ({
  ...build(of, condition),
  metadata: { name: of, annotations: present({ [annotations.preBuiltImage]: image }) },
});

const named = { ...seen, machineOSConfig: naming(ONE) };

test.each<[string, BuildObservation, { next: string; preBuiltImage?: string; interrupted?: number }]>([
  ['a pool without an image takes it', named, { next: 'create', preBuiltImage: ONE }],
  ['without the annotation', seen, { next: 'create' }],
  ['an empty annotation is none', { ...seen, machineOSConfig: naming('') }, { next: 'create' }],
  [
    'a pool that had an image builds the next',
    { ...named, machineOSConfig: naming(ONE, { currentImagePullSpec: TWO }) },
    { next: 'create' },
  ],
  [
    'as does one with a build of other inputs that succeeded',
    { ...named, builds: [created(ONE, 'Succeeded', 'worker-older')] },
    { next: 'create' },
  ],
  [
    'what was taken stays',
    {
      ...named,
      builds: [created(ONE, 'Succeeded')],
      machineOSConfig: naming(ONE, { currentImagePullSpec: ONE }),
    },
    { next: 'none' },
  ],
  [
    'a running one goes on',
    { ...named, builds: [created(ONE)], running: new Set([name]) },
    { next: 'none', preBuiltImage: ONE },
  ],
  [
    'one that a builder left is started',
    { ...named, builds: [created(ONE)] },
    { next: 'start', preBuiltImage: ONE },
  ],
  [
    'what was refused is not asked again',
    { ...named, builds: [created(ONE, 'Failed')] },
    { next: 'none', preBuiltImage: ONE },
  ],
  [
    'but another image is',
    { ...named, builds: [created(TWO, 'Failed')] },
    { next: 'recreate', preBuiltImage: ONE },
  ],
  [
    'and without the annotation it is built',
    { ...seen, builds: [created(ONE, 'Failed')] },
    { next: 'recreate' },
  ],
  [
    'a failed build gives way to an image that is named later',
    { ...named, builds: [created(undefined, 'Failed')] },
    { next: 'recreate', preBuiltImage: ONE },
  ],
  [
    'and so does a running one, which is interrupted',
    { ...named, builds: [created(undefined)], running: new Set([name]) },
    { next: 'recreate', preBuiltImage: ONE, interrupted: 1 },
  ],
])('%s', (_, observation, { interrupted = 0, preBuiltImage, next }) => {
  const decision = decideBuild(observation);
  if (decision.kind !== 'build') throw new Error(decision.why);
  expect(decision.next).toBe(next);
  expect(decision.preBuiltImage).toBe(preBuiltImage);
  expect(decision.interrupt).toHaveLength(interrupted);
});
