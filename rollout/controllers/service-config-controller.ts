import type { Logger } from 'pino';
import { type ContainerRuntimeConfig, ContainerRuntimeConfigs } from '../../api/container-runtime-config.ts';
import {
  KubeletConfigs,
  type ServiceConfigConditionType,
  type ServiceConfigStatus,
} from '../../api/kubelet-config.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { type Condition, type Kind, LONGEST_MESSAGE, readinessConditions } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import type { Result } from '../../cluster/controller.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import { type FailingStep, type FailingSteps, formatFailing } from '../../cluster/failing-steps.ts';
import { type Readiness, setReadiness } from '../../cluster/readiness.ts';
import { setCondition, updateStatus } from '../../cluster/update-object.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import {
  formatPoolProblem,
  generatedFrom,
  type ServiceConfig,
  type ServiceVerdict,
  serviceConfigs,
} from '../../machineconfig/service-configs.ts';
import { KUBELET_DROP_INS } from '../../machineconfig/services/kubelet-files.ts';
import { recordedSuffix } from '../../machineconfig/services/name-suffixes.ts';
import { CONTAINERD_DROP_INS } from '../../machineconfig/services/runtime-files.ts';
import { type Attempts, attempt, endAttempts } from '../act/attempt.ts';
import type { Caches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';

export interface ServiceConfigControllerParts {
  readonly client: ApiClient;
  readonly caches: Pick<
    Caches,
    'kubeletConfigs' | 'containerRuntimeConfigs' | 'pools' | 'nodes' | 'machineConfigs'
  >;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly options: Pick<RolloutOptions, 'rendering'>;
  readonly failing: FailingSteps;
  /** ms since the epoch. */
  readonly now: () => number;
}

/**
 * Maintains the MachineConfigs of KubeletConfigs and ContainerRuntimeConfigs, and reports in their statuses what became
 * of them. All of them in one pass: their names, and what one of them replaces of another, depend on one another.
 *
 * An object with problems changes nothing: what was generated from its last valid version stays. The rendering
 * controller sees only MachineConfigs.
 */
export class ServiceConfigController {
  readonly #parts: ServiceConfigControllerParts;

  constructor(parts: ServiceConfigControllerParts) {
    this.#parts = parts;
  }

  /** @throws StepsFailed when something could not be written; everything else has been written all the same. */
  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    const { caches, options } = this.#parts;
    const verdicts = serviceConfigs(
      {
        kubeletConfigs: caches.kubeletConfigs.list(),
        containerRuntimeConfigs: caches.containerRuntimeConfigs.list(),
        pools: caches.pools.list(),
        nodes: caches.nodes.list(),
      },
      options.rendering.controllerVersion,
    );
    const outcome = await this.#generate(verdicts, signal);
    const { attempts } = outcome;
    // What may be over in a moment changes no status.
    const settled = verdicts.filter(({ object }) => outcome.failed.get(object)?.isReported !== false);
    for (const verdict of settled) {
      const step = { object: verdict.object, doing: 'writing its status' };
      await attempt(this.#parts, step, attempts, signal, () => this.#report(verdict, outcome, signal));
    }
    return endAttempts(attempts);
  }

  /** One object whose MachineConfigs can't be written keeps no other from its own. */
  async #generate(verdicts: readonly ServiceVerdict[], signal: AbortSignal): Promise<Outcome> {
    const attempts: Attempts = { errors: [], waits: [] };
    const foreign = new Set<string>();
    const failed = new Map<ServiceConfig, FailingStep>();
    const step = async ({ object }: ServiceVerdict, doing: string, work: () => Promise<void>) => {
      const failing = await attempt(this.#parts, { object, doing }, attempts, signal, work);
      if (failing !== undefined) failed.set(object, failing);
    };
    for (const verdict of verdicts)
      await step(verdict, 'recording the name of its MachineConfigs', () => this.#record(verdict, signal));
    for (const verdict of verdicts.filter(({ object }) => !failed.has(object)))
      await step(verdict, 'generating its MachineConfigs', async () => {
        for (const config of verdict.generated)
          if (!(await this.#write(config, signal))) foreign.add(config.metadata.name);
      });
    await this.#deleteOthers(verdicts, attempts, signal);
    return { foreign, failed, attempts };
  }

  /** The suffix is recorded before the MachineConfigs that have it exist. */
  async #record({ object, suffix }: ServiceVerdict, signal: AbortSignal): Promise<void> {
    if (suffix === undefined || recordedSuffix(object) === suffix) return;
    const body = { metadata: { annotations: { [annotations.nameSuffix]: suffix } } };
    const patched = await this.#parts.client
      .patch(kindOf(object), object.metadata.name, { type: 'merge', body }, { signal })
      // Deleted in the meantime: its event brings this controller back.
      .catch(unlessGone);
    if (patched !== undefined) this.#remember(patched);
  }

  /** @returns false for a name that a MachineConfig of somebody else has, which is left alone. */
  async #write(config: MachineConfig, signal: AbortSignal): Promise<boolean> {
    const { client, caches, log } = this.#parts;
    const { name } = config.metadata;
    const known = caches.machineConfigs.get(name);
    if (known === undefined) {
      caches.machineConfigs.remember(await client.create(MachineConfigs, config, { signal }));
      log.info({ config: name }, 'generated a MachineConfig');
      return true;
    }
    if (generatedFrom(known) === undefined) return false;
    if (isSame(known, config)) return true;
    const metadata = { ...known.metadata, ...config.metadata };
    caches.machineConfigs.remember(
      await client.replace(MachineConfigs, { ...known, metadata, spec: config.spec }, { signal }),
    );
    log.info({ config: name }, 'changed a generated MachineConfig');
    return true;
  }

  async #deleteOthers(
    verdicts: readonly ServiceVerdict[],
    attempts: Attempts,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, caches, log } = this.#parts;
    const needed = new Set(
      verdicts.flatMap(({ generated, kept }) => [...generated.map(({ metadata }) => metadata.name), ...kept]),
    );
    for (const config of caches.machineConfigs.list()) {
      const { name } = config.metadata;
      if (generatedFrom(config) === undefined || needed.has(name)) continue;
      const step = { object: config, doing: 'deleting it, as nothing asks for it any more' };
      await attempt(this.#parts, step, attempts, signal, async () => {
        await client.delete(MachineConfigs, name, { signal });
        log.info({ config: name }, 'deleted a generated MachineConfig');
      });
    }
  }

  async #report(verdict: ServiceVerdict, outcome: Outcome, signal: AbortSignal): Promise<void> {
    const { client, events, log, now } = this.#parts;
    const { object } = verdict;
    const conditions = conditionsOf(verdict, outcome);
    const readiness = readinessOf(verdict, conditions, outcome);
    const written = await updateStatus(
      client,
      kindOf(object),
      this.#latest(object),
      ({ status, metadata }) =>
        statusOf(status, metadata.generation, { conditions, readiness }, new Date(now())),
      { signal },
    ).catch(unlessGone);
    if (written !== undefined) this.#remember(written);
    for (const { type, message } of conditions) {
      const isNews = !object.status?.conditions?.some(
        (known) => known.type === type && known.message === message,
      );
      if (type === 'Success' || !isNews) continue;
      log.warn({ kind: object.kind, name: object.metadata.name, condition: type, message }, 'has problems');
      events.warning(object, type === 'Failure' ? 'ServiceConfigFailure' : 'ServiceConfigWarning', message);
    }
  }

  #latest(object: ServiceConfig): ServiceConfig {
    const { caches } = this.#parts;
    const { name } = object.metadata;
    const cached =
      object.kind === KubeletConfigs.kind
        ? caches.kubeletConfigs.get(name)
        : caches.containerRuntimeConfigs.get(name);
    return cached ?? object;
  }

  #remember(object: ServiceConfig): void {
    const { caches } = this.#parts;
    if (object.kind === KubeletConfigs.kind) caches.kubeletConfigs.remember(object);
    else caches.containerRuntimeConfigs.remember(object as ContainerRuntimeConfig);
  }
}

