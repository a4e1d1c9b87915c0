import path from 'node:path';
import { distancesTo, type ImportGraph } from '../import-graph.ts';

/** Vitest projects whose tests are tried, in this order: the cheap ones first. */
export const PROJECTS = ['unit', 'integration'] as const;
export type Project = (typeof PROJECTS)[number];

/**
 * Test files beyond this many of the nearest hardly ever notice what the nearer ones did not. Those of integration
 * start processes and registries, so few of them are tried.
 */
const MOST_FILES: Readonly<Record<Project, number>> = { unit: 12, integration: 3 };

/**
 * @returns the Vitest project of a test file, which its name says (vitest.config.ts); undefined for e2e, soak and any
 * other file.
 */
function projectOf(file: string): Project | undefined {
  const [, kind] = /\.(?:(integration|e2e|soak)\.)?test\.tsx?$/.exec(file) ?? [undefined, 'none'];
  if (kind === undefined) return 'unit';
  return kind === 'integration' ? kind : undefined;
}

/**
 * Chooses the tests that are most likely to notice a change of a file: those of its name, which may run it as a program
 * of its own, and those that reach it by imports.
 *
 * @param graph what imports what.
 * @param file the changed module.
 * @returns the tests of the project, the file's own first, then by the number of imports that lie between, less one for
 *   each word of a name that they share in one folder, then by how many folders they share with the file: a client that
 *   half of the rooms use is tested in its own.
 */
export function nearestTests(graph: ImportGraph, file: string, project: Project): string[] {
  const own = `${file.replace(/\.tsx?$/, '')}.`;
  const named = [...graph.keys()].filter((test) => test.startsWith(own)).map((test) => [test, 1] as const);
  return [...new Map([...named, ...distancesTo(graph, file)])]
    .filter(([test]) => projectOf(test) === project && !test.startsWith('test/checks/'))
    .sort(
      ([a, near], [b, far]) =>
        Number(b.startsWith(own)) - Number(a.startsWith(own)) ||
        near - sameSubject(a, file) - (far - sameSubject(b, file)) ||
        sameSubject(b, file) - sameSubject(a, file) ||
        sharedFolders(b, file) - sharedFolders(a, file) ||
        (a < b ? -1 : 1),
    )
    .slice(0, MOST_FILES[project])
    .map(([test]) => test);
}

/** @returns how many folders two paths have in common, from the root on. */
function sharedFolders(a: string, b: string): number {
  const [own, other] = [a.split('/').slice(0, -1), b.split('/').slice(0, -1)];
  const differs = own.findIndex((folder, depth) => folder !== other[depth]);
  return differs === -1 ? own.length : differs;
}

/**
 * @returns how many words the names of two files of one folder begin with together, such as `rendering` of
 *   `rendering-mirrors`. Tests of one subject reach it through a fixture, as do many others.
 */
function sameSubject(a: string, b: string): number {
  if (path.posix.dirname(a) !== path.posix.dirname(b)) return 0;
  const [own = [], other = []] = [a, b].map((file) => path.posix.basename(file).split(/[-.]/));
  const differs = own.findIndex((word, at) => word !== other[at]);
  return differs === -1 ? own.length : differs;
}
