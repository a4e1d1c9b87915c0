import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations, labels, MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { present } from '../../api/present.ts';
import type { Digest } from '../../api/references.ts';
import { type BuildDecision, decideBuild, pushSpecOf } from '../../builder/decide.ts';
import { buildStatus } from '../../builder/status.ts';
import { appendBuild } from '../../builder/steps/append-build.ts';
import { knownStates } from '../../builder/steps/known-states.ts';
import { baseRequests, lookUpBases } from '../../cli/plan/look-up-bases.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { unlistedConfigs } from '../../disruption/label-coverage.ts';
import { formatNodeState } from '../../disruption/transitions.ts';
import { goArchitecture } from '../../image/manifest.ts';
import { byDigest, parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { DEFAULT_LIMITS } from '../../machineconfig/ignition/contents.ts';
import { requestedBase } from '../../predict/image/image-inputs.ts';
import { BUILD_NAME_VERSION } from '../../predict/image/requested-image.ts';
import type { ClusterState } from '../../predict/objects/cluster-state.ts';
import { changedCluster, type OfflineCluster } from '../../predict/objects/offline-cluster.ts';
import { renderOffline } from '../../predict/objects/offline-rendering.ts';
import type { PoolPlan } from '../../predict/plan.ts';
import { assignedSpec } from '../../rollout/pools/node-target.ts';
import { newRevisions } from '../../rollout/pools/pool-record.ts';
import { nodeTarget, type PoolTarget, poolTarget } from '../../rollout/pools/pool-target.ts';
import { aPool } from '../fixtures/objects.ts';
import { planned } from '../fixtures/planned.ts';
import { slots } from './slots.ts';
import { type Policies, policyOf } from './steps.ts';

export const POOL = 'worker';
export const ARCHITECTURE = goArchitecture(process.arch);
const CREATED = '1970-01-01T00:00:00Z';
/** A build that only labels an image again leads to no other: more than two in a row never end. */
const MOST_BUILDS = 4;

/** What an admin wants of the pool. */
export interface Wanted {
  /** Of each slot, the variant. */
  readonly variants: readonly number[];
  readonly policies: Policies;
  /** Name of the base image that MachineConfigs have, if any. */
  readonly osImageURL: string | undefined;
  /** Absent: the pool is not layered. */
  readonly layered: { readonly baseImage: string } | undefined;
}

/** @returns the objects that an admin, or the layering switch, has for it in the cluster. */
export function objectsOf({ variants, osImageURL, layered }: Wanted, repository: string) {
  const configs = [
    machineConfig('00-walk', {
      config: {
        storage: { files: [{ path: '/etc/walk-always', mode: 0o644, contents: { source: 'data:,' } }] },
      },
      ...present({ osImageURL }),
    }),
    ...slots.flatMap(({ name, variants: contents }, index) => {
      const spec = contents[variants[index] ?? 0]?.spec;
      return spec === undefined ? [] : [machineConfig(`50-walk-${name}`, spec)];
    }),
  ];
  return { configs, machineOSConfig: layered && machineOSConfig(layered.baseImage, repository) };
}

function machineConfig(name: string, { config = {}, ...spec }: { readonly config?: object }): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, labels: { [labels.role]: POOL } },
    spec: { config: { ignition: { version: '3.5.0' }, ...config }, ...spec },
  };
}

function machineOSConfig(baseImage: string, repository: string): MachineOSConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSConfig',
    metadata: { name: POOL, generation: 1 },
    spec: { machineConfigPool: { name: POOL }, renderedImagePushSpec: `${repository}:latest`, baseImage },
  };
}

/**
 * The control plane of a walk: what is in the cluster, what operator and builder decide of it, and what `shale plan`
 * says.
 */
export class WalkCluster {
  readonly #registry: RegistryClient;
  readonly #repository: string;
  readonly #signal: AbortSignal;
  readonly rendered = new Map<string, MachineConfig>();
  #pool: MachineConfigPool = aPool(POOL);
  #objects: ReturnType<typeof objectsOf> | undefined;
  #policies: ClusterPolicies = effectivePolicies(undefined, defaultPolicySettings);
  #policySpec: ReturnType<typeof policyOf> = {};
  #named: string | undefined;
  #record: readonly PoolRevision[] = [];
  builds: readonly MachineOSBuild[] = [];

  /** @param repository where images are pushed, without a tag. */
  constructor(registry: RegistryClient, repository: string, signal: AbortSignal) {
    this.#registry = registry;
    this.#repository = repository;
    this.#signal = signal;
  }