function kindOf(object: ServiceConfig): Kind<ServiceConfig> {
  return (
    object.kind === KubeletConfigs.kind ? KubeletConfigs : ContainerRuntimeConfigs
  ) as Kind<ServiceConfig>;
}

function unlessGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

/** Compares what this controller decides. */
function isSame(a: MachineConfig, b: MachineConfig): boolean {
  const decided = ({ metadata, spec }: MachineConfig) =>
    canonicalJson([spec, metadata.labels ?? {}, metadata.ownerReferences ?? []]);
  return decided(a) === decided(b);
}

type ServiceCondition = Pick<Condition, 'status' | 'reason' | 'message'> & {
  readonly type: ServiceConfigConditionType;
};

/** What became of the MachineConfigs of all objects. */
interface Outcome {
  /** Names that MachineConfigs of somebody else have. */
  readonly foreign: ReadonlySet<string>;
  /** What could not be written, by the object that asks for it. */
  readonly failed: ReadonlyMap<ServiceConfig, FailingStep>;
  readonly attempts: Attempts;
}

function failureTo({ failed }: Outcome, object: ServiceConfig): string[] {
  const step = failed.get(object);
  return step === undefined ? [] : [formatFailing(step)];
}

/** As in MCO there is either Success or Failure, and it is the last condition, which tools of MCO read. */
function conditionsOf(verdict: ServiceVerdict, outcome: Outcome): ServiceCondition[] {
  const { foreign } = outcome;
  const { object, problems, poolProblems, warnings, generated } = verdict;
  const names = generated.map(({ metadata }) => metadata.name);
  const taken = names.filter((name) => foreign.has(name));
  const failures = [
    ...failureTo(outcome, object),
    ...problems.map(formatProblem),
    ...poolProblems.map(formatPoolProblem),
    ...taken.map(
      (name) => `MachineConfig ${name} exists and was not generated by Shale; expected another name`,
    ),
  ];
  const warning: ServiceCondition[] =
    warnings.length === 0
      ? []
      : [
          {
            type: 'Warning',
            status: 'True',
            reason: 'WithoutEffect',
            message: joined(warnings.map(formatProblem)),
          },
        ];
  if (failures.length > 0) {
    return [
      ...warning,
      { type: 'Failure', status: 'True', reason: 'NotInEffect', message: joined(failures) },
    ];
  }
  const message = joined([successMessage(object, names, generated)]);
  return [...warning, { type: 'Success', status: 'True', reason: 'Generated', message }];
}

