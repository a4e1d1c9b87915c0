import { Command, Option } from 'commander';
import { settingOf } from '../../api/pool-settings/read-settings.ts';
import { defaultPolicySettings } from '../../disruption/effective-policies.ts';
import { configurationProblems } from '../../disruption/validate-policy.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { DEFAULT_NODE_USER } from '../../machineconfig/reconcilable.ts';
import { keepsPolicy } from '../../predict/objects/offline-policies.ts';
import { warningsOf } from '../../predict/objects/offline-problems.ts';
import { isHindered, type PoolPlan } from '../../predict/plan.ts';
import { type Change, type ChangeFlags, readChangeFlags, withChange } from '../change/file-flags.ts';
import { failOnWarnings, reportWarnings, strictFlag } from '../change/report-warnings.ts';
import { connect, withLeaseNamespace } from '../command-line/cluster-access.ts';
import { CommandError, UsageError } from '../command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS } from '../command-line/output.ts';
import { PlanOutput } from '../command-line/output-schemas.ts';
import { printAs } from '../command-line/print-as.ts';
import {
  REGISTRY_DEADLINE_MS,
  type RegistryFlags,
  withRegistryFlags,
} from '../command-line/registry-flags.ts';
import { type ReportFlags, readReports, withReports } from '../command-line/report-flags.ts';
import {
  type ClusterFinding,
  type FleetFlags,
  failOnUnread,
  fleetOf,
  onFleet,
  withClusters,
} from '../fleet/fleet.ts';
import {
  type ClusterPlan,
  FleetPlanOutput,
  formatFleetPlan,
  formatFleetPlanMarkdown,
} from '../fleet/fleet-plan.ts';
import { READING_DEADLINE_MS } from '../image/read-contents.ts';
import { FAIL_ON, type FailOn, failures, needsContents, parseFailOn } from './fail-on.ts';
import { formatPlan, formatPlanMarkdown } from './plan-text.ts';
import type { LookupAccess } from './pool-registry.ts';
import { predictChange } from './predict-change.ts';
import type { NewBases } from './read-changed-bases.ts';

interface PlanFlags extends ChangeFlags, FleetFlags, RegistryFlags, ReportFlags {
  readonly failOn: readonly FailOn[];
  readonly containerRuntimeUnit: string;
  readonly nodeUser: string;
  readonly strict?: boolean;
  /** Absent: the first lines. */
  readonly diff?: boolean;
  /** Absent: if there is a cluster. */
  readonly resolveTags?: boolean;
  readonly packages?: boolean;
}

const EXAMPLES = `
Examples:
  shale plan                                               what the nodes of the cluster still have to do
  shale plan -f new.yaml                                   what new.yaml requires of the cluster's nodes
  shale plan --prune -f configs/                           the same, with configs/ as the complete new state
  shale plan --clusters=kubeconfigs/ -f new.yaml           the same of each cluster that has a kubeconfig there
  shale plan --from examples -f examples/tour/karg.yaml    from files, without a cluster`;

/** `shale plan`: predicts what a change requires of the nodes of each pool. */
export function planCommand(): Command {
  const command = withReports(withLeaseNamespace(withChange(new Command('plan'))));
  return withClusters(withRegistryFlags(command), 'from')
    .addOption(outputFlag(...TABLE_FORMATS, 'markdown'))
    .addOption(
      new Option(
        '--fail-on <what>',
        `exit with code 1 if the change costs the nodes of a pool this much or more, or if a new base image has another kernel, lacks a package or brings a vulnerability of this severity or worse, or if that can't be told; repeatable; one of ${FAIL_ON.map((each) => `\`${each}\``).join(', ')}`,
      )
        .argParser(parseFailOn)
        .default([], 'nothing'),
    )
    .addOption(strictFlag())
    .option(
      '--diff',
      'print the whole diff of files and units; default: its first lines; -o markdown folds it',
    )
    .option('--no-diff', 'print no diff, not even with -o markdown')
    .option(
      '--resolve-tags',
      'ask registries for the digests of base images that are named by tag, and for what base images consist of; default: for a cluster, but not with --from',
    )
    .option('--no-resolve-tags', 'ask no registry')
    .option(
      '--packages',
      'also list which packages, kernels, units, users and known vulnerabilities a new base image brings; reads the layers of base images that no build has recorded, and the reports that are attached to them; default: a summary of what builds have recorded',
    )
    .option(
      '--container-runtime-unit <name>',
      "container runtime's unit in the default policies; must match the operator's flag",
      defaultPolicySettings.containerRuntimeUnit,
    )
    .option(
      '--node-user <name>',
      "user whose SSH keys and password may change; must match the operator's flag",
      DEFAULT_NODE_USER,
    )
    .addHelpText('after', EXAMPLES)
    .action(async (flags: PlanFlags) => {
      if (flags.filename.length === 0 && (flags.from.length > 0 || flags.prune === true)) {
        throw new UsageError('plan: specify the change with -f');
      }
      if (flags.clusters === undefined) await planOne(flags);
      else await planFleet({ ...flags, clusters: flags.clusters });
    });
}

/** What a change costs, and what of it has no effect. */
interface Planned extends ClusterPlan {
  readonly warnings: readonly string[];
}

async function planOne(flags: PlanFlags): Promise<void> {
  const { plans, warnings } = await planOf(flags);
  reportWarnings(warnings);
  printPlans(plans, flags);
  if (plans.some(isHindered)) throw new CommandError("some pools can't apply the change");
  const failed = failures(plans, flags.failOn);
  if (failed.length > 0) throw new CommandError(failed.join('\n  '));
  if (flags.strict === true) failOnWarnings(warnings);
}

async function planFleet(flags: PlanFlags & { readonly clusters: string | true }): Promise<void> {
  const findings = await onFleet(await fleetOf(flags), flags, planOf);
  const known = findings.flatMap((finding) => ('error' in finding ? [] : [finding]));
  const warnings = [...new Set(known.flatMap((each) => each.warnings))];
  reportWarnings(warnings);
  printFleet(findings, flags);
  const hindered = known.filter(({ plans }) => plans.some(isHindered)).map(({ cluster }) => cluster);
  if (hindered.length > 0)
    throw new CommandError(`some pools can't apply the change, in the clusters: ${hindered.join(', ')}`);
  const failed = known.flatMap(({ cluster, plans }) =>
    failures(plans, flags.failOn).map((line) => `cluster ${cluster}: ${line}`),
  );
  if (failed.length > 0) throw new CommandError(failed.join('\n  '));
  failOnUnread(findings);
  if (flags.strict === true) failOnWarnings(warnings);
}

