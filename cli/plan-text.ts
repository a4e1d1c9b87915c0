import { formatActions } from '../api/disruption-action.ts';
import { COSTS } from './cost.ts';
import type { PoolAsk, PoolPlan } from './plan.ts';

/** @returns a plan in words: a line for each pool, and one below it for each cause. */
export function formatPlan(plans: readonly PoolPlan[]): string {
  return plans.flatMap(formatPool).join('\n');
}

function formatPool(plan: PoolPlan): string[] {
  if ('problems' in plan) {
    return [`pool ${plan.pool}: refused`, ...plan.problems.map((problem) => `  ${problem}`)];
  }
  const causes = plan.causes.map(
    ({ subject, change, rule, actions }) => `  ${change} ${subject}: ${formatActions(actions)} (${rule})`,
  );
  const outcomes = inWords(plan);
  return [
    headOf(plan),
    ...(outcomes === '' ? [] : [`  from what they run now: ${outcomes}`]),
    ...causes,
    ...(plan.warnings ?? []).map((warning) => `  warning: ${warning}`),
  ];
}

function headOf(plan: PoolAsk): string {
  const count = plan.nodes === undefined ? '' : ` (${plan.nodes} ${plan.nodes === 1 ? 'node' : 'nodes'})`;
  return `pool ${plan.pool}${count}: ${plan.causes.length === 0 ? 'nothing changes' : formatActions(plan.actions)}`;
}

/** @returns such as `2 restart, 1 reboot`; '' where no cluster was asked, or no node has anything to do. */
function inWords({ outcomes }: PoolAsk): string {
  if (outcomes === undefined || COSTS.every((cost) => cost === 'nothing' || outcomes[cost] === 0)) return '';
  return COSTS.filter((cost) => outcomes[cost] > 0)
    .map((cost) => `${outcomes[cost]} ${cost === 'nothing' ? 'nothing to do' : cost}`)
    .join(', ');
}

/** @returns a plan as Markdown, to be put under a pull request. */
export function formatPlanMarkdown(plans: readonly PoolPlan[]): string {
  return plans.flatMap(markdownOfPool).join('\n');
}

function markdownOfPool(plan: PoolPlan): string[] {
  if ('problems' in plan) {
    return [`### pool ${plan.pool}: refused`, '', ...plan.problems.map(listItem), ''];
  }
  const rows = plan.causes.map(({ subject, change, rule, actions }) =>
    tableRow([change, `\`${subject}\``, formatActions(actions), rule]),
  );
  const table =
    rows.length === 0 ? [] : [tableRow(['change', 'of', 'asks for', 'why']), '|-|-|-|-|', ...rows, ''];
  const outcomes = inWords(plan);
  return [
    `### ${headOf(plan)}`,
    '',
    ...(outcomes === '' ? [] : [`From what they run now: ${outcomes}.`, '']),
    ...table,
    ...(plan.warnings ?? []).map(listItem),
    ...(plan.warnings === undefined ? [] : ['']),
  ];
}

const listItem = (text: string): string => `- ${inline(text)}`;
const tableRow = (cells: readonly string[]): string => `| ${cells.map(inline).join(' | ')} |`;

/** Text of objects must not end a cell or a line of the table it stands in. */
function inline(text: string): string {
  return text.replace(/\r?\n/g, ' ').replaceAll('|', '\\|');
}