/**
 * Generated MachineConfigs are all that the object itself asks for; the pools report when nodes run them. What the
 * cluster decides, such as which pools and nodes there are, may come later in the same apply.
 */
function readinessOf(
  { object, problems, poolProblems, generated }: ServiceVerdict,
  conditions: readonly ServiceCondition[],
  outcome: Outcome,
): Readiness {
  const { type, reason, message } = conditions.at(-1) ?? { type: 'Success', reason: '', message: '' };
  if (type === 'Success') return { kind: 'ready', message };
  const needsSomebody =
    failureTo(outcome, object).length > 0 ||
    problems.length > 0 ||
    poolProblems.some(({ isOpen }) => !isOpen) ||
    generated.some(({ metadata }) => outcome.foreign.has(metadata.name));
  return { kind: needsSomebody ? 'stalled' : 'reconciling', reason, message };
}

const joined = (parts: readonly string[]) => parts.join('; ').slice(0, LONGEST_MESSAGE);

/** Which drop-ins a service reads is a setting of the host: the message says what it takes. */
function successMessage(
  { kind }: ServiceConfig,
  names: readonly string[],
  configs: readonly MachineConfig[],
): string {
  if (names.length === 0) return 'The object sets nothing, so no MachineConfig is generated';
  const generated = `Generated ${names.join(', ')}`;
  if (kind === KubeletConfigs.kind) {
    return `${generated}. Kubelets read it if they are started with --config-dir=${KUBELET_DROP_INS}; their other flags override it`;
  }
  const isContainerd = configs.some(({ spec }) => JSON.stringify(spec).includes(CONTAINERD_DROP_INS));
  return isContainerd
    ? `${generated}. containerd reads it if its configuration imports ${CONTAINERD_DROP_INS}/*.toml`
    : generated;
}

function statusOf(
  status: ServiceConfigStatus | undefined,
  generation: number | undefined,
  desired: { readonly conditions: readonly ServiceCondition[]; readonly readiness: Readiness },
  now: Date,
): ServiceConfigStatus {
  const known = status?.conditions ?? [];
  const own = desired.conditions.flatMap((condition) => {
    const before = known.filter(({ type }) => type === condition.type);
    return setCondition(before, { ...condition, observedGeneration: generation }, now);
  });
  const readiness = setReadiness(known.filter(isReadiness), desired.readiness, generation, now);
  return { ...present({ observedGeneration: generation }), conditions: [...readiness, ...own] };
}

function isReadiness({ type }: Condition): boolean {
  return type in readinessConditions;
}
