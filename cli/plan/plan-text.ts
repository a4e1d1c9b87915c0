import { isDeepStrictEqual } from 'node:util';
import { formatActions } from '../../api/disruption-action.ts';
import { formatDuration } from '../../api/duration.ts';
import { noun, plural } from '../../api/plural.ts';
import { visible, visibleLine } from '../../api/visible-text.ts';
import { COSTS } from '../../predict/cost.ts';
import { formatIrreconcilable } from '../../predict/node/irreconcilable-nodes.ts';
import { formatRefusal } from '../../predict/node/refusing-nodes.ts';
import { pinningLines } from '../../predict/objects/pinned-images.ts';
import type { PoolAsk, PoolPlan } from '../../predict/plan.ts';
import { markdownItem, markdownRow } from '../command-line/markdown.ts';
import { packageRows } from '../command-line/package-rows.ts';
import {
  vulnerabilityRemarks,
  vulnerabilityRows,
  vulnerabilitySummary,
} from '../command-line/vulnerability-rows.ts';

/** How the packages of a new base image are shown. */
type PackagesShown = 'counted' | 'listed';

interface PlanTextOptions {
  /** How much of the diffs is printed; `some`: their first lines. */
  readonly diffs: 'none' | 'some' | 'all';
  /** `counted` where it is absent. */
  readonly packages?: PackagesShown;
}

/** Lines of a pool's diffs that are shown by default, so that a plan with a small change fits on one screen. */
const SHOWN_DIFF_LINES = 40;

/** @returns a plan as text: a line for each pool, one below it for each cause, and the diffs. */
export function formatPlan(plans: readonly PoolPlan[], options: PlanTextOptions): string {
  return plans.flatMap((plan, index) => formatPool(plan, plans.slice(0, index), options)).join('\n');
}

function formatPool(
  plan: PoolPlan,
  earlier: readonly PoolPlan[],
  { diffs, packages = 'counted' }: PlanTextOptions,
): string[] {
  if ('problems' in plan) {
    return [`pool ${plan.pool}: refused`, ...plan.problems.map((problem) => `  ${visibleLine(problem)}`)];
  }
  const causes = plan.causes.map(
    ({ subject, change, rule, actions }) => `${change} ${subject}: ${formatActions(actions)} (${rule})`,
  );
  const patches = diffs === 'none' ? [] : patchesOf(plan, earlier, diffs);
  return [
    headOf(plan),
    ...[
      ...aboutOf(plan, packages),
      ...causes,
      ...refusalsOf(plan).map((refusal) => `refused: ${refusal}`),
      ...(plan.warnings ?? []).map((warning) => `warning: ${warning}`),
    ].map((line) => `  ${visibleLine(line)}`),
    ...patches.map((line) => `  ${line}`.trimEnd()),
  ];
}

/** @returns which nodes keep their current config and why, one line each. */
export function refusalsOf({ refusing = [], irreconcilable = [] }: PoolAsk): string[] {
  return [...irreconcilable.map(formatIrreconcilable), ...refusing.map(formatRefusal)];
}

/** A custom pool inherits the changes of worker, which are shown once. */
function patchesOf(
  { changes }: PoolAsk,
  earlier: readonly PoolPlan[],
  shownLines: 'some' | 'all',
): readonly string[] {
  if (changes.length === 0) return [];
  const shown = earlier.find((plan) => 'changes' in plan && isDeepStrictEqual(plan.changes, changes));
  if (shown !== undefined) return [`the diff is the same as for pool ${shown.pool}`];
  const lines = changes.flatMap(({ diff }) => linesOf(diff));
  return limited(
    lines,
    shownLines === 'all' ? lines.length : SHOWN_DIFF_LINES,
    (more) => `… ${plural(more, 'more line')}; use --diff to show all`,
  );
}

/** @returns the first lines, and what is said of how many more there are. */
function limited(lines: readonly string[], most: number, say: (more: number) => string): readonly string[] {
  return lines.length <= most ? lines : [...lines.slice(0, most), say(lines.length - most)];
}

