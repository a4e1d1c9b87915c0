import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { allPages, type Page, proseOf, ROOT } from './pages.ts';

/** Files and folders that pages and comments name by their path from the root of the project. */

/** The folders at the top level; a path that starts with another name is not one of the project's. */
const folders: ReadonlySet<string> = new Set(
  readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
    .map(({ name }) => name),
);

/** @returns the paths in inline code of a page that don't exist. */
export function missingFilesOf(page: Page): string[] {
  const named = [...proseOf(page).matchAll(/`([\w@.-]+(?:\/[\w@.-]+)+\/?)`/g)];
  return named.map(([, text = '']) => text).filter(isMissing);
}

/** @returns the paths of TypeScript files in the comments of a source text that don't exist. */
export function missingFilesOfComments(source: string): string[] {
  const comments = [...source.matchAll(/\/\*[\s\S]*?\*\/|(?<!:)\/\/[^\n]*/g)].map(([text]) => text);
  const named = comments.flatMap((text) => [
    ...text.matchAll(/(?<![\w@./-])([\w-]+(?:\/[\w.-]+)+\.tsx?)(?![\w*])/g),
  ]);
  return named.map(([, text = '']) => text).filter(isMissing);
}

function isMissing(name: string): boolean {
  const [first = ''] = name.split('/');
  return folders.has(first) && !existsSync(path.join(ROOT, name));
}

/** @returns what is missing in all pages and in the comments of all sources, as `file: path`. */
export function missingFiles(): string[] {
  const exclude = (name: string) => ['node_modules', '.shale', 'dist', 'testdata'].includes(name);
  const sources = globSync('**/*.{ts,tsx}', { cwd: ROOT, exclude }).filter((file) => !file.startsWith('.'));
  return [
    ...allPages().flatMap((page) => missingFilesOf(page).map((name) => `${page.file}: ${name}`)),
    ...sources.flatMap((file) =>
      missingFilesOfComments(readFileSync(path.join(ROOT, file), 'utf8')).map((name) => `${file}: ${name}`),
    ),
  ];
}
