import type { ComponentChildren } from 'preact';
import { plural } from '../../../api/plural.ts';
import type { NodeRow } from '../../model/view.ts';
import { hashOf } from '../route.ts';
import { formatLeft, withShortHashes } from '../words.ts';
import type { Member } from './cell-grid.tsx';

/** Nodes of each kind that are named, and pods of each drain; of more only the number is shown. */
const NAMED = 3;

/** What of a pool's nodes somebody has to look at: updates that failed, health checks that fail, blocked drains. */
export function Attention({ members, now }: { readonly members: readonly Member[]; readonly now: number }) {
  const failed = members.filter(([, { state }]) => state === 'degraded');
  const failing = members.filter(([, { verification }]) => verification?.check !== undefined);
  const blocked = members.filter(([, { blockedBy }]) => blockedBy !== undefined);
  if (failed.length + failing.length + blocked.length === 0) return null;
  return (
    <ul class="attention">
      <Lines nodes={failed} figure="degraded" more="more failed node">
        {(name, { what = '' }) => (
          <>
            <NodeLink name={name} /> failed{what === '' ? '' : `: ${withShortHashes(what)}`}
          </>
        )}
      </Lines>
      <Lines nodes={failing} figure="verifying" more="more failing health check">
        {(name, { verification }) => (
          <>
            Health check <b>{verification?.check}</b> of <NodeLink name={name} /> fails
            <CheckOutput verification={verification} now={now} />
          </>
        )}
      </Lines>
      <Lines nodes={blocked} figure="draining" more="more drain">
        {(name, { blockedBy = [] }) => (
          <>
            Drain of <NodeLink name={name} /> waits for{' '}
            {blockedBy.slice(0, NAMED).map(({ pod, reason }, index) => (
              <span key={pod}>
                {index === 0 ? '' : '; '}pod <code>{pod}</code>: {reason}
              </span>
            ))}
          </>
        )}
      </Lines>
    </ul>
  );
}

/** What a failing check printed, and until when it has to pass. */
function CheckOutput({
  verification: { output = '', deadline } = { waitsFor: '' },
  now,
}: {
  readonly verification: NodeRow['verification'];
  readonly now: number;
}) {
  return (
    <>
      {output.trim() === '' ? '' : `: ${withShortHashes(output)}`}
      {deadline === undefined ? null : <span class="quiet"> · {formatLeft(deadline, now)}</span>}
    </>
  );
}

interface LinesProps {
  readonly nodes: readonly Member[];
  /** The state whose figure stands before each line. */
  readonly figure: NodeRow['state'];
  /** What one node is of those that are not named. */
  readonly more: string;
  readonly children: (name: string, node: NodeRow) => ComponentChildren;
}

function Lines({ nodes, figure, more, children }: LinesProps) {
  const sample = <span class={`cell sample ${figure}`} aria-hidden="true" />;
  return (
    <>
      {nodes.slice(0, NAMED).map(([name, node]) => (
        <li key={name} class="note">
          {sample}
          {children(name, node)}
        </li>
      ))}
      {nodes.length > NAMED ? (
        <li class="note">
          {sample}
          and {plural(nodes.length - NAMED, more)}
        </li>
      ) : null}
    </>
  );
}

function NodeLink({ name }: { readonly name: string }) {
  return <a href={hashOf({ kind: 'node', name })}>{name}</a>;
}