function headOf(plan: PoolAsk): string {
  const count = plan.nodes === undefined ? '' : ` (${plural(plan.nodes, 'node')})`;
  return `pool ${plan.pool}${count}: ${plan.causes.length === 0 ? formatNoChanges(plan) : formatActions(plan.actions)}`;
}

/** The target stays the same, but nodes may still be on their way to it. */
function formatNoChanges({ nodes = 0, outcomes }: PoolAsk): string {
  const left = outcomes === undefined ? 0 : nodes - outcomes.nothing;
  if (left === 0) return 'no changes';
  return `no changes to the target, which ${plural(left, 'node')} ${noun(left, 'does', 'do')} not run yet`;
}

/** What concerns the pool as a whole: one entry for each subject. */
const ABOUT: readonly ((plan: PoolAsk, shown: PackagesShown) => readonly string[])[] = [
  outcomeLines,
  softRebootLines,
  imageLines,
  baseLines,
  pinningLines,
  timeLines,
];

function aboutOf(plan: PoolAsk, shown: PackagesShown): string[] {
  return ABOUT.flatMap((lines) => lines(plan, shown));
}

function softRebootLines({ softReboot }: PoolAsk): string[] {
  return softReboot === undefined
    ? []
    : ['reboot: a soft reboot (userspace only) on nodes where bootc or ostree can keep the kernel running'];
}

function imageLines({ image }: PoolAsk): string[] {
  return image === undefined ? [] : [`image: ${image.way}, ${image.why}`];
}

/** Packages of a new base image that are shown, so that a plan fits on one screen; `shale image diff` shows all. */
const SHOWN_PACKAGES = 20;

/** What a new base image brings, where that is known. */
function baseLines(plan: PoolAsk, shown: PackagesShown): string[] {
  return [...contentsLines(plan, shown), ...vulnerabilityLines(plan)];
}

/** Vulnerabilities that are shown, for the same reason. */
const SHOWN_VULNERABILITIES = 10;

function vulnerabilityLines({ baseChange }: PoolAsk): string[] {
  const { from, to, vulnerabilities, vulnerabilitiesUnread } = baseChange ?? {};
  if (vulnerabilitiesUnread !== undefined)
    return [`vulnerabilities: unknown, no report could be read: ${vulnerabilitiesUnread}`];
  if (vulnerabilities === undefined) return [];
  const rows = vulnerabilityRows(vulnerabilities).map(
    ([change, severity, id, packages]) => `${change} ${severity} ${id}: ${packages}`,
  );
  const shown = limited(
    rows,
    SHOWN_VULNERABILITIES,
    (more) => `${more} more; shale image diff ${from} ${to} shows all`,
  );
  return [
    vulnerabilitySummary(vulnerabilities),
    ...[...shown, ...vulnerabilityRemarks(vulnerabilities)].map((line) => `vulnerabilities: ${line}`),
  ];
}

function contentsLines({ baseChange }: PoolAsk, shown: PackagesShown): string[] {
  const { from, to, contents, unread } = baseChange ?? {};
  if (unread !== undefined) return [`base image: what it brings is not known: ${unread}`];
  if (contents === undefined) return [];
  const { summary, packages = [], unknown } = contents;
  const rows = shown === 'listed' ? packageRows(packages).map((row) => row.join(' ')) : [];
  const lines = limited(
    rows,
    SHOWN_PACKAGES,
    (more) => `${plural(more, 'more package')}; shale image diff ${from} ${to} shows all`,
  );
  return [summary, ...lines, ...unknown.map((why) => `not compared: ${why}`)].map(
    (line) => `base image: ${line}`,
  );
}

function timeLines({ time }: PoolAsk): string[] {
  if (time === undefined) return [];
  const { seconds, why } = time;
  return [
    `time: ${seconds === undefined ? `unknown: ${why}` : `about ${formatDuration(seconds * 1000)} (${why})`}`,
  ];
}

