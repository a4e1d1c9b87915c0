import pino from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { type ConfigMap, ConfigMaps, Deployments, Pods } from '../api/kubernetes.ts';
import { MachineConfigNodes } from '../api/machine-config-node.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../api/machine-os-build.ts';
import { MachineOSConfigs } from '../api/machine-os-config.ts';
import {
  BUILDER_DEPLOYMENT,
  labels,
  MACHINE_CONFIGURATION,
  SIGNING_KEYS_CONFIG_MAP,
  SWITCH_CONFIG_MAP,
} from '../api/names.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import { PoolRevisions } from '../api/pool-revision.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../api/references.ts';
import { type ApiClient, ApiError } from '../cluster/api-client.ts';
import { FailingSteps } from '../cluster/failing-steps.ts';
import { layeringStep } from '../operator/failing-steps.ts';
import { MemoryCluster, SteppedInformer } from '../test/fixtures/fleet/memory-cluster.ts';
import { aBuild, aMachineConfigNode, aPool, aSuccess, image } from '../test/fixtures/objects.ts';
import { builderDeployment } from './builder-deployment.ts';
import { builderRights } from './builder-rights.ts';
import { LayeringController } from './layering-controller.ts';
import { SeenBuilds } from './pushed-images/seen-builds.ts';
import { type SigningKeyState, SigningKeys } from './signing-keys.ts';

const NAMESPACE = 'shale-system';
const signal = new AbortController().signal;
const KEY = '-----BEGIN PUBLIC KEY-----\nA\n-----END PUBLIC KEY-----\n';
/** Layering is on and as it should be: only the signing key is checked again, without an event. */
const WATCHING = { kind: 'requeue', afterMs: 60_000 };
const NOW = Date.parse('2026-06-01T00:00:00Z');

let cluster: MemoryCluster;
let informers: { catchUp(): void }[];
let warnings: string[];
let logged: string[];
let deleted: string[];
let failing: Set<string>;
/** What tags of the registry name. */
let tags: Map<string, DigestedPullspec>;
let signingKey: SigningKeyState;
let keyReads: number;
let clock: number;
let steps: FailingSteps;
let reported: string[];
let controller: LayeringController;

const informer = <T extends KubernetesObject>(kind: Kind<T>) => {
  const stepped = new SteppedInformer(cluster, kind);
  informers.push(stepped);
  return stepped;
};
const log = pino(
  {},
  {
    write(line: string) {
      const { msg, why = '' } = JSON.parse(line) as { readonly msg: string; readonly why?: string };
      logged.push(why === '' ? msg : `${msg}: ${why}`);
    },
  },
);
const newController = (image = 'shale:1', client: ApiClient = cluster.client()) =>
  new LayeringController({
    client,
    caches: {
      shared: {
        pools: informer(MachineConfigPools),
        machineConfigNodes: informer(MachineConfigNodes),
        machineConfigurations: informer(MachineConfigurations),
        machineOSConfigs: informer(MachineOSConfigs),
        machineOSBuilds: informer(MachineOSBuilds),
        poolRevisions: informer(PoolRevisions),
        layeringSwitch: informer(ConfigMaps),
      },
      signingKeys: informer(ConfigMaps),
      deployments: informer(Deployments),
      rights: builderRights(NAMESPACE).map((right) => ({ right, informer: informer(right.kind) })),
    },
    events: {
      normal: () => undefined,
      warning: (object, reason, message) =>
        void warnings.push(`${object.metadata.name} ${reason} ${message}`),
    },
    log,
    pruner: {
      deleteImage: async (name) => {
        if (failing.has(name)) throw new Error('registry is down');
        deleted.push(`${name} with ${cluster.list(MachineOSBuilds).length} builds left`);
      },
      imageAt: async (tag) => tags.get(tag),
    },
    seen: new SeenBuilds(),
    signing: new SigningKeys({
      client,
      log,
      namespace: NAMESPACE,
      now: () => clock,
      secret: {
        read: async () => {
          keyReads += 1;
          return signingKey;
        },
        create: async () => {
          signingKey = { kind: 'usable', publicKey: KEY };
        },
        remove: async () => {
          signingKey = { kind: 'missing' };
        },
      },
    }),
    namespace: NAMESPACE,
    desiredBuilder: {
      required: builderDeployment(NAMESPACE, image, []),
      disabled: builderDeployment(NAMESPACE, image, ['--unsigned']),
    },
    keepImages: 0,
    failing: steps,
    now: () => clock,
  });
