import type { OpenShiftPolicies } from '../../api/disruption-policy.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import {
  type MachineConfiguration,
  type MachineConfigurationStatus,
  MachineConfigurations,
} from '../../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import {
  CredentialProviderSettings,
  NodeSettings,
  OPENSHIFT_SETTINGS,
} from '../../api/openshift-settings.ts';
import { present } from '../../api/present.ts';
import { type ApiClient, ApiError, isAlreadyExists } from '../../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import {
  type FailingStep,
  type FailingSteps,
  formatFailingOn,
  reportedSteps,
} from '../../cluster/failing-steps.ts';
import { observedAt, type Readiness, setReadiness } from '../../cluster/readiness.ts';
import { setCondition, updateStatus } from '../../cluster/update-object.ts';
import { effectivePolicies, type PolicySettings, policyDigest } from '../../disruption/effective-policies.ts';
import { policiesWithoutPools, poolPolicies, summarisePools } from '../../disruption/pool-policies.ts';
import { refusedSettings, suspensionOf } from '../../disruption/settings.ts';
import { summarisePolicies } from '../../disruption/summarise-policies.ts';
import { configurationProblems, configurationWarnings } from '../../disruption/validate-policy.ts';
import { refusedOpenShiftSettings } from '../../machineconfig/openshift-settings.ts';
import { formatProblem, type Problem } from '../../machineconfig/problem.ts';
import type { Caches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';

export interface PolicyControllerParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'machineConfigurations' | 'pools'>;
  readonly options: Pick<RolloutOptions, 'hosts' | 'createsMachineConfiguration'>;
  /** What fails in the operator: this is the object that is about the whole of it. */
  readonly failing: Pick<FailingSteps, 'reported'>;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** Maintains the one MachineConfiguration and reports in its status which disruption policies are in force. */
export class PolicyController {
  readonly #parts: PolicyControllerParts;

  constructor(parts: PolicyControllerParts) {
    this.#parts = parts;
  }

  /** @param name of the object; every other one than `cluster` is ignored. @throws ApiError */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { client, caches, options, failing, now } = this.#parts;
    if (name !== MACHINE_CONFIGURATION) return done;
    const configuration =
      caches.machineConfigurations.get(name) ??
      (options.createsMachineConfiguration ? await this.#create(signal) : undefined);
    if (configuration === undefined) return done;
    const failures = failing.reported();
    const elsewhere = await settingsElsewhere(client, signal);
    await updateStatus(
      client,
      MachineConfigurations,
      configuration,
      (current) =>
        policyStatus(current, { ...options.hosts, pools: caches.pools.list(), failures, elsewhere }, now()),
      { signal },
    );
    return requeueAfter(ELSEWHERE_MS);
  }

  /** @returns undefined when somebody else created it first: its event brings the controller back. */
  async #create(signal: AbortSignal): Promise<MachineConfiguration | undefined> {
    try {
      return await this.#parts.client.create(MachineConfigurations, withoutPolicies(), { signal });
    } catch (error) {
      if (isAlreadyExists(error)) return undefined;
      throw error;
    }
  }
}

/** ms until objects are read again that are not watched: most clusters don't have their kinds. */
const ELSEWHERE_MS = 5 * 60_000;

/** @returns what OpenShift's objects about all nodes ask for and Shale doesn't do; none where they don't exist. */
async function settingsElsewhere(client: ApiClient, signal: AbortSignal): Promise<readonly Problem[]> {
  const kinds = [NodeSettings, ...CredentialProviderSettings];
  const read = async (kind: (typeof kinds)[number]) => {
    try {
      // A kind that is not served answers 404 like an object that is not there.
      return await client.find(kind, OPENSHIFT_SETTINGS, { signal });
    } catch (error) {
      // The permissions of an earlier version don't have these kinds, and policies are more than what is said of these.
      if (error instanceof ApiError && error.status === 403) return undefined;
      throw error;
    }
  };
  const found = (await Promise.all(kinds.map(read))).filter((object) => object !== undefined);
  const refused = found.flatMap(refusedOpenShiftSettings);
  // A cluster that serves both versions of a kind has one object.
  return refused.filter(({ path }, index) => refused.findIndex((each) => each.path === path) === index);
}

/** Where `kubectl apply` keeps what it applied; it warns about an object without it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * The MachineConfiguration without a policy, as if `kubectl apply` had created it: the next `kubectl apply` adopts it.
 */
function withoutPolicies() {
  const object = (annotations: Readonly<Record<string, string>>) => ({
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { annotations, name: MACHINE_CONFIGURATION },
    spec: {},
  });
  return object({ [LAST_APPLIED]: `${JSON.stringify(object({}))}\n` });
}

/** Condition of the MachineConfiguration: whether spec.nodeDisruptionPolicy is in force. */
const CONDITION = 'NodeDisruptionPolicyApplied';

