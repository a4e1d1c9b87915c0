import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** What each file imports of the project, types included unless it is said otherwise: paths from the project's root, with `/`. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

const IMPORT = /(?:\bfrom\s*|\bimport\s*\(\s*|\bimport\s+)['"]([^'"]+)['"]/g;

/**
 * @param source a module's text. @returns the specifiers that it imports, statically or by `import()`, in their order.
 */
export function importedSpecifiers(source: string): string[] {
  return Array.from(source.matchAll(IMPORT), ([, specifier]) => specifier ?? '');
}

const TYPES = /\b(?:import|export)\s+type\s+(?:\{[^}]*\}|\*(?:\s+as\s+\w+)?|\w+)\s*from\s*['"][^'"]+['"]/g;

/** @param source a module's text. @returns the specifiers of what it loads when it runs: types are erased. */
export function loadedSpecifiers(source: string): string[] {
  return importedSpecifiers(source.replaceAll(TYPES, ''));
}

/**
 * Reads the modules below some folders and what they import of one another.
 *
 * @param root the project's root.
 * @param folders paths from the root.
 * @param specifiersOf what counts as an import.
 * @returns the graph; imports of packages and of files that don't exist are left out.
 */
export function readImportGraph(
  root: string,
  folders: readonly string[],
  specifiersOf: typeof importedSpecifiers = importedSpecifiers,
): ImportGraph {
  const files = globSync(
    folders.map((folder) => `${folder}/**/*.{ts,tsx}`),
    {
      cwd: root,
      exclude: (name) => name.includes('node_modules'),
    },
  ).map((file) => file.split(path.sep).join('/'));
  return new Map(
    files.sort().map((file) => {
      const targets = specifiersOf(readFileSync(path.join(root, file), 'utf8'))
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => path.posix.join(path.posix.dirname(file), specifier));
      return [file, [...new Set(targets)].filter((target) => existsSync(path.join(root, target)))];
    }),
  );
}

/** @param file path of a module. @returns whether it is a test, or only tests use it. */
export function isTestFile(file: string): boolean {
  return /\.test\.tsx?$/.test(file) || file.startsWith('test/') || file.includes('/testdata/');
}

/**
 * Finds the groups of files that import one another in a loop (Tarjan's strongly connected components).
 *
 * @param graph what imports what.
 * @returns each group of two or more files, sorted; empty where there is no circle.
 */
export function findCircles(graph: ImportGraph): string[][] {
  const index = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];

  const visit = (file: string): number => {
    const own = index.size;
    index.set(file, own);
    let low = own;
    open.push(file);
    for (const target of graph.get(file) ?? []) {
      if (!graph.has(target)) continue;
      if (!index.has(target)) low = Math.min(low, visit(target));
      else if (open.includes(target)) low = Math.min(low, lowest.get(target) ?? index.get(target) ?? own);
      lowest.set(file, low);
    }
    lowest.set(file, low);
    if (low === own) {
      const circle = open.splice(open.indexOf(file));
      if (circle.length > 1) circles.push(circle.sort());
    }
    return low;
  };

  for (const file of graph.keys()) if (!index.has(file)) visit(file);
  return circles;
}

/**
 * Collects the files that reach one of some files by imports.
 *
 * @param graph what imports what.
 * @param target the file that is reached.
 * @returns each file that imports it, directly or not, with how many imports lie between (1: imports it itself).
 */
export function distancesTo(graph: ImportGraph, target: string): ReadonlyMap<string, number> {
  const importers = new Map<string, string[]>();
  for (const [file, targets] of graph) {
    for (const imported of targets) importers.set(imported, [...(importers.get(imported) ?? []), file]);
  }
  const distances = new Map<string, number>();
  let edge = [target];
  for (let distance = 1; edge.length > 0; distance += 1) {
    const next = edge.flatMap((file) => importers.get(file) ?? []).filter((file) => !distances.has(file));
    edge = [...new Set(next)];
    for (const file of edge) distances.set(file, distance);
  }
  return distances;
}