const reconcile = async (using = controller) => {
  for (const each of informers) each.catchUp();
  return using.reconcile(SWITCH_CONFIG_MAP, signal);
};
const setSwitch = (data: ConfigMap['data']) =>
  cluster.put(ConfigMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: SWITCH_CONFIG_MAP, namespace: NAMESPACE },
    data,
  });
const ON = { enabled: 'true', imageRepository: 'registry.test:5000/os/{pool}' };
const layeringCondition = () =>
  cluster
    .get(MachineConfigurations, MACHINE_CONFIGURATION)
    ?.status?.conditions?.find(({ type }) => type === 'Layering');
/** A build of a pool that no longer has a MachineOSConfig. */
const orphan = (name: string, digit: string): MachineOSBuild =>
  cluster.put(MachineOSBuilds, aBuild(name, 'rendered-worker-1', { status: aSuccess(digit) }));

beforeEach(() => {
  logged = [];
  keyReads = 0;
  clock = NOW;
  cluster = new MemoryCluster();
  [informers, warnings, deleted, failing] = [[], [], [], new Set()];
  tags = new Map();
  signingKey = { kind: 'missing' };
  cluster.put(MachineConfigPools, aPool('worker'));
  cluster.put(MachineConfigurations, {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: MACHINE_CONFIGURATION },
  });
  steps = new FailingSteps({ now: () => clock, onReport: ({ failure }) => void reported.push(failure.why) });
  reported = [];
  controller = newController();
});

