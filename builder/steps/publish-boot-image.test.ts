import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import type { BootImage } from '../../api/machine-config-pool.ts';
import { bootImageTag, type MachineOSConfig, MachineOSConfigs } from '../../api/machine-os-config.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { aMachineOSConfig, aPool } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { BootImagePublisher, decidePublication } from './publish-boot-image.ts';

const signal = deadline(60_000);
const config = (pushSpec: string, status: NonNullable<MachineOSConfig['status']> = {}): MachineOSConfig => {
  const { spec, ...made } = aMachineOSConfig('worker');
  return { ...made, spec: { ...spec, renderedImagePushSpec: pushSpec }, status };
};
const booting = (image: string | undefined, proof: BootImage['proof'] = 'Rollout') => ({
  ...aPool('worker'),
  ...(image === undefined ? {} : { status: { bootImage: { image, proof } } }),
});

test.each([
  ['r.io/os/worker:latest', 'r.io/os/worker:current'],
  ['r.io:5000/worker:x', 'r.io:5000/worker:current'],
  ['r.io/os:latest', 'r.io/os:current-worker'],
  ['r.io/os/other-worker:latest', 'r.io/os/other-worker:current-worker'],
])('the images of %s are published as %s', (pushSpec, tag) => {
  expect(bootImageTag(config(pushSpec))).toBe(tag);
});

describe('the tag for new nodes', () => {
  const tag = 'r.io/os/worker:current';
  const [one, two] = ['1', '2'].map((digit) => `r.io/os/worker@sha256:${digit.repeat(64)}`) as [
    string,
    string,
  ];
  test.each<[string, Parameters<typeof decidePublication>, string]>([
    [
      'stays if the operator has chosen no image',
      [config('r.io/os/worker:x'), booting(undefined), undefined],
      'none',
    ],
    ['stays if the pool is gone', [config('r.io/os/worker:x'), undefined, undefined], 'none'],
    ['moves to the chosen image', [config('r.io/os/worker:x'), booting(one), undefined], 'move'],
    [
      'moves once in each process',
      [config('r.io/os/worker:x', { publishedImage: { tag, image: one } }), booting(one), undefined],
      'move',
    ],
    [
      'stays at what it names',
      [
        config('r.io/os/worker:x', { publishedImage: { tag, image: one } }),
        booting(one),
        { tag, image: one },
      ],
      'none',
    ],
    [
      'moves again if the status was lost',
      [config('r.io/os/worker:x'), booting(one), { tag, image: one }],
      'move',
    ],
    [
      'moves back with a rollback',
      [
        config('r.io/os/worker:x', { publishedImage: { tag, image: two } }),
        booting(one, 'Rollback'),
        { tag, image: two },
      ],
      'move',
    ],
    [
      'stays if the image is in another repository',
      [config('r.io/next/worker:x'), booting(one), undefined],
      'elsewhere',
    ],
  ])('%s', (_what, seen, kind) => {
    expect(decidePublication(...seen).kind).toBe(kind);
  });
});

describe('the publisher', () => {
  async function setUp() {
    const registry = await MemoryRegistry.start();
    const plainHttp = new Set([registry.host]);
    const client = createRegistryClient({ plainHttp });
    const digest = await pushBaseImage(client, `${registry.host}/os/worker:worker-1`, signal);
    const cluster = new MemoryCluster();
    const at = `${registry.host}/os/worker`;
    cluster.put(MachineOSConfigs, config(`${at}:latest`));
    const events: string[] = [];
    const record = (_object: unknown, reason: string, message: string) =>
      void events.push(`${reason}: ${message}`);
    const publisher = () =>
      new BootImagePublisher({
        client: cluster.client(),
        namespace: 'shale-system',
        plainHttp,
        events: { normal: record, warning: record },
        log: pino({ enabled: false }),
        now: () => new Date('2026-06-01T00:00:00Z'),
        signal,
      });
    const current = () => cluster.get(MachineOSConfigs, 'worker') ?? config('');
    const tagged = async () => (await client.getManifest(parseReference(`${at}:current`), signal)).digest;
    return { registry, digest, image: `${at}@${digest}`, at, events, publisher, current, tagged };
  }

  test('gives an image the stable tag under its own digest, so that its signature holds, and reports it once', async () => {
    const { publisher, current, image, digest, at, events, tagged, registry } = await setUp();
    const first = publisher();
    expect(await first.publish(current(), booting(image))).toBeUndefined();
    expect(await tagged()).toBe(digest);
    expect(current().status?.publishedImage).toEqual({ tag: `${at}:current`, image });
    expect(current().status?.conditions).toMatchObject([{ type: 'BootImagePublished', status: 'True' }]);
    expect(await registry.requestsOf(() => first.publish(current(), booting(image)))).toEqual([]);
    // A builder that starts again can't know whether the registry still has it.
    await publisher().publish(current(), booting(image));
    expect(events).toEqual([`BootImagePublished: New nodes boot ${image} as ${at}:current`]);
  });

  test('reports a registry that refuses the tag, keeps the record of what the tag names, and can try again', async () => {
    const { publisher, current, image, at, events, registry } = await setUp();
    const process = publisher();
    registry.refuse = (line) =>
      line === 'PUT os/worker/manifests/current' ? { status: 403, code: 'DENIED' } : undefined;
    const failure = await process.publish(current(), booting(image));
    expect(failure?.error).toMatchObject({ status: 403 });
    expect(current().status?.publishedImage).toBeUndefined();
    expect(current().status?.conditions).toMatchObject([
      { type: 'BootImagePublished', status: 'False', reason: 'PublishFailed' },
    ]);
    expect(events).toEqual([
      expect.stringContaining(`BootImageNotPublished: ${at}:current could not be moved`),
    ]);
    registry.refuse = () => undefined;
    expect(await process.publish(current(), booting(image))).toBeUndefined();
    expect(current().status?.publishedImage?.image).toBe(image);
  });

  test('reports a Secret that does not exist', async () => {
    const { publisher, current, image } = await setUp();
    const { spec, ...rest } = current();
    const named = { ...rest, spec: { ...spec, renderedImagePushSecret: { name: 'push' } } };
    const failure = await publisher().publish(named, booting(image));
    expect(String(failure?.error)).toContain('Secret shale-system/push: not found');
  });

  test('moves nothing to a repository that the image is not in', async () => {
    const { publisher, current, registry } = await setUp();
    const other = `r.io/os/worker@sha256:${'1'.repeat(64)}`;
    expect(await registry.requestsOf(() => publisher().publish(current(), booting(other)))).toEqual([]);
    expect(current().status?.conditions).toMatchObject([{ status: 'False', reason: 'OtherRepository' }]);
  });
});