/** No update starts on any node, by spec.managementState. */
const SUSPENDED = 'Unmanaged';
/** Fields of spec have no effect, because Shale doesn't have them. */
const REFUSED = 'SettingsRefused';
/** Something that the operator has to do fails. */
const DEGRADED = 'Degraded';
/** Failing steps that the condition names. */
const NAMED_FAILURES = 10;

/** How far the MachineConfiguration is: a policy is in force at once, or not at all. */
function policyReadiness(
  { status, reason, message }: Pick<Condition, 'status' | 'reason' | 'message'>,
  failures: readonly FailingStep[],
): Readiness {
  if (status === 'True' && failures.length > 0)
    return { kind: 'stalled', reason: 'StepsFailing', message: formatFailures(failures) };
  return status === 'True' ? { kind: 'ready', message } : { kind: 'stalled', reason, message };
}

/**
 * The status of the MachineConfiguration: the policies in force and their digest.
 *
 * A spec that breaks a rule changes nothing that is in force: the last good policies stay, the defaults where there
 * are none, and the condition says what is wrong.
 *
 * @param settings with every pool of the cluster: policies may be those of selected pools; and with what the operator
 *   can't do.
 * @param now ms since the epoch; goes into the condition when its status changes.
 */
export function policyStatus(
  configuration: MachineConfiguration,
  settings: PolicySettings & {
    readonly pools: readonly MachineConfigPool[];
    readonly failures?: readonly FailingStep[];
    /** What other objects of the cluster ask of all nodes, and Shale doesn't do. */
    readonly elsewhere?: readonly Problem[];
  },
  now: number,
): MachineConfigurationStatus {
  const { spec, status, metadata } = configuration;
  const { pools, failures = [], elsewhere = [] } = settings;
  const problems = configurationProblems(spec);
  const inForce: OpenShiftPolicies =
    problems.length === 0
      ? effectivePolicies(spec?.nodeDisruptionPolicy, settings)
      : {
          // Policies that an earlier version of the operator recorded do not name the unit.
          containerRuntimeUnit: settings.containerRuntimeUnit,
          ...(status?.nodeDisruptionPolicyStatus?.clusterPolicies ?? effectivePolicies(undefined, settings)),
        };
  const verdict: Pick<Condition, 'status' | 'reason' | 'message'> =
    problems.length === 0
      ? {
          status: 'True',
          reason: 'AsSpecified',
          message: [
            'The policies of spec and the defaults are in effect',
            ...configurationWarnings(spec).map(formatProblem),
            ...policiesWithoutPools(spec, pools),
          ].join('; '),
        }
      : {
          status: 'False',
          reason: 'InvalidPolicy',
          message: `The last valid policies remain in effect: ${problems.map(formatProblem).join('; ')}`,
        };
  const { poolPolicies: recorded, failingSteps: _, ...others } = status ?? {};
  return {
    ...others,
    ...present({ observedGeneration: metadata.generation }),
    conditions: observedAt(
      setReadiness(
        withSettings(
          setCondition(status?.conditions ?? [], { type: CONDITION, ...verdict }, new Date(now)),
          [...refusedSettings(spec), ...elsewhere],
          suspensionOf(spec),
          failures,
          new Date(now),
        ),
        policyReadiness(verdict, failures),
        metadata.generation,
        new Date(now),
      ),
      metadata.generation,
    ),
    nodeDisruptionPolicyStatus: { clusterPolicies: inForce },
    summary: present({
      ...summarisePolicies(inForce),
      pools: problems.length === 0 ? summarisePools(spec, pools) : status?.summary?.pools,
    }),
    policyDigest: policyDigest(inForce),
    ...present({
      poolPolicies: problems.length === 0 ? poolPolicies(spec, pools, settings) : recorded,
      failingSteps: failures.length === 0 ? undefined : reportedSteps(failures),
    }),
  };
}

function formatFailures(failures: readonly FailingStep[]): string {
  const more = failures.length - NAMED_FAILURES;
  return [
    ...failures.slice(0, NAMED_FAILURES).map(formatFailingOn),
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join('; ');
}

/** What is to be said besides the policies: conditions that only exist while there is something to report. */
function withSettings(
  conditions: readonly Condition[],
  refusals: readonly Problem[],
  suspension: ReturnType<typeof suspensionOf>,
  failures: readonly FailingStep[],
  now: Date,
): readonly Condition[] {
  const refused = refusals.map(formatProblem);
  const holding = [
    ...(suspension === undefined
      ? []
      : [{ type: SUSPENDED, reason: suspension.reason, message: suspension.why }]),
    ...(refused.length === 0 ? [] : [{ type: REFUSED, reason: 'NotSupported', message: refused.join('; ') }]),
    ...(failures.length === 0
      ? []
      : [{ type: DEGRADED, reason: 'StepsFailing', message: formatFailures(failures) }]),
  ];
  const own = [SUSPENDED, REFUSED, DEGRADED];
  const others = conditions.filter(
    ({ type }) => !own.includes(type) || holding.some((each) => each.type === type),
  );
  return holding.reduce<readonly Condition[]>(
    (all, condition) => setCondition(all, { ...condition, status: 'True' }, now),
    others,
  );
}
