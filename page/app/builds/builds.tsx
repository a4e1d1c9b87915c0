import type { TargetedEvent } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { duration } from '../../../view/words.ts';
import type { BuildRow, PageView } from '../../model/view.ts';
import { hashOf } from '../route.ts';
import { shortImage, withShortHashes } from '../words.ts';
import { Ago, useNow } from '../zone.tsx';

/** The number of builds that are shown, newest first. */
const SHOWN = 12;

/** Whether it is prepared is of no interest until it builds. */
const wordOf = (state: BuildRow['state']) => (state === 'Prepared' ? 'pending' : state.toLowerCase());

interface BuildsProps extends Pick<PageView, 'builds' | 'logs'> {
  /** The build that the address leads to, which is shown however old it is. */
  readonly linked: string | undefined;
}

/** Builds, newest first: the state, what the image requires of nodes, and the end of the log. */
export function Builds({ builds, logs, linked }: BuildsProps) {
  const newest = Object.entries(builds)
    .toSorted(([, a], [, b]) => b.created - a.created)
    .filter(([name], index) => index < SHOWN || name === linked);
  return (
    <section id="builds" aria-labelledby="builds-title">
      <h2 id="builds-title">Image builds</h2>
      {newest.length === 0 ? (
        <p class="quiet">No builds: layering is disabled, or nothing has changed.</p>
      ) : null}
      <ul class="builds">
        {newest.map(([name, build]) => (
          <Build key={name} name={name} build={build} log={logs[name]} />
        ))}
      </ul>
    </section>
  );
}

interface BuildProps {
  readonly name: string;
  readonly build: BuildRow;
  readonly log: readonly string[] | undefined;
}

function Build({ name, build, log }: BuildProps) {
  return (
    <li class={`build ${wordOf(build.state)}`} data-build={name}>
      <h3>
        <span class={`sign ${wordOf(build.state)}`} aria-hidden="true" />
        <a href={hashOf({ kind: 'build', name })}>Image for {build.pool}</a>{' '}
        <span class="state">
          {wordOf(build.state)} <Times build={build} />
        </span>
      </h3>
      {build.state === 'Succeeded' || build.what === undefined ? null : (
        <p title={build.what}>{withShortHashes(build.what)}</p>
      )}
      <Transitions build={build} />
      {log === undefined || log.length === 0 ? null : (
        <Log name={name} lines={log} open={build.state === 'Building'} />
      )}
      <p class="names-of quiet">
        {build.way === undefined ? '' : `${build.way} · `}
        <code title={name}>{withShortHashes(name)}</code>
        {build.image === undefined ? null : (
          <>
            {' · '}
            <code title={build.image}>{shortImage(build.image)}</code>
          </>
        )}
      </p>
    </li>
  );
}

function Times({ build: { created, start = created, end } }: { readonly build: BuildRow }) {
  const now = useNow(1_000);
  return (
    <span>
      {end === undefined ? (
        `for ${duration(now - start)}`
      ) : (
        <>
          in {duration(end - start)}, <Ago time={end} now={now} />
        </>
      )}
    </span>
  );
}

/** The transitions in the image's label, by what nodes run now. */
function Transitions({ build: { transitions } }: { readonly build: BuildRow }) {
  if (transitions.length === 0) return null;
  return (
    <dl class="transitions">
      {transitions.map(({ from, actions }) => (
        <div key={from}>
          <dt>{actions}</dt>
          <dd>
            from <code title={from}>{withShortHashes(from)}</code>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Keeps the end of a growing log visible, unless the user scrolled away from it. */
interface LogProps {
  readonly name: string;
  readonly lines: readonly string[];
  readonly open: boolean;
}

function Log({ name, lines, open }: LogProps) {
  const box = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  });
  const onScroll = ({ currentTarget }: TargetedEvent<HTMLElement>) => {
    const { scrollHeight, scrollTop, clientHeight } = currentTarget;
    atEnd.current = scrollHeight - scrollTop - clientHeight < 20;
  };
  return (
    <details open={open}>
      <summary>Log</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section class="log" ref={box} tabIndex={0} onScroll={onScroll} aria-label={`Log of ${name}`}>
        <pre>{lines.join('\n')}</pre>
      </section>
    </details>
  );
}
