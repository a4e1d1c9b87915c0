import { describe, expect, test } from 'vitest';
import { nearestTests } from './nearest-tests.ts';

describe('nearest tests', () => {
  const graph = new Map([
    ['image/append.ts', []],
    ['image/push.ts', ['image/append.ts']],
    ['image/append.test.ts', ['image/push.ts']],
    ['image/appended.test.ts', ['image/append.ts']],
    ['image/push.test.ts', ['image/push.ts']],
    ['image/push.integration.test.ts', ['image/push.ts']],
    ['image/append.integration.test.ts', ['image/push.ts']],
    ['builder/build.e2e.test.ts', ['image/append.ts']],
    ['test/soak/build.soak.test.ts', ['image/append.ts']],
    ['test/checks/house.test.ts', ['image/append.ts']],
    ['image/other.test.ts', []],
  ]);

  test("of unit are the file's own first, then the nearest", () => {
    expect(nearestTests(graph, 'image/append.ts', 'unit')).toEqual([
      'image/append.test.ts',
      'image/appended.test.ts',
      'image/push.test.ts',
    ]);
  });

  test('are those of the same name where they run the file as a program', () => {
    const program = new Map([
      ['image/program.ts', []],
      ['image/program.integration.test.ts', ['image/other.ts']],
    ]);
    expect(nearestTests(program, 'image/program.ts', 'integration')).toEqual([
      'image/program.integration.test.ts',
    ]);
    expect(nearestTests(program, 'image/program.ts', 'unit')).toEqual([]);
  });

  test('of the same distance are those first that share more folders with the file', () => {
    const tests = [
      'api/a.test.ts',
      'image/a.test.ts',
      'image/registry/z.test.ts',
      'image/registry/deep/a.test.ts',
    ];
    const shared = new Map(tests.map((name) => [name, ['image/registry/client.ts']]));
    expect(nearestTests(shared, 'image/registry/client.ts', 'unit')).toEqual([
      'image/registry/deep/a.test.ts',
      'image/registry/z.test.ts',
      'image/a.test.ts',
      'api/a.test.ts',
    ]);
  });

  test('of the same folder are those nearer that are named after the same subject', () => {
    const through = (name: string) => [`rollout/${name}.test.ts`, ['test/fixture.ts']] as const;
    const shared = new Map<string, readonly string[]>([
      ['test/fixture.ts', ['rollout/render-loop.ts']],
      ['rollout/z.test.ts', ['rollout/render-loop.ts']],
      ['cli/render-loop.test.ts', ['test/fixture.ts']],
      ...['a', 'render-mirrors', 'rendering', 'render-loop-ends'].map(through),
    ]);
    expect(nearestTests(shared, 'rollout/render-loop.ts', 'unit')).toEqual([
      'rollout/render-loop-ends.test.ts',
      'rollout/render-mirrors.test.ts',
      'rollout/z.test.ts',
      'rollout/a.test.ts',
      'rollout/rendering.test.ts',
      'cli/render-loop.test.ts',
    ]);
  });

  test('of integration are in the same order', () => {
    expect(nearestTests(graph, 'image/append.ts', 'integration')).toEqual([
      'image/append.integration.test.ts',
      'image/push.integration.test.ts',
    ]);
  });

  test.each([
    ['unit', 12],
    ['integration', 3],
  ] as const)('of %s are at most %i', (project, most) => {
    const suffix = project === 'unit' ? 'test.ts' : `${project}.test.ts`;
    const many = Array.from(
      { length: 20 },
      (_, index) => [`image/t${index}.${suffix}`, ['image/append.ts']] as const,
    );
    expect(nearestTests(new Map(many), 'image/append.ts', project)).toHaveLength(most);
  });
});
