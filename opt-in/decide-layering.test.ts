import { describe, expect, test } from 'vitest';
import type { ConfigMap } from '../api/kubernetes.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { labels } from '../api/names.ts';
import { aBuild, aMachineConfigNode, aMachineOSConfig, aPool } from '../test/fixtures/objects.ts';
import { builderDeployment } from './builder-deployment.ts';
import { builderRights, type ObservedRight } from './builder-rights.ts';
import { decideLayering, type LayeringObservation } from './decide-layering.ts';
import { decideSigningKeys } from './signing-keys.ts';

const image = `r.io/os/worker@sha256:${'a'.repeat(64)}`;
const pool = aPool('worker');
const wish = (own: boolean): MachineOSConfig => {
  const { metadata, spec, ...object } = aMachineOSConfig('worker');
  return {
    ...object,
    metadata: { ...metadata, ...(own ? { labels: { [labels.madeBySwitch]: 'true' } } : {}) },
    spec: {
      ...spec,
      imageBuilder: { imageBuilderType: 'Job' },
      renderedImagePushSpec: 'r.io/os/worker:latest',
    },
  };
};
const built = aBuild('worker-1', 'rendered-worker-1', { status: { digestedImagePushSpec: image } });
const build = { ...built, spec: { ...built.spec, renderedImagePushSpec: 'r.io/os/worker:worker-1' } };
const node = (current?: string, desired?: string): MachineConfigNode =>
  aMachineConfigNode(
    'n',
    desired === undefined ? {} : { configImage: { desiredImage: desired } },
    current === undefined
      ? { mode: 'Standard' }
      : { mode: 'Layered', configImage: { currentImage: current } },
  );
const made = builderDeployment('shale-system', 'shale', []);
const desiredBuilder = {
  required: made,
  disabled: builderDeployment('shale-system', 'shale', ['--unsigned']),
};
const KEY = '-----BEGIN PUBLIC KEY-----\nA\n-----END PUBLIC KEY-----\n';
const usable = { kind: 'usable', publicKey: KEY } as const;
const published = decideSigningKeys({
  signing: 'required',
  published: undefined,
  current: KEY,
  builds: [],
}) as ConfigMap;
const deployment = { ...made, metadata: { ...made.metadata, name: 'machine-os-builder' } };
/** As the API server returns it. */
const asCreated = (desired: ObservedRight['desired']): NonNullable<ObservedRight['present']> => ({
  ...desired,
  metadata: { ...desired.metadata, name: desired.metadata.name ?? '' },
});
const noRights = builderRights('shale-system').map((right) => ({ ...right, present: undefined }));
const allRights = noRights.map((right) => ({ ...right, present: asCreated(right.desired) }));
const off: LayeringObservation = {
  state: { kind: 'off' },
  pools: [pool],
  machineOSConfigs: [],
  builds: [],
  nodes: [node()],
  revisions: [],
  builder: undefined,
  signing: 'required',
  signingKey: { kind: 'missing' },
  publishedKeys: undefined,
  desiredBuilder,
  rights: noRights,
  builderPods: 0,
  keepImages: 3,
};
const on: LayeringObservation = {
  ...off,
  state: { kind: 'on', settings: { imageRepository: 'r.io/os/{pool}' } },
  rights: allRights,
  signingKey: usable,
  publishedKeys: published,
};

describe('switching on', () => {
  test("the builder's rights, MachineOSConfigs, then the builder, then nothing more", () => {
    expect(decideLayering({ ...on, rights: noRights }).kind).toBe('changeRights');
    expect(decideLayering(on).kind).toBe('changeMachineOSConfigs');
    expect(decideLayering({ ...on, machineOSConfigs: [wish(true)] }).kind).toBe('startBuilder');
    expect(decideLayering({ ...on, machineOSConfigs: [wish(true)], builder: deployment }).kind).toBe(
      'settled',
    );
  });
});

test('a build that is being stopped keeps its image while a builder may push it, also one that has no pod yet', () => {
  const begun = aBuild('infra-1', 'rendered-infra-1');
  const builds = [{ ...begun, spec: { ...begun.spec, machineOSConfig: { name: 'infra' } } }];
  const settled = { ...on, machineOSConfigs: [wish(true)], builder: deployment };
  for (const builderPods of [0, 1])
    expect(decideLayering({ ...settled, builds, builderPods }).kind).toBe('settled');
});

test('a builder of another version or with other flags is updated', () => {
  const settled = { ...on, machineOSConfigs: [wish(true)], builder: deployment };
  const wanted = (image: string, args: string[]) => builderDeployment('shale-system', image, args);
  const kindFor = (required: typeof made) =>
    decideLayering({ ...settled, desiredBuilder: { ...desiredBuilder, required } }).kind;
  expect(kindFor(wanted('shale:2', []))).toBe('updateBuilder');
  expect(kindFor(wanted('shale', ['--no-attest']))).toBe('updateBuilder');
  for (const options of [
    { pod: { nodeSelector: { disk: 'ssd' } } },
    { imagePullSecrets: [{ name: 'pull' }] },
    { metricsPort: 8081 },
  ])
    expect(kindFor(builderDeployment('shale-system', 'shale', [], options))).toBe('updateBuilder');
  const scaled = { ...deployment, spec: { ...deployment.spec, replicas: 0 } };
  expect(decideLayering({ ...settled, builder: scaled }).kind).toBe('updateBuilder');
  // What the API server fills in is no difference.
  const { spec } = deployment;
  const [container] = spec.template.spec.containers;
  const filledIn = {
    ...container,
    name: 'builder',
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePath: '/x',
  };
  const template = { ...spec.template, spec: { ...spec.template.spec, containers: [filledIn] } };
  const stored = { ...deployment, spec: { ...spec, template } } as typeof deployment;
  expect(decideLayering({ ...settled, builder: stored }).kind).toBe('settled');
});

