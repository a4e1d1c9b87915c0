import { duration } from '../../../view/words.ts';
import type { LeaseRow, NodeRow, PageView, PlanRow, Table } from '../../model/view.ts';
import { hashOf } from '../route.ts';
import { HoldList } from '../sections/holds.tsx';
import { formatLeft, formatState, shortImage, staged, withShortHashes } from '../words.ts';
import { Ago, useNow } from '../zone.tsx';

interface NodeDetailProps {
  readonly name: string | undefined;
  readonly node: NodeRow | undefined;
  readonly plans: Table<PlanRow>;
  readonly lease: LeaseRow | undefined;
}

/** One node: its state, what it runs, what its update requires and why. */
export function NodeDetail(props: NodeDetailProps) {
  return (
    <aside class="detail" aria-label="Node in detail">
      <Detail {...props} />
    </aside>
  );
}

function Detail({ name, node, plans, lease }: NodeDetailProps) {
  const now = useNow(5_000);
  if (name === undefined) return <p class="quiet">Select a node to see its state and the reason for it.</p>;
  if (node === undefined) {
    return (
      <>
        <h3>{name}</h3>
        <p class="quiet">This node no longer exists.</p>
      </>
    );
  }
  return (
    <>
      <h3>
        <a href={hashOf({ kind: 'node', name })}>{name}</a>
      </h3>
      <p class="now">
        <span class={`cell sample ${node.state}`} aria-hidden="true" /> <strong>{formatState(node)}</strong>
        {node.since === undefined ? null : (
          <>
            {' · '}
            <Ago time={Date.parse(node.since)} now={now} />
          </>
        )}
      </p>
      {node.what === undefined || node.blockedBy !== undefined ? null : (
        <p title={node.what}>{withShortHashes(node.what)}</p>
      )}
      <Verification node={node} now={now} />
      <BlockingPods node={node} />
      <HoldList holds={node.holds ?? []} now={now} />
      {node.state !== 'staging' || node.staging === undefined ? null : <Staging staging={node.staging} />}
      <Marks node={node} lease={lease} />
      <dl>
        <Version title="Runs" config={node.config.current} image={node.image?.current} />
        {node.config.desired === node.config.current && node.image?.desired === node.image?.current ? null : (
          <Version title="Target" config={node.config.desired} image={node.image?.desired} />
        )}
      </dl>
      <Plan title="Required actions" plan={node.plan === undefined ? undefined : plans[node.plan]} />
      <LastUpdate last={node.last} plans={plans} now={now} />
    </>
  );
}

function Staging({ staging }: { readonly staging: NonNullable<NodeRow['staging']> }) {
  return (
    <p>
      <progress max={staging.bytesTotal} value={staging.bytesDone} aria-label="Staged" /> {staged(staging)} %
      of {Math.ceil(staging.bytesTotal / 1_000_000)} MB
    </p>
  );
}

function Marks({ node, lease }: { readonly node: NodeRow; readonly lease: LeaseRow | undefined }) {
  const marks = [
    ...(node.ready ? [] : ['Not ready']),
    ...(node.cordoned ? ['Cordoned'] : []),
    ...(node.obstacle === undefined ? [] : ['Skipped by rollouts']),
    ...(lease?.ours === true ? ['Lease held by this rollout'] : []),
    ...(node.handedOver === undefined ? [] : [`Handed over by Cluster API (${node.handedOver.owner})`]),
    ...(node.zone === undefined ? [] : [`Zone ${node.zone}`]),
  ];
  return marks.length === 0 ? null : (
    <ul class="marks">
      {marks.map((mark) => (
        <li key={mark}>{mark}</li>
      ))}
    </ul>
  );
}

/** The health check that fails, what it printed, and how long it may. */
function Verification({ node: { verification }, now }: { readonly node: NodeRow; readonly now: number }) {
  if (verification === undefined) return null;
  const { check, output, deadline } = verification;
  return (
    <>
      {check === undefined ? null : (
        <p>
          Failing health check: <b>{check}</b>
        </p>
      )}
      {output === undefined ? null : <pre class="check-output">{output}</pre>}
      {deadline === undefined ? null : <p>The update fails unless it passes: {formatLeft(deadline, now)}</p>}
    </>
  );
}

/** The pods that the node's drain waits for, and why they can't be evicted. */
function BlockingPods({ node: { blockedBy = [] } }: { readonly node: NodeRow }) {
  if (blockedBy.length === 0) return null;
  return (
    <>
      <p>The drain waits for:</p>
      <ul class="blocking-pods">
        {blockedBy.map(({ pod, reason }) => (
          <li key={pod}>
            pod <code>{pod}</code>: {reason}
          </li>
        ))}
      </ul>
    </>
  );
}

function Version({
  title,
  config,
  image,
}: {
  readonly title: string;
  readonly config: string | undefined;
  readonly image: string | undefined;
}) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <code title={config}>{withShortHashes(config ?? 'nothing yet')}</code>
        {image === undefined ? null : <code title={image}>{shortImage(image)}</code>}
      </dd>
    </div>
  );
}

function Plan({ title, plan }: { readonly title: string; readonly plan: PlanRow | undefined }) {
  if (plan === undefined) return null;
  return (
    <>
      <h4>{title}</h4>
      <ol class="actions">
        {plan.actions.length === 0 ? <li>none, the change is applied live</li> : null}
        {plan.actions.map((action) => (
          <li key={action}>{action}</li>
        ))}
      </ol>
      {plan.causes.length === 0 ? null : (
        <ul class="causes">
          {plan.causes.map(({ subject, change, rule, actions }) => (
            <li key={`${subject} ${change}`}>
              <code>{subject}</code> {change}: {actions.join(', ') || 'None'}{' '}
              <span class="quiet">{rule}</span>
            </li>
          ))}
        </ul>
      )}
      <p class="quiet">Source: {plan.source}</p>
    </>
  );
}

const RESULTS = { Succeeded: 'succeeded', RolledBack: 'rolled back', Failed: 'failed' } as const;

function LastUpdate({
  last,
  plans,
  now,
}: Pick<NodeRow, 'last'> & Pick<PageView, 'plans'> & { readonly now: number }) {
  if (last === undefined) return null;
  return (
    <>
      <h4>Last update</h4>
      <p>
        {RESULTS[last.result]} <Ago time={last.end} now={now} />, in {duration(last.end - last.start)}
      </p>
      {last.message === undefined ? null : <p>{last.message}</p>}
      <Plan title="Actions taken" plan={plans[last.plan]} />
    </>
  );
}
