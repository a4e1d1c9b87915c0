import { describe, expect, test } from 'vitest';
import type { BootImage } from '../../api/machine-config-pool.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { aMachineOSConfig, aPool, condition } from '../../test/fixtures/objects.ts';
import { formatNodeImage, NodeImageOutput, nodeImageOf } from './node-image.ts';

const image = `r.io/os/worker@sha256:${'1'.repeat(64)}`;
const tag = 'r.io/os/worker:current';
const pool = (proof?: BootImage['proof']) => ({
  ...aPool('worker'),
  ...(proof === undefined ? {} : { status: { bootImage: { image, proof } } }),
});
const config = (status: NonNullable<MachineOSConfig['status']> = {}): MachineOSConfig => {
  const { spec, ...rest } = aMachineOSConfig('worker');
  return { ...rest, spec: { ...spec, renderedImagePushSpec: 'r.io/os/worker:latest' }, status };
};

describe('without an image of its own, new nodes of a pool boot the stock image', () => {
  test.each([
    ['standard mode', nodeImageOf(pool('Rollout'), undefined)],
    ['proven an image yet', nodeImageOf(pool(), config())],
  ])('and the reason is told: %s', (why, node) => {
    expect(node.image).toBeNull();
    expect(formatNodeImage(node)).toMatch(/^pool worker: new nodes boot the stock image, because /);
    expect(formatNodeImage(node)).toContain(why);
  });
});

describe('the image for new nodes', () => {
  test('is named by digest in every command, so that its signature covers it', () => {
    const node = nodeImageOf(pool('Rollout'), config({ publishedImage: { tag, image } }));
    if (node.image === null) throw new Error(node.why);
    expect(node).toMatchObject({ image, tag, digest: `sha256:${'1'.repeat(64)}` });
    expect(node.unpublished).toBeUndefined();
    const byIgnition = node.ways.filter(({ commands }) => commands[0]?.includes(image) !== true);
    expect(byIgnition.map(({ name }) => name)).toEqual(['coreos-installer']);
    expect(byIgnition[0]?.commands[0]).toBe('shale node ignition worker > worker.ign');
    expect(NodeImageOutput.parse(node)).toEqual(node);
  });

  test.each<[string, NonNullable<MachineOSConfig['status']>, string]>([
    ['before the builder has looked', {}, `the builder has not moved ${tag} to it yet`],
    [
      'when the registry refused it',
      { conditions: [condition('BootImagePublished', 'False', 'denied')] },
      'denied',
    ],
    [
      'while the tag names the image before',
      {
        publishedImage: { tag, image: `r.io/os/worker@sha256:${'2'.repeat(64)}` },
        conditions: [condition('BootImagePublished')],
      },
      `the builder has not moved ${tag} to it yet`,
    ],
  ])('is told apart from what its tag names: %s', (_when, status, why) => {
    const text = formatNodeImage(nodeImageOf(pool('Rollback'), config(status)));
    expect(text).toContain(`${tag} (not yet: ${why})`);
  });

  test.each<[BootImage['proof'], string]>([
    ['Rollout', 'proven by a rollout of the pool'],
    ['Rollback', 'a rollback holds the pool at it'],
    ['None', 'no node has run it yet, because the pool has none'],
  ])('has a proof: %s', (proof, text) => {
    expect(formatNodeImage(nodeImageOf(pool(proof), config()))).toContain(`proof   ${text}`);
  });
});
