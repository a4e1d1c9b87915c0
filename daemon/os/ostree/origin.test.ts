import { describe, expect, it } from 'vitest';
import { parseDigestedPullspec } from '../../../api/references.ts';
import { formatOrigin, imageOfOrigin } from './origin.ts';

const image = parseDigestedPullspec(`registry.test:5000/os/image@sha256:${'a'.repeat(64)}`);

describe('origin files', () => {
  it('name the image that a deployment was made from', () => {
    expect(imageOfOrigin(formatOrigin('shale/image/a', image))).toBe(image);
  });

  it('name none for what no image made', () => {
    expect(imageOfOrigin(formatOrigin('debian/12'))).toBeUndefined();
    expect(imageOfOrigin('[origin]\nimage=elsewhere\n')).toBeUndefined();
  });
});
