import type { BuildContents } from '../../../api/build-contents.ts';
import { plural } from '../../../api/plural.ts';
import { withShortHashes } from '../words.ts';

/** What is different inside a pool's new image: the summary, and what it counts, folded. */
export function Contents({ contents }: { readonly contents: BuildContents }) {
  const { summary, base, packages, unreadable = [] } = contents;
  if (summary === undefined) return null;
  const listed = packages?.first ?? [];
  return (
    <section class="contents" aria-label="Contents of the image">
      <p>Image: {summary}</p>
      {base === undefined ? null : (
        <p class="quiet">
          Base image <code title={base.from}>{withShortHashes(base.from)}</code>
          {' → '}
          <code title={base.to}>{withShortHashes(base.to)}</code>
        </p>
      )}
      {unreadable.map((why) => (
        <p key={why} class="quiet">
          Not compared: {why}
        </p>
      ))}
      {packages === undefined || listed.length === 0 ? null : <Packages packages={packages} />}
    </section>
  );
}

function Packages({ packages }: { readonly packages: NonNullable<BuildContents['packages']> }) {
  const { first, ...counts } = packages;
  const more = Object.values(counts).reduce((sum, each) => sum + each, 0) - first.length;
  return (
    <details>
      <summary>{plural(first.length + more, 'package')}</summary>
      <ul>
        {first.map(({ change, name, from, to }) => (
          <li key={`${change} ${name} ${from} ${to}`}>
            <code>{name}</code> {change}{' '}
            <span class="quiet">
              {from}
              {from === undefined || to === undefined ? '' : ' → '}
              {to}
            </span>
          </li>
        ))}
      </ul>
      {more > 0 ? <p class="quiet">And {plural(more, 'package')} more.</p> : null}
    </details>
  );
}
