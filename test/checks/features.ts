import type { ImportGraph } from './import-graph.ts';

/** A row of the table of features in docs/architecture.md. */
export interface Feature {
  readonly name: string;
  /** Folders, which end in `/`, and files that are the feature's own. */
  readonly own: readonly string[];
  /** How many files outside of them may import from them. */
  readonly bound: number;
}

const HEAD = /^\| feature +\|.*\| most importers +\|$/;

/**
 * @param page the Markdown of docs/architecture.md.
 * @returns its features. @throws {Error} when it has no table of them, or a row without a number.
 */
export function featuresOf(page: string): readonly Feature[] {
  const lines = page.split('\n');
  const head = lines.findIndex((line) => HEAD.test(line));
  const end = lines.findIndex((line, at) => at > head && !line.startsWith('|'));
  const rows = head < 0 ? [] : lines.slice(head + 2, end < 0 ? undefined : end);
  if (rows.length === 0) throw new Error('docs/architecture.md has no table of features');
  return rows.map((row) => {
    const [, name = '', , own = '', bound = ''] = row.split('|').map((cell) => cell.trim());
    if (!/^\d+$/.test(bound)) throw new Error(`${name}: most importers is ${bound}; expected a number`);
    return { name, own: Array.from(own.matchAll(/`([^`]+)`/g), ([, each = '']) => each), bound: +bound };
  });
}

/** @returns what is not there of a feature, and that more files than its bound import from it. */
export function featureProblems({ name, own, bound }: Feature, graph: ImportGraph): readonly string[] {
  const isOwn = (file: string) =>
    own.some((each) => (each.endsWith('/') ? file.startsWith(each) : file === each));
  const files = [...graph.keys()];
  const gone = own.filter((each) => !files.some((file) => file === each || file.startsWith(each)));
  const importers = files.filter((file) => !isOwn(file) && graph.get(file)?.some(isOwn) === true);
  return [
    ...gone.map((each) => `feature ${name}: ${each} does not exist; correct docs/architecture.md`),
    ...(importers.length <= bound
      ? []
      : [
          `feature ${name}: ${importers.length} files import from it, ${bound} at most: ${importers.join(', ')}`,
        ]),
  ];
}