describe('a cluster whose layering switch is on', () => {
  beforeEach(async () => {
    setSwitch(ON);
    expect(await reconcile()).toEqual(WATCHING);
  });

  it('has the builder with its permissions and a MachineOSConfig for the pool', () => {
    expect(cluster.get(Deployments, BUILDER_DEPLOYMENT)?.spec.template.spec.containers[0]?.image).toBe(
      'shale:1',
    );
    for (const { kind } of builderRights(NAMESPACE))
      expect(cluster.get(kind, BUILDER_DEPLOYMENT), kind.kind).toBeDefined();
    const config = cluster.get(MachineOSConfigs, 'worker');
    expect(config?.metadata.labels).toEqual({ [labels.madeBySwitch]: 'true' });
    expect(config?.spec.renderedImagePushSpec).toBe('registry.test:5000/os/worker:latest');
    expect(layeringCondition()).toMatchObject({ status: 'True', reason: 'SwitchedOn' });
  });

  it('has published the key that signs its images', async () => {
    expect(Object.values(cluster.get(ConfigMaps, SIGNING_KEYS_CONFIG_MAP)?.data ?? {})).toEqual([KEY]);
  });

  it('gets a rotated key published, and the reason why one can not be used', async () => {
    const later = newController();
    signingKey = { kind: 'usable', publicKey: KEY.replace('A', 'B') };
    await reconcile(later);
    expect(Object.values(cluster.get(ConfigMaps, SIGNING_KEYS_CONFIG_MAP)?.data ?? {})).toEqual([
      KEY.replace('A', 'B'),
    ]);
    signingKey = { kind: 'unusable', why: 'Secret shale-system/image-signing-key: has no cosign.key' };
    await reconcile(newController());
    expect(warnings).toEqual([
      'on-cluster-layering SigningKeyUnusable Secret shale-system/image-signing-key: has no cosign.key; no image is built until it is corrected',
    ]);
  });

  it('reads the key again each minute, after a clock was set back, and at once while a build is retried', async () => {
    const readsAt = async (ms: number) => {
      clock = NOW + ms;
      keyReads = 0;
      await reconcile();
      return keyReads;
    };
    const buildThat = (status: MachineOSBuild['status']) =>
      cluster.put(MachineOSBuilds, {
        ...aBuild('worker-1', 'rendered-worker-1', { status }),
      });
    buildThat({ buildStart: '2026-01-01T00:00:00Z' });
    expect(await readsAt(59_999)).toBe(0);
    expect(await readsAt(60_000)).toBe(1);
    expect(await readsAt(59_000)).toBe(1);
    expect(await readsAt(59_001)).toBe(0);
    buildThat({ buildStart: '2026-01-01T00:00:00Z', attempts: 1 });
    expect(await readsAt(59_002)).toBe(1);
    buildThat({ buildStart: '2026-01-01T00:00:00Z', buildEnd: '2026-01-01T00:01:00Z', attempts: 1 });
    expect(await readsAt(59_003)).toBe(0);
  });

  it('is written nothing more when nothing has changed', async () => {
    const before = cluster.writes;
    expect(await reconcile()).toEqual(WATCHING);
    expect(cluster.writes).toBe(before);
  });

  it('gets the image of a newer operator into the builder', async () => {
    await reconcile(newController('shale:2'));
    expect(cluster.get(Deployments, BUILDER_DEPLOYMENT)?.spec.template.spec.containers[0]?.image).toBe(
      'shale:2',
    );
  });

  it('gets another repository into the MachineOSConfig', async () => {
    setSwitch({ ...ON, imageRepository: 'registry.test:5000/other/{pool}' });
    await reconcile();
    expect(cluster.get(MachineOSConfigs, 'worker')?.spec.renderedImagePushSpec).toBe(
      'registry.test:5000/other/worker:latest',
    );
  });

  it('keeps what is in force while the switch is invalid, and says why', async () => {
    setSwitch({ ...ON, imageRepositry: 'x' });
    expect(await reconcile()).toEqual(WATCHING);
    expect(cluster.get(MachineOSConfigs, 'worker')).toBeDefined();
    expect(cluster.get(Deployments, BUILDER_DEPLOYMENT)).toBeDefined();
    expect(layeringCondition()).toMatchObject({ status: 'Unknown', reason: 'InvalidSwitch' });
    expect(warnings[0]).toMatch(/^on-cluster-layering InvalidSwitch .*data\.imageRepositry: unknown key/);
  });

  it('is left without a trace when it is switched off', async () => {
    setSwitch({ enabled: 'false' });
    expect(await reconcile()).toEqual({ kind: 'done' });
    expect(cluster.get(Deployments, BUILDER_DEPLOYMENT)).toBeUndefined();
    for (const { kind } of builderRights(NAMESPACE))
      expect(cluster.get(kind, BUILDER_DEPLOYMENT), kind.kind).toBeUndefined();
    expect(cluster.list(MachineOSConfigs)).toEqual([]);
    expect(cluster.get(ConfigMaps, SIGNING_KEYS_CONFIG_MAP)).toBeUndefined();
    expect(signingKey).toEqual({ kind: 'missing' });
    expect(layeringCondition()).toBeUndefined();
  });

  it('waits for the pods of the builder before it takes away their permissions', async () => {
    setSwitch({ enabled: 'false' });
    const metadata = { name: 'builder-0', namespace: NAMESPACE };
    cluster.put(Pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] } });
    expect(await reconcile()).toMatchObject({ kind: 'requeue', afterMs: 2_000 });
    expect(await reconcile()).toMatchObject({ kind: 'requeue', afterMs: 2_000 });
    expect(logged.filter((line) => line.includes('layering waits'))).toEqual([
      'layering waits: the Machine OS Builder is stopping',
    ]);
    expect(cluster.get(Deployments, BUILDER_DEPLOYMENT)).toBeUndefined();
    for (const { kind } of builderRights(NAMESPACE))
      expect(cluster.get(kind, BUILDER_DEPLOYMENT), kind.kind).toBeDefined();
    expect(cluster.get(MachineOSConfigs, 'worker')).toBeDefined();
  });

  it('tells again what it waits for once it has done something else', async () => {
    const stopping = async () => {
      setSwitch({ enabled: 'false' });
      const metadata = { name: 'builder-0', namespace: NAMESPACE };
      cluster.put(Pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] } });
      expect(await reconcile()).toMatchObject({ kind: 'requeue', afterMs: 2_000 });
    };
    await stopping();
    setSwitch(ON);
    cluster.remove(Pods, 'builder-0');
    expect(await reconcile()).toEqual(WATCHING);
    await stopping();
    expect(logged.filter((line) => line.includes('layering waits'))).toHaveLength(2);
  });
});

