import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { allPages, linksOf, type Page, ROOT, readPage } from './pages.ts';

/** Pages of docs/decisions, their index, and the code and pages that link them. */

const FOLDER = 'docs/decisions';
const INDEX = `${FOLDER}/README.md`;
const PARTS = ['## Context', '## Decision', '## Consequences'];

/** @returns the page of each decision, by number. */
export function decisionPages(): Page[] {
  return globSync(`${FOLDER}/[0-9]*.md`, { cwd: ROOT }).sort().map(readPage);
}

/** @returns what a decision's page lacks. */
export function problemsOfDecision({ file, text }: Page, index = readPage(INDEX).text): string[] {
  const [title = '', , status = ''] = text.split('\n');
  const { number = '', slug = '' } = /(?<number>\d{4})-(?<slug>[a-z0-9-]+)\.md$/.exec(file)?.groups ?? {};
  const name = title.replace(`# ${number}. `, '');
  const listed = index.split('\n').filter((row) => row.includes(`(${number}-${slug}.md)`));
  return [
    ...(title === `# ${number}. ${name}` ? [] : [`its title does not begin with "# ${number}. "`]),
    ...(/^Status: (accepted|superseded by \d{4})$/.test(status) ? [] : ['it has no status below its title']),
    ...PARTS.filter((part) => !text.includes(`\n${part}\n`)).map((part) => `it has no "${part}"`),
    ...(listed.length === 1 && listed[0]?.includes(name)
      ? []
      : ['the index does not list it with its title']),
  ];
}

/**
 * @returns paths of the decisions that pages outside of the folder link and that comments in code and manifests name.
 */
export function linkedDecisions(): ReadonlySet<string> {
  const pages = allPages().filter(({ file }) => !file.startsWith(`${FOLDER}/`));
  const fromPages = pages.flatMap((page) =>
    linksOf(page).map((target) => path.posix.join(path.posix.dirname(page.file), target.split('#')[0] ?? '')),
  );
  const exclude = (name: string) => ['node_modules', '.shale', 'dist', 'testdata'].includes(name);
  const sources = globSync('**/*.{ts,tsx,yaml}', { cwd: ROOT, exclude });
  const fromSources = sources.flatMap((file) =>
    Array.from(
      readFileSync(path.join(ROOT, file), 'utf8').matchAll(/docs\/decisions\/\d{4}[\w-]*\.md/g),
      ([name]) => name,
    ),
  );
  return new Set(
    [...fromPages, ...fromSources].filter((name) => name.startsWith(`${FOLDER}/`) && name !== INDEX),
  );
}