describe('the key that signs images', () => {
  const on1 = { ...on, machineOSConfigs: [wish(true)], builder: deployment };

  test('is created and published before the first build can start', () => {
    const empty = { ...on, publishedKeys: undefined, signingKey: { kind: 'missing' } } as const;
    expect(decideLayering(empty)).toEqual({ kind: 'createSigningKey' });
    expect(decideLayering({ ...empty, signingKey: usable })).toEqual({
      kind: 'publishSigningKeys',
      desired: published,
    });
    expect(decideLayering({ ...empty, signingKey: usable, publishedKeys: published }).kind).toBe(
      'changeMachineOSConfigs',
    );
  });

  test('is left to the admin when it can not be used, and what is published stays', () => {
    const unusable = { kind: 'unusable', why: 'is not a private key' } as const;
    expect(decideLayering({ ...on1, signingKey: unusable }).kind).toBe('settled');
  });

  test('is needed for the MachineOSConfigs of an admin as well, whatever the switch says', () => {
    const own = { ...on1, state: { kind: 'off' }, machineOSConfigs: [wish(false)] } as const;
    expect(decideLayering({ ...own, publishedKeys: undefined }).kind).toBe('publishSigningKeys');
  });

  test('is not needed when signing is disabled: nodes learn that no signature is required', () => {
    const disabled = { ...on1, signing: 'disabled', signingKey: { kind: 'missing' } } as const;
    const step = decideLayering(disabled);
    expect(step).toMatchObject({ kind: 'publishSigningKeys', desired: { data: {} } });
    const told = { ...disabled, publishedKeys: { ...published, data: {}, metadata: { name: 'k' } } };
    expect(decideLayering(told)).toMatchObject({ kind: 'updateBuilder', desired: desiredBuilder.disabled });
  });

  test('goes last when layering is switched off', () => {
    const ending = { ...off, publishedKeys: published };
    expect(decideLayering({ ...ending, builds: [build], nodes: [node(image, image)] }).kind).not.toBe(
      'removeSigningKeys',
    );
    expect(decideLayering(ending).kind).toBe('removeSigningKeys');
    expect(decideLayering(off).kind).toBe('settled');
  });
});

describe('switching off', () => {
  const running = { ...off, machineOSConfigs: [wish(true)], builds: [build], nodes: [node(image, image)] };

  test('the builder goes first and is waited for', () => {
    expect(decideLayering({ ...running, builder: deployment, builderPods: 1 }).kind).toBe('stopBuilder');
    expect(decideLayering({ ...running, builderPods: 1 }).kind).toBe('wait');
  });

  test('then its rights', () => {
    expect(decideLayering({ ...running, rights: allRights }).kind).toBe('changeRights');
    expect(decideLayering({ ...running, rights: allRights, builderPods: 1 }).kind).toBe('wait');
  });

  test('then the MachineOSConfigs', () => {
    const step = decideLayering(running);
    expect(step.kind === 'changeMachineOSConfigs' && step.changes.delete).toHaveLength(1);
  });

  test.each([
    ['runs it', node(image)],
    ['is meant to run it', node(undefined, image)],
  ])('no image is deleted while a node %s', (_name, user) => {
    expect(decideLayering({ ...off, builds: [build], nodes: [user] }).kind).toBe('wait');
  });

  test('then what layering made is pruned, and that is all', () => {
    expect(decideLayering({ ...off, builds: [build] })).toEqual({
      kind: 'prune',
      builds: [{ build, images: [image], tags: [] }],
      kept: new Set(),
    });
    expect(decideLayering(off).kind).toBe('settled');
  });

  test('no image is deleted while a node of its pool has not reported what it runs', () => {
    const { status: _, ...silent } = node();
    expect(decideLayering({ ...off, builds: [build], nodes: [silent] }).kind).toBe('wait');
  });

  test("an admin's own MachineOSConfig keeps the builder", () => {
    const machineOSConfigs = [wish(false)];
    const { rights, signingKey, publishedKeys } = on;
    expect(decideLayering({ ...off, rights, signingKey, publishedKeys, machineOSConfigs }).kind).toBe(
      'startBuilder',
    );
  });
});

test('an invalid switch keeps the last good state', () => {
  const invalid = { kind: 'invalid', problems: [] } as const;
  expect(decideLayering({ ...off, state: invalid }).kind).toBe('settled');
  expect(
    decideLayering({
      ...on,
      state: invalid,
      machineOSConfigs: [wish(true)],
      builder: deployment,
      builds: [build],
    }).kind,
  ).toBe('settled');
});
