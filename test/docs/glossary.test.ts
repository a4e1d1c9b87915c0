import { expect, test } from 'vitest';
import { GLOSSARY, glossaryTerms, unlinkedTerms } from './glossary.ts';
import { allPages } from './pages.ts';

const terms = glossaryTerms();
const isForReaders = ({ file, text }: { readonly file: string; readonly text: string }) =>
  (file === 'README.md' || file.startsWith('docs/')) &&
  file !== GLOSSARY &&
  !text.startsWith('<!-- Generated');

test('each term has one entry', () => {
  expect(terms.length).toBeGreaterThan(0);
  expect(terms).toEqual([...new Set(terms)]);
});

test.each(
  allPages()
    .filter(isForReaders)
    .map((page) => [page.file, page] as const),
)('%s links each term of the glossary at first use', (_, page) => {
  expect(unlinkedTerms(page, terms)).toEqual([]);
});

test('a term in a heading, in a table, in code or in another link is not its first use', () => {
  const lines = [
    '# A pool',
    '| pool | `pool` |',
    '```sh',
    'pool',
    '```',
    'See [pools](pools.md), `pool`, and MachineConfigPools.',
  ];
  const page = (last: string) => ({
    file: 'docs/how-to/a.md',
    text: [...lines, last].join('\n'),
    blocks: [],
  });
  expect(unlinkedTerms(page('Two pools.'), ['Pool', 'Grant'])).toEqual(['line 7: Pool']);
  expect(unlinkedTerms(page('Two [pools](../glossary.md#pool), a pool.'), ['Pool'])).toEqual([]);
});
