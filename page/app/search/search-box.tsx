import type { TargetedKeyboardEvent } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { type SearchHit, search } from '../../model/search.ts';
import type { PageView } from '../../model/view.ts';
import { hashOf } from '../route.ts';
import { withShortHashes } from '../words.ts';
import { useNow } from '../zone.tsx';

/** Findings that are shown: further words narrow them down. */
const SHOWN = 20;

const KIND_WORDS: Readonly<Record<SearchHit['kind'], string>> = {
  pool: 'Pool',
  node: 'Node',
  build: 'Build',
  policy: 'Policy',
  lease: 'Lease',
};

/** A search of everything on the page. Arrows move from the field into the list, Escape closes it. */
export function SearchBox({ view }: { readonly view: PageView }) {
  const [text, setText] = useState('');
  const box = useRef<HTMLElement>(null);
  const latest = useRef(view);
  latest.current = view;
  // Nodes change many times in a second.
  const second = useNow(1_000);
  const { found, total } = useMemo(() => search(latest.current, text, SHOWN), [text, second]);
  const close = () => {
    setText('');
    box.current?.querySelector('input')?.focus();
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    if (event.key === 'Escape' && text !== '') {
      event.preventDefault();
      close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops: (Element | null)[] = [...event.currentTarget.querySelectorAll('input, a')];
    const at = stops.indexOf(document.activeElement);
    const next = step === undefined || at === -1 ? undefined : stops[at + step];
    if (!(next instanceof HTMLElement)) return;
    event.preventDefault();
    next.focus();
  };
  const openFirst = (event: Event) => {
    event.preventDefault();
    const first = found[0];
    if (first === undefined) return;
    location.hash = hashOf(first);
    setText('');
  };
  return (
    <search class="search" ref={box} onKeyDown={onKeyDown}>
      <form onSubmit={openFirst}>
        <label class="visually-hidden" for="find">
          Search pools, nodes, builds, policies and leases
        </label>
        <input
          id="find"
          type="search"
          placeholder="Search everything"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </form>
      <p class="visually-hidden" role="status">
        {text.trim() === '' ? '' : total === 0 ? 'Nothing found' : `${total} found`}
      </p>
      {text.trim() === '' ? null : (
        <div class="findings">
          {total === 0 ? <p class="quiet">Nothing on this page matches.</p> : null}
          <ul>
            {found.map((finding) => (
              <li key={hashOf(finding)}>
                <a class="finding" href={hashOf(finding)} onClick={() => setText('')}>
                  <span class="quiet">{KIND_WORDS[finding.kind]}</span> <b>{withShortHashes(finding.name)}</b>
                  {finding.line === undefined ? null : (
                    <span class="line">{withShortHashes(finding.line)}</span>
                  )}
                </a>
              </li>
            ))}
          </ul>
          {total > found.length ? (
            <p class="quiet">and {total - found.length} more; add a word to narrow the search</p>
          ) : null}
        </div>
      )}
    </search>
  );
}
