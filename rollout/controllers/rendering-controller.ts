import type { Logger } from 'pino';
import { IMAGE_CONFIG } from '../../api/image-sources.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import {
  MACHINE_CONFIGURATION,
  OS_IMAGE_STREAMS_CONFIG_MAP,
  SIGNING_KEYS_CONFIG_MAP,
} from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { plural } from '../../api/plural.ts';
import { type ApiClient, isAlreadyExists } from '../../cluster/api-client.ts';
import { done, type Result } from '../../cluster/controller.ts';
import { aboutChange, type EventRecorder } from '../../cluster/events.ts';
import type { Tracer } from '../../cluster/tracing/span.ts';
import { setCondition, updateStatus } from '../../cluster/update-object.ts';
import { storageOverrides } from '../../disruption/settings.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import { isGenerated, nameTaken } from '../../machineconfig/generated-config.ts';
import { STREAM_PARENT } from '../../machineconfig/os-image-streams.ts';
import { ParsedConfigs } from '../../machineconfig/parse-machine-config.ts';
import { runningConfig, selectedConfigs } from '../../machineconfig/pools.ts';
import {
  type ConfigProblems,
  formatConfigProblems,
  formatProblem,
  type Problem,
} from '../../machineconfig/problem.ts';
import { irreconcilable } from '../../machineconfig/reconcilable.ts';
import { registriesMachineConfig } from '../../machineconfig/registries/machine-config.ts';
import { pushSpecsByPool } from '../../machineconfig/registries/own-images.ts';
import { renderPool } from '../../machineconfig/render.ts';
import { sameRecord, withRecordOf } from '../../machineconfig/rendered-annotations.ts';
import { withPredicted } from '../../predict/rendering/predicted-transitions.ts';
import type { Caches, ImageSourceCaches, NodeCaches, PoolCaches } from '../caches.ts';
import type { DueRenderings } from '../due-renderings.ts';
import type { RolloutOptions } from '../options.ts';
import { poolConfiguration, sameConfiguration } from '../rendering/pool-rendering.ts';
import { Predictions } from '../rendering/predictions.ts';
import { RenderedGarbage } from '../rendering/rendered-garbage.ts';
import { hasExactly, withKeeper } from '../rendering/rendered-owners.ts';
import { renderSpan } from '../reports/spans.ts';

export interface RenderingControllerParts {
  readonly client: ApiClient;
  readonly caches: NodeCaches &
    PoolCaches &
    ImageSourceCaches &
    Pick<Caches, 'osImageStreams' | 'signingKeys'>;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly options: Pick<RolloutOptions, 'namespace' | 'rendering' | 'hosts'>;
  readonly renderings: DueRenderings;
  /** Called when a pool has been rendered: nothing else may tell that nothing changed. */
  readonly onRendered: (pool: string) => void;
  readonly tracer: Tracer;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** The result of a part of the rendering: a config, or problems. */
type Outcome<T> =
  | { readonly ok: true; readonly config: T }
  | { readonly ok: false; readonly problems: readonly string[] };

interface Rendered {
  readonly name: string;
  /** What has no effect in the MachineConfigs that it was rendered from. */
  readonly warnings: readonly ConfigProblems[];
}

/**
 * The controller of rendered configs: merges what a pool selects into one immutable MachineConfig and makes it the
 * pool's target. What can't be rendered, or can't be applied to a running node, changes nothing but the pool's
 * RenderDegraded condition: nodes keep what they run.
 */
export class RenderingController {
  readonly #parts: RenderingControllerParts;
  readonly #predictions: Predictions;
  readonly #garbage: RenderedGarbage;
  readonly #parsedBefore = new ParsedConfigs();

  constructor(parts: RenderingControllerParts) {
    this.#parts = parts;
    this.#predictions = new Predictions(parts);
    this.#garbage = new RenderedGarbage(parts);
  }

  /** @throws ApiError */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { renderings, onRendered } = this.#parts;
    const wasDue = renderings.has(name);
    await renderings.during(name, () => this.#renderOnce(name, signal));
    if (wasDue) onRendered(name);
    return done;
  }

  async #renderOnce(name: string, signal: AbortSignal): Promise<void> {
    const { caches } = this.#parts;
    const pool = caches.pools.get(name);
    if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return;
    // Read first: what changes from here on brings the pool back.
    const observed = configVersions(pool, caches.machineConfigs.list());
    const registries = await this.#generateRegistries(pool, signal);
    const outcome = registries.ok ? await this.#render(pool, registries.config, signal) : registries;
    await this.#writeStatus(pool, observed, outcome, signal);
    await this.#garbage.collect(pool, outcome.ok ? outcome.config.name : undefined, signal);
  }

