import { Command, Option } from 'commander';
import { defaultPolicySettings } from '../../disruption/default-policies.ts';
import { validatePolicy } from '../../disruption/effective-policies.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { DEFAULT_NODE_USER } from '../../machineconfig/reconcilable.ts';
import { COSTS, type Cost, isAtLeast } from '../cost.ts';
import { CommandError, exitCodes } from '../exit-codes.ts';
import { type Change, type ChangeFlags, readChange, withChange } from '../file-flags.ts';
import { withLeaseNamespace } from '../live-objects.ts';
import { PlanOutput } from '../output-schemas.ts';
import { outputFlag, print, printAs, TABLE_FORMATS } from '../print.ts';
import { costOfPlan, keepsPolicy, type PoolPlan, planPools } from './plan.ts';
import { formatPlan, formatPlanMarkdown } from './plan-text.ts';

interface PlanFlags extends ChangeFlags {
  readonly failOn?: Cost;
  readonly containerRuntimeUnit: string;
  readonly nodeUser: string;
  /** Absent: some of it. */
  readonly diff?: boolean;
}

const EXAMPLES = `
Examples:
  shale plan                                               what the cluster's nodes have yet to do
  shale plan -f new.yaml                                   what new.yaml asks of the cluster
  shale plan --prune -f configs/                           the same where configs/ is everything there will be
  shale plan --from examples -f examples/tour/karg.yaml    of files alone`;

/** `shale plan`: what a change asks of each pool's nodes, before anything is applied. */
export function planCommand(): Command {
  const command = new Command('plan').description(
    'Say what a change asks of the nodes of each pool, and why.',
  );
  return withLeaseNamespace(withChange(command))
    .addOption(outputFlag(...TABLE_FORMATS, 'markdown'))
    .addOption(
      new Option('--fail-on <cost>', "exit with 1 when a pool's nodes pay that or more").choices(
        COSTS.filter((cost) => cost !== 'nothing'),
      ),
    )
    .option(
      '--diff',
      'all that changes in files and units, line by line; default: the first of it; -o markdown folds it up',
    )
    .option('--no-diff', 'nothing of that, in Markdown either')
    .option(
      '--container-runtime-unit <name>',
      'the unit that default policies mean by the container runtime, as the operator has it',
      defaultPolicySettings.containerRuntimeUnit,
    )
    .option(
      '--node-user <name>',
      'the user whose SSH keys and password may change, as the operator has it',
      DEFAULT_NODE_USER,
    )
    .addHelpText('after', EXAMPLES)
    .action(async (flags: PlanFlags) => {
      if (flags.filename.length === 0 && (flags.from.length > 0 || flags.prune === true)) {
        throw new CommandError('plan: what changes? name files by -f', exitCodes.usage);
      }
      const change = await readChange(flags);
      refuseInvalidPolicy(change);
      const { before, after, live } = change;
      const { containerRuntimeUnit, nodeUser } = flags;
      const plans = planPools({
        before,
        after,
        settings: { containerRuntimeUnit },
        nodeUser,
        ...(live === undefined ? {} : { live: { cluster: live, now: Date.now() } }),
      });
      printPlans(flags.output, plans, flags.diff);
      if (plans.some((plan) => 'problems' in plan || plan.refusing !== undefined))
        throw new CommandError('not every pool can take the change');
      failOn(plans, flags.failOn);
    });
}

/** A policy that breaks a rule would not come into force: a plan by it would be of something else. */
function refuseInvalidPolicy({ before, after, live }: Change): void {
  const policy = after.machineConfiguration?.spec?.nodeDisruptionPolicy;
  if (policy === undefined || (live !== undefined && keepsPolicy(before, after))) return;
  const problems = validatePolicy(policy).map(formatProblem);
  if (problems.length > 0) {
    throw new CommandError(`MachineConfiguration cluster: ${problems.join('\n  ')}`, exitCodes.usage);
  }
}

function printPlans(format: string, plans: readonly PoolPlan[], diff: boolean | undefined): void {
  const diffs = diff === undefined ? 'some' : diff ? 'all' : 'none';
  if (format === 'table') print(formatPlan(plans, { diffs }));
  else if (format === 'markdown') print(formatPlanMarkdown(plans, { diffs }));
  else printAs(format, PlanOutput, plans);
}

function failOn(plans: readonly PoolPlan[], least: Cost | undefined): void {
  if (least === undefined) return;
  const costly = plans.filter((plan) => !('problems' in plan) && isAtLeast(costOfPlan(plan), least));
  if (costly.length === 0) return;
  throw new CommandError(`--fail-on ${least}: ${costly.map(({ pool }) => `pool ${pool}`).join(', ')}`);
}
