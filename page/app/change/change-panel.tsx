import { useEffect, useState } from 'preact/hooks';
import { errorMessage } from '../../../api/error-message.ts';
import { plural } from '../../../api/plural.ts';
import type { ChangeEntry, PlanRow, PoolChange, PoolRow } from '../../model/view.ts';
import { storedToken } from '../connection/sign-in.tsx';
import { withShortHashes } from '../words.ts';
import { Contents } from './contents.tsx';

/** What the plan of an update says of a change, which every viewer may read. */
export type PlannedChange = Pick<PlanRow['causes'][number], 'subject' | 'change'>;

interface ChangePanelProps {
  readonly name: string;
  readonly pool: PoolRow;
  readonly planned: readonly PlannedChange[];
}

/** The change that a pool's rollout brings. Its lines are read when it is opened. */
export function ChangePanel({ name, pool, planned }: ChangePanelProps) {
  const [open, setOpen] = useState(false);
  const { from, config, source } = pool;
  const revision = source?.revision;
  return (
    <details class="change" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {from === undefined ? 'Last change' : 'Change'}
        {planned.length === 0 ? '' : `: ${plural(planned.length, 'item')}`}
        {revision === undefined ? null : (
          <>
            {' '}
            · revision <code title={revision}>{withShortHashes(revision)}</code>
          </>
        )}
      </summary>
      {open ? <ChangeBody key={`${from} ${config}`} name={name} pool={pool} planned={planned} /> : null}
    </details>
  );
}

function ChangeBody({ name, pool: { source, config, from }, planned }: ChangePanelProps) {
  const [answer, setAnswer] = useState<Answer<PoolChange>>();
  useEffect(() => {
    const stop = new AbortController();
    const url = `./change?pool=${encodeURIComponent(name)}`;
    void ask<PoolChange>(url, stop.signal).then((given) => {
      if (!stop.signal.aborted) setAnswer(given);
    });
    return () => stop.abort();
  }, [name]);
  const change = answer?.ok === true ? answer.value : undefined;
  return (
    <div class="change-body">
      <dl>
        <Config title="From" config={change?.from ?? from} revision={change?.fromRevision} />
        <Config title="To" config={change?.to ?? config} revision={change?.revision} />
        {source?.url === undefined && source?.revision === undefined ? null : (
          <div>
            <dt>Source</dt>
            <dd>
              {source.url} {source.revision === undefined ? null : <code>{source.revision}</code>}
            </dd>
          </div>
        )}
      </dl>
      {answer === undefined ? <p class="quiet">Reading the change…</p> : null}
      {answer?.ok === false ? <Unread why={answer.why} planned={planned} /> : null}
      {change?.contents === undefined ? null : <Contents contents={change.contents} />}
      {change === undefined ? null : <Entries change={change} />}
    </div>
  );
}

function Config({
  title,
  config,
  revision,
}: {
  readonly title: string;
  readonly config: string | undefined;
  readonly revision: number | undefined;
}) {
  if (config === undefined || config === '') return null;
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <code title={config}>{withShortHashes(config)}</code>
        {revision === undefined ? '' : `, revision ${revision} of the pool`}
      </dd>
    </div>
  );
}

/** Without the permission, or while the cluster doesn't answer: what the nodes' plans say. */
function Unread({ why, planned }: { readonly why: string; readonly planned: readonly PlannedChange[] }) {
  return (
    <>
      <p class="quiet">The lines can't be shown: {why}</p>
      <ul class="entries">
        {planned.map(({ subject, change }) => (
          <li key={`${subject} ${change}`}>
            <code>{subject}</code> {change}
          </li>
        ))}
      </ul>
    </>
  );
}

function Entries({ change: { changes, remark } }: { readonly change: PoolChange }) {
  return (
    <>
      {changes.length === 0 && remark === undefined ? (
        <p class="quiet">Nothing changes on the disks of nodes.</p>
      ) : null}
      <ul class="entries">
        {changes.map((entry) => (
          <li key={`${entry.kind} ${entry.subject}`}>
            <Entry entry={entry} />
          </li>
        ))}
      </ul>
      {remark === undefined ? null : <p class="quiet">Not complete: {remark}.</p>}
    </>
  );
}

function Entry({ entry }: { readonly entry: ChangeEntry }) {
  const { subject, change, machineConfigs, added, removed, lines, withheld } = entry;
  const head = (
    <>
      <code>{subject}</code> {change}
      {added === undefined ? '' : ` +${added}`}
      {removed === undefined ? '' : ` −${removed}`}
      {machineConfigs.length === 0 ? null : <span class="quiet"> by {machineConfigs.join(', ')}</span>}
    </>
  );
  if (lines === undefined) {
    return (
      <p>
        {head}
        {withheld === undefined ? null : <span class="quiet"> · not shown: {withheld}</span>}
      </p>
    );
  }
  return (
    <details>
      <summary>{head}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section class="diff" tabIndex={0} aria-label={`Lines of ${subject}`}>
        <pre>
          {lines.map((line, index) => (
            // The place of a line is all that it has.
            <span key={index} class={kindOf(line)}>
              {line}
              {'\n'}
            </span>
          ))}
        </pre>
      </section>
    </details>
  );
}

function kindOf(line: string): string {
  if (line.startsWith('@@')) return 'place';
  return line.startsWith('+') ? 'plus' : line.startsWith('-') ? 'minus' : '';
}

/** What the server said to a request. */
export type Answer<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly why: string };

/** ms; the server has its own deadline, which is shorter. */
const DEADLINE_MS = 30_000;

/** @returns JSON of the server, or why there is none. */
async function ask<T>(url: string, signal: AbortSignal): Promise<Answer<T>> {
  const token = storedToken();
  try {
    const response = await fetch(url, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      cache: 'no-store',
      signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
    });
    if (!response.ok) return { ok: false, why: (await response.text()).trim() };
    return { ok: true, value: (await response.json()) as T };
  } catch (error) {
    return { ok: false, why: errorMessage(error) };
  }
}