  get machineConfiguration(): MachineConfiguration {
    const clusterPolicies = this.#policies;
    return {
      apiVersion: 'operator.openshift.io/v1',
      kind: 'MachineConfiguration',
      metadata: { name: MACHINE_CONFIGURATION, generation: 1 },
      spec: { nodeDisruptionPolicy: this.#policySpec },
      status: {
        observedGeneration: 1,
        nodeDisruptionPolicyStatus: { clusterPolicies },
        policyDigest: policyDigest(clusterPolicies),
      },
    };
  }

  /** @returns what `shale plan` says of a change before it is made. */
  async plan(wanted: Wanted, nodes: readonly MachineConfigNode[]): Promise<PoolPlan> {
    const objects = this.#present();
    const limits = DEFAULT_LIMITS;
    const before = changedCluster([], objects, { prune: false, limits });
    const after = this.#after(wanted);
    const cluster: ClusterState = {
      rendered: this.rendered,
      machineConfigNodes: nodes,
      nodes: [],
      builds: this.builds,
    };
    const { registry } = parseReference(this.#repository);
    const flags = { plainHttp: [registry] };
    const lookups = await lookUpBases(baseRequests(before, after), { flags }, this.#signal);
    const [plan, ...others] = planned(before, after, { lookups, cluster });
    if (plan === undefined || others.length > 0) throw new Error('a plan of one pool was expected');
    return plan;
  }

  #present(): readonly KubernetesObject[] {
    const { configs = [] } = this.#objects ?? {};
    const layered = this.#machineOSConfig();
    return [this.#pool, this.machineConfiguration, ...configs, ...(layered === undefined ? [] : [layered])];
  }

  #after(wanted: Wanted): OfflineCluster {
    const { configs, machineOSConfig: layered } = objectsOf(wanted, this.#repository);
    const spec = { nodeDisruptionPolicy: policyOf(wanted.policies) };
    const pool = this.#pool;
    const machineConfiguration = { ...this.machineConfiguration, spec };
    const objects = [pool, machineConfiguration, ...configs, ...(layered === undefined ? [] : [layered])];
    return changedCluster([], objects, { prune: false, limits: DEFAULT_LIMITS });
  }

  /** Makes the change: objects, the rendered config that the operator makes of them, and the policies in force. */
  apply(wanted: Wanted): MachineConfig {
    const after = this.#after(wanted);
    const rendering = renderOffline(after, this.#pool);
    if (!rendering.ok) throw new Error(rendering.problems.join('\n'));
    const { name } = rendering.rendered.metadata;
    const rendered = this.rendered.get(name) ?? rendering.rendered;
    this.rendered.set(name, rendered);
    this.#objects = objectsOf(wanted, this.#repository);
    this.#policySpec = policyOf(wanted.policies);
    this.#policies = effectivePolicies(this.#policySpec, defaultPolicySettings);
    const configuration = {
      name,
      source: rendering.configs.map(({ metadata, kind }) => ({ kind, name: metadata.name })),
    };
    this.#pool = {
      ...this.#pool,
      spec: { ...this.#pool.spec, configuration },
      status: { ...this.#pool.status, architectures: [ARCHITECTURE], machineCount: 1 },
    } as MachineConfigPool;
    return rendered;
  }

  /** Every node of the pool runs its target: what the operator compares the next one with. */
  settle(): void {
    const { configuration } = this.#pool.spec;
    this.#pool = {
      ...this.#pool,
      status: { ...this.#pool.status, ...present({ configuration }) },
    } as MachineConfigPool;
  }

  /** Has the builder make whatever the pool needs. @returns the specs that the operator gives its nodes then. */
  async assign(nodes: readonly MachineConfigNode[]): Promise<readonly MachineConfigNodeSpec[]> {
    for (let count = 0; count < MOST_BUILDS && (await this.#build(nodes)); count += 1);
    const target = this.#target(nodes);
    return nodes.map((node) => this.#specOf(target, node));
  }

  #specOf(target: PoolTarget, node: MachineConfigNode): MachineConfigNodeSpec {
    const desired = nodeTarget(target, node);
    if (desired === undefined) {
      throw new Error(`the pool has no target: ${'why' in target ? target.why : target.kind}`);
    }
    return assignedSpec(node.spec, {
      pool: POOL,
      target: desired,
      policyDigest: policyDigest(this.#policies),
      imageSigningKeys: 'Disabled',
      settings: { softReboot: undefined, rebootSentinel: undefined },
      irreconcilable: undefined,
    });
  }

  #target(nodes: readonly MachineConfigNode[]): PoolTarget {
    const inputs = () => ({
      pool: this.#pool,
      rendered: this.rendered.get(this.#pool.spec.configuration?.name ?? ''),
      machineOSConfig: this.#machineOSConfig(),
      coverage: 'excluded' as const,
      hasImages: () => false,
      record: this.#record,
      images: {
        builds: this.builds,
        policyDigest: policyDigest(this.#policies),
        checkOf: () => undefined,
        unlisted: (build: MachineOSBuild) => this.#unlisted(build, nodes),
      },
    });
    const target = poolTarget(inputs());
    if (target.kind !== 'awaiting-image' || target.candidate === undefined) return target;
    const { candidate } = target;
    const image = candidate.status?.digestedImagePushSpec ?? '';
    const config = candidate.spec.machineConfig.name;
    const revisions = newRevisions(this.#pool, this.#record, [
      {
        target: { config, image },
        origin: {
          build: candidate,
          proven: { baseImage: candidate.status?.baseImage ?? '', baseRecords: [], engineImages: [] },
        },
      },
    ]);
    this.#record = [
      ...this.#record,
      ...revisions.map((revision) => ({ ...revision, metadata: { name: '', ...revision.metadata } })),
    ];
    return poolTarget(inputs());
  }

  #machineOSConfig(): MachineOSConfig | undefined {
    const config = this.#objects?.machineOSConfig;
    if (config === undefined || this.#named === undefined) return config;
    const machineOSBuild = {
      group: 'machineconfiguration.openshift.io',
      resource: 'machineosbuilds',
      name: this.#named,
    };
    return { ...config, status: { observedGeneration: 1, machineOSBuild } };
  }

  #unlisted(build: MachineOSBuild, nodes: readonly MachineConfigNode[]): readonly string[] {
    const configs = (name: string) => this.rendered.get(name);
    return unlistedConfigs({ build, nodes, configs, policies: this.#policies });
  }

  /** @returns whether there was a build to make. */
  async #build(nodes: readonly MachineConfigNode[]): Promise<boolean> {
    const config = this.#machineOSConfig();
    if (config === undefined) return false;
    const rendered = this.rendered.get(this.#pool.spec.configuration?.name ?? '');
    const states = knownStates(POOL, nodes, this.builds, (name) => this.rendered.get(name));
    const digest = policyDigest(this.#policies);
    const decision = decideBuild({
      machineOSConfig: config,
      pool: this.#pool,
      rendered,
      baseImage: await this.#resolved(requestedBase(config, rendered) ?? ''),
      policyDigest: digest,
      ownArchitecture: ARCHITECTURE,
      builds: this.builds,
      hasEngine: false,
      running: new Set(),
      states: states.map((state) => ({ config: state.config.metadata.name, base: state.base })),
      fallsShort: (build) => this.#unlisted(build, nodes).length > 0,
      isDistrusted: () => false,
    });
    if (decision.kind === 'wait' || rendered === undefined)
      throw new Error(`no build: ${JSON.stringify(decision)}`);
    this.#named = decision.name;
    if (decision.next === 'none') return false;
    if (decision.next !== 'create') throw new Error(`${decision.name}: ${decision.next} was not expected`);
    const listed = new Set(decision.transitionsFrom.map(formatNodeState));
    const pushSpec = pushSpecOf(config.spec.renderedImagePushSpec, decision.name);
    const result = await appendBuild(
      this.#registry,
      {
        pool: POOL,
        rendered,
        baseImage: decision.baseImage,
        pushSpec,
        policies: this.#policies,
        policyDigest: digest,
        froms: states.filter((state) =>
          listed.has(formatNodeState({ config: state.config.metadata.name, base: state.base })),
        ),
        architecture: ARCHITECTURE,
        version: '0.0.0',
        created: CREATED,
      },
      this.#signal,
    );
    const status = buildStatus(undefined, { kind: 'succeeded', ...result }, CREATED);
    const at = new Date(this.builds.length * 1000).toISOString();
    this.builds = [...this.builds, newBuild(decision, { pushSpec, at, status })];
    return true;
  }

  /** As the builder looks it up (builder/observe.ts). */
  async #resolved(requested: string): Promise<string> {
    const reference = parseReference(requested);
    if (reference.digest !== undefined) return requested;
    const { digest } = await this.#registry.getManifest(reference, this.#signal);
    return `${requested}@${digest}`;
  }
}

/** @returns the pullspec of an image of a registry. */
export function pullspec(host: string, repository: string, digest: Digest): string {
  return byDigest({ registry: host, repository }, digest);
}

/** As the builder creates it (builder/build-controller.ts). */
function newBuild(
  decision: Extract<BuildDecision, { kind: 'build' }>,
  { pushSpec, at, status }: { pushSpec: string; at: string; status: NonNullable<MachineOSBuild['status']> },
): MachineOSBuild {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSBuild',
    metadata: {
      name: decision.name,
      creationTimestamp: at,
      annotations: {
        [annotations.buildNameVersion]: BUILD_NAME_VERSION,
        ...present({ [annotations.relabels]: decision.relabels }),
      },
    },
    spec: {
      machineConfig: { name: decision.renderedConfig },
      machineOSConfig: { name: POOL },
      renderedImagePushSpec: pushSpec,
      policyDigest: decision.policyDigest,
      baseImage: decision.baseImage,
      transitionsFrom: [...decision.transitionsFrom],
    },
    status,
  };
}
