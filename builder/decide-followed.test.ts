import { describe, expect, test } from 'vitest';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import { buildName } from '../predict/image/requested-image.ts';
import { base, build, inputs, machineOSConfig, name, seen } from '../test/fixtures/build-observation.ts';
import { type BuildObservation, decideBuild } from './decide.ts';

describe('a build whose label falls short of what nodes run', () => {
  const finished = build(name, 'Succeeded');
  const states = [{ config: 'rendered-worker-2', base }];
  const short: BuildObservation = { ...seen, builds: [finished], states, fallsShort: () => true };
  const again = buildName({ ...inputs, states });
  const relabelling = (condition?: string): MachineOSBuild => {
    const { metadata, ...other } = build(again, condition);
    return { ...other, metadata: { ...metadata, annotations: { [annotations.relabels]: name } } };
  };
  const pointed = (to: string): MachineOSConfig => ({
    ...machineOSConfig,
    status: { machineOSBuild: { group: 'g', resource: 'r', name: to } },
  });

  test('is followed by one that labels its image again, and whose name says for what', () => {
    expect(again).not.toBe(name);
    expect(decideBuild(short)).toMatchObject({
      kind: 'build',
      name: again,
      relabels: name,
      next: 'create',
      transitionsFrom: states,
    });
    const others = [{ config: 'rendered-worker-3', base }];
    expect(decideBuild({ ...short, states: others })).not.toMatchObject({ name: again });
  });

  test.each([
    [undefined, 'start'],
    ['Interrupted', 'recreate'],
    ['Failed', 'none'],
  ])('is not followed by another while the next is %s', (condition, next) => {
    const builds = [finished, relabelling(condition)];
    expect(decideBuild({ ...short, builds })).toMatchObject({ name: again, next, relabels: name });
  });

  test('is not chosen again when it would suffice, as long as the next does', () => {
    const builds = [finished, relabelling('Succeeded')];
    const fallsShort = () => false;
    const current = { ...short, builds, fallsShort, machineOSConfig: pointed(again) };
    expect(decideBuild(current)).toMatchObject({ name: again, next: 'none' });
    const before = { ...short, builds, fallsShort, machineOSConfig: pointed(name) };
    expect(decideBuild(before)).toMatchObject({ name, next: 'none' });
    expect(decideBuild(before)).toHaveProperty('relabels', undefined);
  });

  test('is left for the one that does not fall short', () => {
    const fallsShort = ({ metadata }: MachineOSBuild) => metadata.name === name;
    const builds = [finished, relabelling('Succeeded')];
    const observation = { ...short, builds, fallsShort, machineOSConfig: pointed(name) };
    expect(decideBuild(observation)).toMatchObject({ name: again, next: 'none' });
  });

  test('does not matter before it has succeeded', () => {
    expect(decideBuild({ ...short, builds: [build(name)] })).toMatchObject({ name, next: 'start' });
    expect(decideBuild({ ...short, builds: [] })).toMatchObject({ name, next: 'create' });
  });
});

describe('a build whose signature nodes no longer accept', () => {
  const signedBy = (of: string, signingKey: string, relabels?: string): MachineOSBuild => {
    const made = build(of, 'Succeeded');
    const metadata = relabels === undefined ? {} : { annotations: { [annotations.relabels]: relabels } };
    return {
      ...made,
      metadata: { ...made.metadata, ...metadata },
      status: { ...made.status, signingKey },
    };
  };
  const stolen = (...keys: readonly string[]): Pick<BuildObservation, 'isDistrusted'> => ({
    isDistrusted: ({ status }) => keys.includes(status?.signingKey ?? ''),
  });
  const first = signedBy(name, 'a.pub');
  const again = buildName({ ...inputs, states: [], distrustedKeys: ['a.pub'] });

  test('is followed by one that signs its image again, and whose name says instead of which key', () => {
    const decision = decideBuild({ ...seen, builds: [first], ...stolen('a.pub') });
    expect(decision).toMatchObject({ kind: 'build', name: again, relabels: name, next: 'create' });
    expect(again).not.toBe(buildName({ ...inputs, states: [] }));
  });

  test('is not followed by another once that is signed, or while it is not', () => {
    for (const [next, step] of [
      [build(again, 'Succeeded'), 'none'],
      [build(again), 'start'],
      [build(again, 'Failed'), 'none'],
    ] as const) {
      const relabelling = {
        ...next,
        metadata: { ...next.metadata, annotations: { [annotations.relabels]: name } },
      };
      const builds = [first, relabelling];
      expect(decideBuild({ ...seen, builds, ...stolen('a.pub') })).toMatchObject({ name: again, next: step });
    }
  });

  test('is followed by one more where the next key is gone, too', () => {
    const builds = [first, signedBy(again, 'b.pub', name)];
    expect(decideBuild({ ...seen, builds, ...stolen('a.pub') })).toMatchObject({ name: again, next: 'none' });
    expect(decideBuild({ ...seen, builds, ...stolen('a.pub', 'b.pub') })).toMatchObject({
      name: buildName({ ...inputs, states: [], distrustedKeys: ['a.pub', 'b.pub'] }),
      next: 'create',
    });
  });

  test('stays while its key is published, and before it has succeeded', () => {
    expect(decideBuild({ ...seen, builds: [first], ...stolen('b.pub') })).toMatchObject({
      name,
      next: 'none',
    });
    const running = { ...build(name), status: { signingKey: 'a.pub' } };
    expect(decideBuild({ ...seen, builds: [running], ...stolen('a.pub') })).toMatchObject({
      name,
      next: 'start',
    });
  });
});