describe('builds that nobody needs', () => {
  it('go with their images, the image first', async () => {
    orphan('old', '1');
    expect(await reconcile()).toEqual({ kind: 'done' });
    expect(deleted).toEqual([`${image('1')} with 1 builds left`]);
    expect(cluster.list(MachineOSBuilds)).toEqual([]);
  });

  it('stay with a warning while an image can not be deleted, and do not hold up the others', async () => {
    orphan('stuck', '1');
    orphan('old', '2');
    failing.add(image('1'));
    await expect(reconcile()).rejects.toThrow('1 build could not be pruned');
    expect(cluster.list(MachineOSBuilds).map(({ metadata }) => metadata.name)).toEqual(['stuck']);
    expect(warnings).toEqual([
      `stuck PruneFailed Could not delete ${image('1')}: registry is down. Shale retries until it succeeds.`,
    ]);
  });

  it('go with what they left under their tags, but not with an image that somebody else uses', async () => {
    const left = (name: string, digit: string) => {
      const renderedImagePushSpec = `registry.test:5000/os:${name}`;
      tags.set(renderedImagePushSpec, parseDigestedPullspec(image(digit)));
      const made = aBuild(name, 'rendered-worker-1', { status: { buildStart: '2026-01-01T00:00:00Z' } });
      cluster.put(MachineOSBuilds, { ...made, spec: { ...made.spec, renderedImagePushSpec } });
    };
    left('interrupted', '1');
    left('same-as-used', '2');
    const configImage = { currentImage: image('2'), desiredImage: image('2') };
    cluster.put(MachineConfigNodes, aMachineConfigNode('a', {}, { mode: 'Layered', configImage }));
    await reconcile();
    expect(deleted).toEqual([`${image('1')} with 2 builds left`]);
    expect(cluster.list(MachineOSBuilds)).toEqual([]);
  });

  it('cost a list of the nodes and of the revisions, which no other pass does', async () => {
    const client = cluster.client();
    const listed: string[] = [];
    const list: ApiClient['list'] = (kind, how) => {
      listed.push(kind.kind);
      return client.list(kind, how);
    };
    const counted = newController('shale:1', { ...client, list });
    const many = () => listed.filter((kind) => ['MachineConfigNode', 'PoolRevision'].includes(kind));
    setSwitch(ON);
    expect(await reconcile(counted)).toEqual(WATCHING);
    expect(listed).toContain('MachineOSBuild');
    expect(many()).toEqual([]);
    orphan('old', '1');
    expect(await reconcile(counted)).toEqual(WATCHING);
    expect(deleted).toHaveLength(1);
    expect(many().toSorted()).toEqual(['MachineConfigNode', 'PoolRevision']);
  });

  it('stay while a node runs their image, though the cache does not show it yet', async () => {
    orphan('used', '1');
    for (const each of informers) each.catchUp();
    cluster.put(
      MachineConfigNodes,
      aMachineConfigNode('a', {}, { configImage: { currentImage: image('1'), desiredImage: image('1') } }),
    );
    expect(await controller.reconcile(SWITCH_CONFIG_MAP, signal)).toMatchObject({ kind: 'requeue' });
    expect(deleted).toEqual([]);
    expect(cluster.get(MachineOSBuilds, 'used')).toBeDefined();
  });
});

