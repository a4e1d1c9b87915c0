import { z } from 'zod';
import { formatActions } from '../../api/disruption-action.ts';
import { noun, plural } from '../../api/plural.ts';
import { visibleLine } from '../../api/visible-text.ts';
import type { PoolPlan } from '../../predict/plan.ts';
import { markdownRow } from '../command-line/markdown.ts';
import { textTable } from '../command-line/output.ts';
import { PlanOutput } from '../command-line/output-schemas.ts';
import type { ClusterFinding } from './fleet.ts';

/** What `shale plan --clusters -o json` prints. */
export const FleetPlanOutput = z.array(
  z.union([
    z.strictObject({ cluster: z.string(), error: z.string() }),
    z.strictObject({ cluster: z.string(), plans: PlanOutput }),
  ]),
);

/** What a change costs in one of several clusters. */
export interface ClusterPlan {
  readonly plans: readonly PoolPlan[];
}

const HEAD = ['CLUSTER', 'POOL', 'NODES', 'ACTIONS'];

/**
 * @param details returns the plan of one cluster as text.
 * @returns what a change costs in each cluster in one table, and below it the plans: one for all clusters where it is
 *   the same.
 */
export function formatFleetPlan(
  findings: readonly ClusterFinding<ClusterPlan>[],
  details: (plans: readonly PoolPlan[]) => string,
): string {
  const blocks = groupsOf(findings, details).map(
    ({ clusters, text }) => `${headingOf(clusters)}:\n${text.replace(/^(?=.)/gm, '  ')}`,
  );
  return [textTable(HEAD, findings.flatMap(rowsOf)).join('\n'), ...blocks].join('\n\n');
}

/** @returns the same as Markdown, for a comment on a pull request. */
export function formatFleetPlanMarkdown(
  findings: readonly ClusterFinding<ClusterPlan>[],
  details: (plans: readonly PoolPlan[]) => string,
): string {
  const rows = findings.flatMap(rowsOf).map((row) => markdownRow(row));
  const blocks = groupsOf(findings, details).map(
    ({ clusters, text }) => `## ${headingOf(clusters)}\n\n${text}`,
  );
  return [
    [markdownRow(HEAD.map((each) => each.toLowerCase())), '|-|-|-|-|', ...rows].join('\n'),
    ...blocks,
  ].join('\n\n');
}

function rowsOf(finding: ClusterFinding<ClusterPlan>): string[][] {
  const { cluster } = finding;
  if ('error' in finding) return [[cluster, '-', '-', `unknown: ${finding.error}`]];
  return finding.plans.map((plan) => [cluster, plan.pool, ...costOf(plan)]);
}

function costOf(plan: PoolPlan): [string, string] {
  if ('problems' in plan) return ['-', 'refused'];
  const { nodes = 0, outcomes, causes, actions } = plan;
  const left = outcomes === undefined ? 0 : nodes - outcomes.nothing;
  const pending = left === 0 ? 'no changes' : `no changes, ${plural(left, 'node')} still to update`;
  return [String(nodes), causes.length === 0 ? pending : formatActions(actions)];
}

interface Group {
  readonly clusters: readonly string[];
  readonly text: string;
}

function groupsOf(
  findings: readonly ClusterFinding<ClusterPlan>[],
  details: (plans: readonly PoolPlan[]) => string,
): readonly Group[] {
  const known = findings.flatMap((finding) =>
    'error' in finding ? [] : [{ cluster: finding.cluster, text: details(finding.plans) }],
  );
  return [...Map.groupBy(known, ({ text }) => text)].map(([text, members]) => ({
    text,
    clusters: members.map(({ cluster }) => visibleLine(cluster)),
  }));
}

function headingOf(clusters: readonly string[]): string {
  return `${noun(clusters.length, 'cluster')} ${clusters.join(', ')}`;
}