/** @returns such as `nodes: 2 restart, 1 reboot`; none without a cluster, or when no node has to do anything. */
function outcomeLines({ outcomes }: PoolAsk): string[] {
  if (outcomes === undefined || COSTS.every((cost) => cost === 'nothing' || outcomes[cost] === 0)) return [];
  const counts = COSTS.filter((cost) => outcomes[cost] > 0).map(
    (cost) => `${outcomes[cost]} ${cost === 'nothing' ? 'no change' : cost}`,
  );
  return [`nodes: ${counts.join(', ')}`];
}

/** @returns a plan as Markdown, for a comment on a pull request. */
export function formatPlanMarkdown(plans: readonly PoolPlan[], options: PlanTextOptions): string {
  return plans.flatMap((plan) => markdownOfPool(plan, options)).join('\n');
}

function markdownOfPool(plan: PoolPlan, { diffs, packages }: PlanTextOptions): string[] {
  if ('problems' in plan) {
    return [`### pool ${plan.pool}: refused`, '', ...plan.problems.map(markdownItem), ''];
  }
  const rows = plan.causes.map(({ subject, change, rule, actions }) =>
    markdownRow([change, `\`${subject}\``, formatActions(actions), rule]),
  );
  const table =
    rows.length === 0
      ? []
      : [markdownRow(['change', 'subject', 'actions', 'rule']), '|-|-|-|-|', ...rows, ''];
  // Packages are a table of their own.
  const about = aboutOf(plan, 'counted');
  const refusals = refusalsOf(plan);
  return [
    `### ${headOf(plan)}`,
    '',
    ...about.map(markdownItem),
    ...(about.length === 0 ? [] : ['']),
    ...table,
    ...refusals.map((refusal) => markdownItem(`**refused:** ${refusal}`)),
    ...(refusals.length === 0 ? [] : ['']),
    ...(plan.warnings ?? []).map((warning) => markdownItem(`**warning:** ${warning}`)),
    ...(plan.warnings === undefined ? [] : ['']),
    ...(packages === 'listed' ? markdownOfPackages(plan) : []),
    ...(diffs === 'none' ? [] : markdownOfDiffs(plan)),
  ];
}

/** Packages in a comment on a pull request. */
const MARKDOWN_PACKAGES = 200;

function markdownOfPackages({ baseChange }: PoolAsk): string[] {
  const rows = packageRows(baseChange?.contents?.packages ?? []).map(([change, name, version]) =>
    markdownRow([change, `\`${name}\``, version]),
  );
  if (rows.length === 0) return [];
  const more = rows.length - MARKDOWN_PACKAGES;
  return [
    `<details><summary>${plural(rows.length, 'package')}</summary>`,
    '',
    markdownRow(['change', 'package', 'version']),
    '|-|-|-|',
    ...rows.slice(0, MARKDOWN_PACKAGES),
    ...(more > 0
      ? ['', markdownItem(`${plural(more, 'more package')}; run shale image diff to see all`)]
      : []),
    '',
    '</details>',
    '',
  ];
}

/** Lines of one diff in a comment on a pull request, which is limited to about 64 KiB. */
const MARKDOWN_DIFF_LINES = 100;

/** Collapsed, so that a reviewer sees the actions first. */
function markdownOfDiffs({ changes }: PoolAsk): string[] {
  if (changes.length === 0) return [];
  const lines = changes.flatMap(({ diff }) => {
    const cut = (more: number) => `# ${plural(more, 'more line')}; run shale diff to see all`;
    return limited(linesOf(diff), MARKDOWN_DIFF_LINES, cut);
  });
  const fence = fenceFor(lines);
  const summary = `<details><summary>changes on disk</summary>`;
  return [summary, '', `${fence}diff`, ...lines, fence, '', '</details>', ''];
}

/** Escaped before it is trimmed: a carriage return at the end is also a change. */
const linesOf = (diff: string): readonly string[] => visible(diff).trimEnd().split('\n');

/** @returns a fence that is longer than any in the contents (CommonMark, "Fenced code blocks"). */
function fenceFor(lines: readonly string[]): string {
  const longest = Math.max(
    0,
    ...lines.flatMap((line) => line.match(/`+/g) ?? []).map(({ length }) => length),
  );
  return '`'.repeat(Math.max(3, longest + 1));
}
