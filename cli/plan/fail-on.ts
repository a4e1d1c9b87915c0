import { InvalidArgumentError } from 'commander';
import {
  formatCounts,
  LEAST_SEVERITIES,
  type LeastSeverity,
  reachesSeverity,
} from '../../api/vulnerabilities.ts';
import { severityCounts } from '../../image/vulnerabilities/compare-reports.ts';
import { COSTS, type Cost, isAtLeast } from '../../predict/cost.ts';
import { costOfPlan, type PoolAsk, type PoolPlan } from '../../predict/plan.ts';

/** What a change must not do, or a plan fails. */
export type FailOn = { readonly text: string } & (
  | { readonly kind: 'cost'; readonly least: Cost }
  | { readonly kind: 'kernel' }
  | { readonly kind: 'removed-package'; readonly name: string }
  | { readonly kind: 'severity'; readonly least: LeastSeverity }
);

const costs = COSTS.filter((cost) => cost !== 'nothing');

/** What the flag takes, for its help. */
export const FAIL_ON = [
  ...costs,
  'kernel',
  'removed-package=NAME',
  ...LEAST_SEVERITIES.map((severity) => `severity=${severity}`),
];

/**
 * @param earlier what the flag had before.
 * @throws InvalidArgumentError, which commander prints with the flag's name.
 */
export function parseFailOn(text: string, earlier: readonly FailOn[] = []): readonly FailOn[] {
  const [key = '', value = ''] = text.split(/=(.*)/s);
  const least = LEAST_SEVERITIES.find((severity) => severity === value);
  const cost = costs.find((each) => each === text);
  if (cost !== undefined) return [...earlier, { text, kind: 'cost', least: cost }];
  if (text === 'kernel') return [...earlier, { text, kind: 'kernel' }];
  if (key === 'removed-package' && value !== '')
    return [...earlier, { text, kind: 'removed-package', name: value }];
  if (key === 'severity' && least !== undefined) return [...earlier, { text, kind: 'severity', least }];
  throw new InvalidArgumentError(`Expected one of ${FAIL_ON.join(', ')}`);
}

/** @returns whether the contents of base images have to be read for it. */
export function needsContents({ kind }: FailOn): boolean {
  return kind === 'kernel' || kind === 'removed-package';
}

/** @returns one line for each condition that a plan meets, or that can't be told of it. */
export function failures(plans: readonly PoolPlan[], conditions: readonly FailOn[]): readonly string[] {
  return conditions.flatMap((condition) => {
    const hits = plans.flatMap((plan) => {
      const why = 'problems' in plan ? undefined : hitBy(condition, plan);
      return why === undefined ? [] : [`pool ${plan.pool}${why === '' ? '' : ` (${why})`}`];
    });
    return hits.length === 0 ? [] : [`--fail-on ${condition.text}: ${hits.join(', ')}`];
  });
}

/** @returns why a pool meets a condition, '' where that is said elsewhere; undefined where it doesn't. */
function hitBy(condition: FailOn, plan: PoolAsk): string | undefined {
  switch (condition.kind) {
    case 'cost':
      return isAtLeast(costOfPlan(plan), condition.least) ? '' : undefined;
    case 'kernel':
      return otherKernel(plan);
    case 'removed-package':
      return removedPackage(plan, condition.name);
    case 'severity':
      return broughtSeverity(plan, condition.least);
  }
}

function otherKernel({ baseChange, changes }: PoolAsk): string | undefined {
  if (changes.some(({ kind, subject }) => kind === 'field' && subject === 'kernelType')) return 'kernelType';
  if (baseChange === undefined) return undefined;
  const { contents, unread } = baseChange;
  if (contents === undefined) return notKnown('its kernel', unread);
  const { added, removed } = contents.kernels;
  if (added.length === 0 && removed.length === 0) return undefined;
  return `${removed.join(', ') || 'none'} -> ${added.join(', ') || 'none'}`;
}

function removedPackage({ baseChange }: PoolAsk, name: string): string | undefined {
  if (baseChange === undefined) return undefined;
  const { contents, unread } = baseChange;
  if (contents?.packages === undefined)
    return notKnown('what it has of packages', unread ?? contents?.unknown.join(', '));
  const own = contents.packages.filter((each) => each.name === name);
  // A package of which several versions can be installed loses one and gets another.
  const isRemoved = own.some(({ change }) => change === 'removed') && !own.some(({ to }) => to !== undefined);
  return isRemoved ? '' : undefined;
}

/** Ids that a line names. */
const NAMED = 3;

function broughtSeverity({ baseChange }: PoolAsk, least: LeastSeverity): string | undefined {
  if (baseChange === undefined) return undefined;
  const { vulnerabilities, vulnerabilitiesUnread } = baseChange;
  if (vulnerabilities?.brought === undefined)
    return notKnown('what it brings', vulnerabilitiesUnread ?? vulnerabilities?.remarks.join('; '));
  const brought = vulnerabilities.brought.filter(({ severity }) => reachesSeverity(severity, least));
  if (brought.length === 0) return undefined;
  const named = brought.slice(0, NAMED).map(({ id }) => id);
  return `${formatCounts(severityCounts(brought))}: ${[...named, ...(brought.length > NAMED ? ['…'] : [])].join(', ')}`;
}

function notKnown(what: string, why: string | undefined): string {
  return `${what} is not known${why === undefined || why === '' ? '' : `: ${why}`}`;
}
