import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { digestOf } from './digest.ts';
import { type Instance, imageIndex } from './image-index.ts';

const OCI = 'application/vnd.oci.image.manifest.v1+json';
const DOCKER = 'application/vnd.docker.distribution.manifest.v2+json';
const instance = (architecture: string, mediaType = OCI, variant?: string): Instance => ({
  descriptor: { mediaType, digest: digestOf(Buffer.from(architecture)), size: 7 },
  platform: { os: 'linux', architecture, ...(variant === undefined ? {} : { variant }) },
});
const read = (instances: readonly Instance[]) =>
  JSON.parse(Buffer.from(imageIndex(instances).bytes).toString());

describe('imageIndex', () => {
  test('names each image with its platform', () => {
    expect(read([instance('arm64', OCI, 'v8'), instance('amd64')])).toEqual({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [
        {
          ...instance('amd64').descriptor,
          platform: { architecture: 'amd64', os: 'linux' },
        },
        {
          ...instance('arm64').descriptor,
          platform: { architecture: 'arm64', os: 'linux', variant: 'v8' },
        },
      ],
    });
  });

  test('is a manifest list where every image is of Docker', () => {
    const { mediaType } = imageIndex([instance('amd64', DOCKER), instance('arm64', DOCKER)]);
    expect(mediaType).toBe('application/vnd.docker.distribution.manifest.list.v2+json');
    expect(imageIndex([instance('amd64', DOCKER), instance('arm64')]).mediaType).toBe(
      'application/vnd.oci.image.index.v1+json',
    );
  });

  test('can not have two images of one platform', () => {
    expect(() => imageIndex([instance('amd64'), instance('amd64', DOCKER)])).toThrow(/linux\/amd64/);
  });

  test('the same images in any order are the same bytes', () => {
    const names = ['amd64', 'arm64', 'ppc64le', 's390x', 'riscv64'];
    fc.assert(
      fc.property(fc.shuffledSubarray(names, { minLength: 1 }), (order) => {
        const bytes = imageIndex(order.map((name) => instance(name))).bytes;
        expect(bytes).toEqual(imageIndex(order.toSorted().map((name) => instance(name))).bytes);
      }),
    );
  });
});