  async #render(
    pool: MachineConfigPool,
    about: readonly Problem[],
    signal: AbortSignal,
  ): Promise<Outcome<Rendered>> {
    const { client, caches, options, tracer, now } = this.#parts;
    const startedAt = now();
    const configs = selectedConfigs(pool, this.#configs());
    const { controllerVersion, limits } = options.rendering;
    const streams = caches.osImageStreams.get(OS_IMAGE_STREAMS_CONFIG_MAP, options.namespace)?.data;
    const rendering = renderPool({
      pool,
      configs,
      controllerVersion,
      limits,
      parsedBefore: this.#parsedBefore,
      streams,
      worker: caches.pools.get(STREAM_PARENT),
    });
    if (!rendering.ok) return { ok: false, problems: rendering.problems.map(formatConfigProblems) };
    const { sources } = rendering;
    const configuration = caches.machineConfigurations.get(MACHINE_CONFIGURATION);
    const rendered = withKeeper(rendering.rendered, configuration);
    const running = caches.machineConfigs.get(runningConfig(pool) ?? '');
    const overrides = storageOverrides(configuration?.spec);
    const refused =
      running === undefined
        ? []
        : irreconcilable(
            { running, target: rendered, sources: configs },
            { limits, nodeUser: options.hosts.nodeUser, overrides },
          );
    if (refused.length > 0) {
      const problems = refused.map(
        (problem) => `can't be applied to running nodes: ${formatConfigProblems(problem)}`,
      );
      return { ok: false, problems };
    }
    const target = poolConfiguration(rendered.metadata.name, sources);
    if (sameConfiguration(pool.spec.configuration, target)) {
      await this.#createRendered(rendered, signal);
    } else {
      // Before the pool has it as its target, so that people can read what it requires before a node changes.
      const predicted = this.#predictions.of(pool, rendered);
      await this.#createRendered(withPredicted(rendered, predicted), signal);
      await this.#predictions.record(pool, rendered, predicted, signal);
      const body = {
        metadata: { resourceVersion: pool.metadata.resourceVersion },
        spec: { configuration: target },
      };
      caches.pools.remember(
        await client.patch(MachineConfigPools, pool.metadata.name, { type: 'merge', body }, { signal }),
      );
      aboutChange(this.#parts, target.name).log.info(
        { pool: pool.metadata.name, config: target.name, sources: sources.length },
        'pool has a new target',
      );
      tracer.record(renderSpan(pool.metadata.name, rendered.metadata.name, { startedAt, endedAt: now() }));
    }
    const ofRegistries = about.length === 0 ? [] : [{ machineConfig: '', problems: about }];
    const warnings = [...rendering.warnings, ...ofRegistries];
    return { ok: true, config: { name: rendered.metadata.name, warnings } };
  }

  /**
   * The name is a digest of the content, so an object of that name that differs was tampered with, and is restored: its
   * spec, what is recorded on it, and its owners, which decide when it is deleted.
   */
  async #createRendered(rendered: MachineConfig, signal: AbortSignal): Promise<void> {
    const { client, caches } = this.#parts;
    const { name } = rendered.metadata;
    const { log } = aboutChange(this.#parts, name);
    const present = caches.machineConfigs.get(name);
    if (present === undefined) {
      try {
        caches.machineConfigs.remember(await client.create(MachineConfigs, rendered, { signal }));
        log.info({ config: name }, 'rendered');
      } catch (error) {
        // The cache is behind; its event brings the pool back here.
        if (!isAlreadyExists(error)) throw error;
      }
      return;
    }
    const { ownerReferences = [] } = rendered.metadata;
    const isOwned = hasExactly(present, ownerReferences);
    const isWhole = sameSpec(present, rendered) && sameRecord(present, rendered);
    if (isWhole && isOwned) return;
    if (!isWhole) log.warn({ config: name }, 'a rendered config was changed; restoring it');
    const restored = withRecordOf(present, rendered);
    // An earlier pool of that name may have left it.
    const metadata = { ...restored.metadata, ownerReferences };
    caches.machineConfigs.remember(
      await client.replace(MachineConfigs, { ...restored, metadata, spec: rendered.spec }, { signal }),
    );
  }

  /**
   * Maintains the MachineConfig with the mirrors and signature policies for this pool's nodes. @returns its warnings.
   */
  async #generateRegistries(
    pool: MachineConfigPool,
    signal: AbortSignal,
  ): Promise<Outcome<readonly Problem[]>> {
    const { client, caches } = this.#parts;
    const desired = this.#desiredRegistries(pool);
    if (!desired.ok) return { ok: false, problems: desired.problems.map(formatProblem) };
    const name = generatedName(pool);
    const present = caches.machineConfigs.get(name);
    const config = desired.machineConfig;
    // A MachineConfig that an admin created under this name is neither overwritten nor deleted.
    const taken = config && nameTaken(config, present);
    if (taken !== undefined) return { ok: false, problems: [formatProblem(taken)] };
    if (config === undefined) {
      if (present !== undefined && isGenerated(present))
        await client.delete(MachineConfigs, name, { signal });
    } else if (present === undefined) {
      caches.machineConfigs.remember(await client.create(MachineConfigs, config, { signal }));
    } else if (!sameSpec(present, config)) {
      const replaced = await client.replace(MachineConfigs, { ...present, spec: config.spec }, { signal });
      caches.machineConfigs.remember(replaced);
    }
    return { ok: true, config: desired.warnings };
  }

  #desiredRegistries({ metadata }: MachineConfigPool) {
    const { caches, options } = this.#parts;
    const keys = caches.signingKeys.get(SIGNING_KEYS_CONFIG_MAP, options.namespace)?.data;
    return registriesMachineConfig(metadata.name, {
      icsp: caches.contentSources.list(),
      idms: caches.digestMirrors.list(),
      itms: caches.tagMirrors.list(),
      image: caches.imageConfigs.get(IMAGE_CONFIG),
      clusterPolicies: caches.clusterImagePolicies.list(),
      namespacePolicies: caches.imagePolicies.list(),
      layered: {
        byPool: pushSpecsByPool(caches.machineOSConfigs.list()),
        keys: keys === undefined ? undefined : Object.values(keys),
      },
      controllerVersion: options.rendering.controllerVersion,
    });
  }

  /**
   * Every MachineConfig, the generated ones as they should be now. A custom pool selects worker's too, and would be
   * rendered a second time when worker's pass has written it.
   */
  #configs(): readonly MachineConfig[] {
    const { caches } = this.#parts;
    const pools = caches.pools.list();
    const names = new Set(pools.map(generatedName));
    const others = caches.machineConfigs
      .list()
      .filter((config) => !names.has(config.metadata.name) || !isGenerated(config));
    const generated = pools.flatMap((pool) => {
      const desired = this.#desiredRegistries(pool);
      if (!desired.ok || desired.machineConfig === undefined) return [];
      const present = caches.machineConfigs.get(generatedName(pool));
      return nameTaken(desired.machineConfig, present) === undefined ? [desired.machineConfig] : [];
    });
    return [...others, ...generated];
  }

  /** @param observed the versions of what was rendered. */
  async #writeStatus(
    pool: MachineConfigPool,
    observed: string,
    outcome: Outcome<Rendered>,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, caches, events, log, now } = this.#parts;
    const { name } = pool.metadata;
    const present = pool.status?.conditions ?? [];
    const changed = renderConditions(name, outcome, present).filter(
      ({ type, status, message }) =>
        !present.some((known) => known.type === type && known.status === status && known.message === message),
    );
    if (changed.length === 0 && pool.status?.observedMachineConfigs === observed) return;
    const written = await updateStatus(
      client,
      MachineConfigPools,
      // The configuration may have been written a moment ago.
      caches.pools.get(name) ?? pool,
      ({ status }) => ({
        ...status,
        observedMachineConfigs: observed,
        conditions: changed.reduce<Condition[]>(
          (conditions, condition) => [...setCondition(conditions, condition, new Date(now()))],
          [...(status?.conditions ?? [])],
        ),
      }),
      { signal },
    );
    caches.pools.remember(written);
    for (const { type, status, message } of changed) {
      if (status !== 'True') continue;
      log.warn({ pool: name, condition: type, message }, 'a pool has problems with its MachineConfigs');
      events.warning(pool, type, message);
    }
  }
}

