import { describe, expect, it } from 'vitest';
import { layerRefOf } from './bring-image.ts';

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;

describe('layerRefOf', () => {
  it('names layers as ostree’s container code does', () => {
    expect(layerRefOf(digest('a'))).toBe(`ostree/container/blob/sha256_3A_${'a'.repeat(64)}`);
  });
});