/** @throws {CommandError} */
async function planOf(flags: PlanFlags): Promise<Planned> {
  const change = await readChangeFlags(flags);
  refuseInvalidPolicy(change);
  const { containerRuntimeUnit, nodeUser } = flags;
  const predicted = await predictChange(change, {
    settings: { containerRuntimeUnit, nodeUser },
    registries: await registriesOf(change, flags),
    newBases: await newBasesOf(change, flags),
    signal: AbortSignal.timeout(readsContents(flags) ? READING_DEADLINE_MS : REGISTRY_DEADLINE_MS),
  });
  return { plans: predicted.map(({ plan }) => plan), warnings: newWarnings(change) };
}

/** @returns how registries are asked; undefined where none may be asked. */
async function registriesOf(change: Change, flags: PlanFlags): Promise<LookupAccess | undefined> {
  const { resolveTags = change.live !== undefined } = flags;
  return resolveTags ? accessTo(change, flags) : undefined;
}

function readsContents({ packages, failOn }: PlanFlags): boolean {
  return packages === true || failOn.some(needsContents);
}

/** @returns what is read of new base images; undefined for nothing. */
async function newBasesOf(change: Change, flags: PlanFlags): Promise<NewBases | undefined> {
  const contents = readsContents(flags);
  const given = await readReports(flags);
  const asksReports =
    flags.packages === true ||
    flags.failOn.some(({ kind }) => kind === 'severity') ||
    asksForHolds(change, flags);
  const reports = asksReports || given.length > 0 ? given : undefined;
  if (!contents && reports === undefined) return undefined;
  return { access: await accessTo(change, flags), contents: contents ? 'all' : 'recorded', reports };
}

/** Of a pool that holds such updates back, a plan says so, if it may ask registries. */
function asksForHolds({ after, live }: Change, { resolveTags = live !== undefined }: PlanFlags): boolean {
  return resolveTags && after.pools.some((pool) => settingOf(pool, 'holds').vulnerabilities !== undefined);
}

async function accessTo({ live }: Change, flags: PlanFlags): Promise<LookupAccess> {
  const { namespace } = flags;
  const cluster = live === undefined ? undefined : { client: await connect(flags), namespace };
  return { flags, cluster };
}

/** What the change brings that has no effect. */
function newWarnings({ before, after }: Change): string[] {
  const known = new Set(warningsOf(before));
  return warningsOf(after).filter((warning) => !known.has(warning));
}

/** An invalid policy doesn't take effect, so a plan with it would be wrong. */
function refuseInvalidPolicy({ before, after, live }: Change): void {
  if (live !== undefined && keepsPolicy(before, after)) return;
  const problems = configurationProblems(after.machineConfiguration?.spec).map(formatProblem);
  if (problems.length > 0) {
    throw new UsageError(`MachineConfiguration cluster: ${problems.join('\n  ')}`);
  }
}

function printPlans(plans: readonly PoolPlan[], flags: PlanFlags): void {
  if (flags.output === 'table') print(formatPlan(plans, shownOf(flags)));
  else if (flags.output === 'markdown') print(formatPlanMarkdown(plans, shownOf(flags)));
  else printAs(flags.output, PlanOutput, plans);
}

function printFleet(findings: readonly ClusterFinding<Planned>[], flags: PlanFlags): void {
  const shown = shownOf(flags);
  if (flags.output === 'table') print(formatFleetPlan(findings, (plans) => formatPlan(plans, shown)));
  else if (flags.output === 'markdown')
    print(formatFleetPlanMarkdown(findings, (plans) => formatPlanMarkdown(plans, shown)));
  else printAs(flags.output, FleetPlanOutput, findings.map(withoutWarnings));
}

/** Warnings are printed on standard error, as of one cluster. */
function withoutWarnings(finding: ClusterFinding<Planned>): ClusterFinding<ClusterPlan> {
  return 'error' in finding ? finding : { cluster: finding.cluster, plans: finding.plans };
}

function shownOf({ diff, packages }: PlanFlags) {
  const diffs = diff === undefined ? 'some' : diff ? 'all' : 'none';
  return { diffs, packages: packages === true ? 'listed' : 'counted' } as const;
}