/** @returns the name under which a pool's generated registries config is kept (MCO's). */
function generatedName({ metadata }: MachineConfigPool): string {
  return `99-${metadata.name}-generated-registries`;
}

/** Compares as the API server would store it: key order aside, absent and undefined alike. */
function sameSpec(a: MachineConfig, b: MachineConfig): boolean {
  return canonicalJson(a.spec) === canonicalJson(b.spec);
}

/** MachineConfigs whose problems or warnings a condition names: its message has a limit (LONGEST_MESSAGE). */
const NAMED_CONFIGS = 5;

type RenderCondition = Pick<Condition, 'status' | 'reason' | 'message'> & {
  readonly type: 'RenderDegraded' | 'RenderWarning';
};

/** @param present the pool's conditions: one without warnings gets no condition that says so, unless it had some. */
function renderConditions(
  pool: string,
  outcome: Outcome<Rendered>,
  present: readonly Condition[],
): RenderCondition[] {
  if (!outcome.ok) {
    const message = `Failed to render configuration for pool ${pool}: ${listed(outcome.problems, 'more problem')}`;
    return [{ type: 'RenderDegraded', status: 'True', reason: 'RenderFailed', message }];
  }
  const { warnings } = outcome.config;
  const message = listed(warnings.map(formatConfigProblems), 'more MachineConfig');
  const hadWarnings = present.some(({ type }) => type === 'RenderWarning');
  return [
    { type: 'RenderDegraded', status: 'False', reason: 'Rendered', message: '' },
    ...(warnings.length > 0
      ? [{ type: 'RenderWarning', status: 'True', reason: 'WithoutEffect', message } as const]
      : hadWarnings
        ? [{ type: 'RenderWarning', status: 'False', reason: 'AsExpected', message: '' } as const]
        : []),
  ];
}

function listed(lines: readonly string[], others: string): string {
  const more = lines.length - NAMED_CONFIGS;
  return [...lines.slice(0, NAMED_CONFIGS), ...(more > 0 ? [`and ${plural(more, others)}`] : [])].join('; ');
}