it('a status that nobody has written yet is not started for a cluster without layering', async () => {
  expect(await reconcile()).toEqual({ kind: 'done' });
  expect(cluster.get(MachineConfigurations, MACHINE_CONFIGURATION)?.status).toBeUndefined();
});

it('an object that somebody else created a moment ago is no failure', async () => {
  setSwitch(ON);
  const client = cluster.client();
  const { create } = client;
  let raced = false;
  const racing = newController('shale:1', {
    ...client,
    create: async (kind, object, where) => {
      if (!raced) {
        raced = true;
        await create(kind, object, where);
      }
      return create(kind, object, where);
    },
  });
  expect(await reconcile(racing)).toEqual(WATCHING);
  expect(cluster.get(Deployments, BUILDER_DEPLOYMENT)).toBeDefined();
});

describe('a write of layering that fails', () => {
  const WORDS = 'admission webhook "no.example.org" denied the request: ask the platform team';
  const step = layeringStep(NAMESPACE);
  const OFF = { enabled: 'false' };

  /** As its controller does. */
  async function pass(): Promise<void> {
    const object = step.objectOf('any');
    if (object === undefined) throw new Error('the switch is always there');
    try {
      await reconcile();
      steps.over(object, step.doing);
    } catch (error) {
      steps.failed(object, step.doing, error);
    }
    clock += 20_000;
  }

  const told = () =>
    cluster
      .get(MachineConfigurations, MACHINE_CONFIGURATION)
      ?.status?.conditions?.find(({ type }) => type === 'LayeringDegraded')?.message ?? '';

  const writes = [
    'create ServiceAccount',
    'create RoleBinding',
    'create ClusterRoleBinding',
    'create Deployment',
    'create MachineOSConfig',
    'create ConfigMap',
    'delete MachineOSConfig',
    'delete Deployment',
    'delete ConfigMap',
    'delete ServiceAccount',
    'delete RoleBinding',
    'delete ClusterRoleBinding',
    'replaceStatus MachineConfiguration',
  ];

  it('is one of these', async () => {
    const seen = new Set<string>();
    cluster.trouble = (_name, { verb, kind }) => {
      seen.add(`${verb} ${kind}`);
      return 'none';
    };
    setSwitch(ON);
    for (let round = 0; round < 4; round += 1) await pass();
    setSwitch(OFF);
    for (let round = 0; round < 4; round += 1) await pass();
    expect([...seen].toSorted()).toEqual(writes.toSorted());
  });

  it.each(writes.flatMap((write) => [403, 422, 429, 500].map((status) => [write, status] as const)))(
    '%s with %i is said by the MachineConfiguration and an event, until it succeeds',
    async (write, status) => {
      let wasTried = false;
      cluster.trouble = (_name, { verb, kind }) => {
        if (`${verb} ${kind}` !== write) return 'none';
        wasTried = true;
        return new ApiError(status, write, { message: WORDS });
      };
      setSwitch(ON);
      for (let round = 0; round < 3; round += 1) await pass();
      if (!wasTried) setSwitch(OFF);
      for (let round = 0; round < 13; round += 1) await pass();
      expect(wasTried).toBe(true);
      expect(reported).toEqual([`${write}: ${WORDS}`]);
      if (write !== 'replaceStatus MachineConfiguration') expect(told()).toContain(WORDS);
      cluster.trouble = () => 'none';
      for (let round = 0; round < 3; round += 1) await pass();
      expect(told()).toBe('');
    },
  );
});
