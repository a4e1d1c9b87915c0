import pino from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { Deployments } from '../api/kubernetes.ts';
import { MachineOSConfigs } from '../api/machine-os-config.ts';
import { BUILDER_DEPLOYMENT } from '../api/names.ts';
import { parseDigestedPullspec } from '../api/references.ts';
import { type ApiClient, ApiError } from '../cluster/api-client.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { aBuild, aMachineOSConfig, aSuccess, image } from '../test/fixtures/objects.ts';
import { LayeringActor } from './act-on-layering.ts';
import { builderDeployment } from './builder-deployment.ts';
import { builderRights } from './builder-rights.ts';
import { LayeringController, type LayeringControllerParts } from './layering-controller.ts';
import { SeenBuilds } from './pushed-images/seen-builds.ts';

const signal = new AbortController().signal;
const NAMESPACE = 'shale-system';

let cluster: MemoryCluster;
let warnings: string[];

beforeEach(() => {
  cluster = new MemoryCluster();
  warnings = [];
});

/** What failed must reach the controller's queue, which tries again; only what exists already is no failure. */
describe('a step of layering', () => {
  function actor(deleteImage: (image: string, signal: AbortSignal) => Promise<void> = async () => undefined) {
    return new LayeringActor({
      client: cluster.client(),
      events: {
        normal: () => undefined,
        warning: ({ metadata }, reason) => void warnings.push(`${metadata.name} ${reason}`),
      },
      log: pino({ level: 'silent' }),
      pruner: {
        deleteImage: (name, _build, stop) => deleteImage(name, stop),
        imageAt: async () => undefined,
      },
      seen: new SeenBuilds(),
      signing: { take: async () => expect.fail('no step of signing') },
      namespace: NAMESPACE,
    });
  }
  const desired = builderDeployment(NAMESPACE, 'shale:1', []);
  const rights = builderRights(NAMESPACE).map((right) => ({ to: 'create' as const, ...right }));
  const config = aMachineOSConfig('worker');
  const changes = { create: [config], replace: [], delete: [] };

  it.each([
    { kind: 'startBuilder', desired },
    { kind: 'changeRights', changes: rights },
    { kind: 'changeMachineOSConfigs', changes },
  ] as const)('$kind may be repeated, and fails when the API server does', async (step) => {
    await actor().take(step, signal);
    const { writes } = cluster;
    expect(writes).toBeGreaterThan(0);
    await actor().take(step, signal);
    expect(cluster.writes).toBe(writes);
    cluster.trouble = () => 'unavailable';
    await expect(actor().take(step, signal)).rejects.toMatchObject({ status: 503 });
  });

  it('replaces and deletes MachineOSConfigs', async () => {
    const stored = cluster.put(MachineOSConfigs, config);
    const replaced = { ...stored, spec: { ...stored.spec, renderedImagePushSpec: 'r.test/other:latest' } };
    await actor().take(
      { kind: 'changeMachineOSConfigs', changes: { create: [], replace: [replaced], delete: [] } },
      signal,
    );
    expect(cluster.get(MachineOSConfigs, 'worker')?.spec.renderedImagePushSpec).toBe('r.test/other:latest');
    await actor().take(
      { kind: 'changeMachineOSConfigs', changes: { create: [], replace: [], delete: [config] } },
      signal,
    );
    expect(cluster.list(MachineOSConfigs)).toEqual([]);
  });

  it('updates and stops the builder', async () => {
    const pod = { nodeSelector: { disk: 'ssd' } };
    const deployment = builderDeployment(NAMESPACE, 'shale:0', [], { pod });
    cluster.put(Deployments, {
      ...deployment,
      metadata: { ...deployment.metadata, name: BUILDER_DEPLOYMENT },
    });
    await actor().take({ kind: 'updateBuilder', desired }, signal);
    const updated = cluster.get(Deployments, BUILDER_DEPLOYMENT);
    // Also without what the former one had beyond it.
    expect(updated?.spec).toEqual(desired.spec);
    expect(updated?.metadata.annotations).toEqual(desired.metadata.annotations);
    await actor().take({ kind: 'stopBuilder' }, signal);
    expect(cluster.get(Deployments, BUILDER_DEPLOYMENT)).toBeUndefined();
  });

  it('names how many builds could not be pruned, and reports each', async () => {
    const builds = ['a', 'b'].map((name, index) => ({
      build: aBuild(name, 'r', { status: aSuccess(String(index + 1)) }),
      images: [parseDigestedPullspec(image(String(index + 1)))],
      tags: [],
    }));
    const failing = actor(() => Promise.reject(new Error('registry is down')));
    await expect(failing.take({ kind: 'prune', builds, kept: new Set() }, signal)).rejects.toThrow(
      '2 builds could not be pruned',
    );
    expect(warnings).toEqual(['a PruneFailed', 'b PruneFailed']);
  });

  it('reports nothing of what its own end has interrupted', async () => {
    const ending = new AbortController();
    const builds = [
      {
        build: aBuild('a', 'r', { status: aSuccess('1') }),
        images: [parseDigestedPullspec(image('1'))],
        tags: [],
      },
    ];
    const interrupted = actor((_image, stop) => {
      ending.abort(new Error('the operator ends'));
      return Promise.reject(stop.reason);
    });
    await expect(interrupted.take({ kind: 'prune', builds, kept: new Set() }, ending.signal)).rejects.toThrow(
      /operator ends/,
    );
    expect(warnings).toEqual([]);
  });
});

describe('a cluster where nothing is to be done', () => {
  it('is not asked anything', async () => {
    const refuse = () => Promise.reject(new ApiError(503, 'x', { reason: 'ServiceUnavailable' }));
    const client: ApiClient = { ...cluster.client(), find: refuse, list: refuse };
    const none = { list: () => [], get: () => undefined };
    const caches = {
      shared: {
        pools: none,
        machineConfigNodes: none,
        machineConfigurations: none,
        machineOSConfigs: none,
        machineOSBuilds: none,
        poolRevisions: none,
        layeringSwitch: none,
      },
      signingKeys: none,
      deployments: none,
      rights: [],
    };
    const parts = {
      client,
      caches,
      events: { normal: () => undefined, warning: () => undefined },
      log: pino({ level: 'silent' }),
      pruner: { deleteImage: async () => undefined },
      signing: { state: { kind: 'missing' } },
      namespace: NAMESPACE,
      desiredBuilder: {
        required: builderDeployment(NAMESPACE, 'shale:1', []),
        disabled: builderDeployment(NAMESPACE, 'shale:1', []),
      },
      keepImages: 0,
      failing: { reported: () => [] },
      now: () => 0,
    } as unknown as LayeringControllerParts;
    expect(await new LayeringController(parts).reconcile('any', signal)).toEqual({ kind: 'done' });
  });
});
