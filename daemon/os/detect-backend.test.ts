import { describe, expect, it } from 'vitest';
import { chooseBackend, type FoundTools } from './detect-backend.ts';

const plain: FoundTools = { isBootedByOstree: true, hasRpmOstree: false, hasOstree: true };
const bootc = { isOfImage: true };
const changed = { isOfImage: false, obstacle: 'changed by rpm-ostree' };

describe('chooseBackend', () => {
  it.each<[string, FoundTools, string]>([
    ['plain ostree', plain, 'ostree'],
    ['bootc alone', { ...plain, bootc }, 'bootc'],
    ['bootc and rpm-ostree on an image', { ...plain, bootc, hasRpmOstree: true }, 'bootc'],
    ['rpm-ostree alone', { ...plain, hasRpmOstree: true }, 'rpm-ostree'],
    [
      'both, and no image booted yet',
      { ...plain, bootc: { isOfImage: false }, hasRpmOstree: true },
      'rpm-ostree',
    ],
    ['bootc, and no image booted yet', { ...plain, bootc: { isOfImage: false } }, 'bootc'],
    ['both, and packages layered', { ...plain, bootc: changed, hasRpmOstree: true }, 'rpm-ostree'],
  ])('%s', (_name, found, expected) => {
    expect(chooseBackend(found)).toEqual({ kind: 'found', name: expected });
  });

  it.each<[string, FoundTools, string]>([
    ['an ordinary host', { ...plain, isBootedByOstree: false }, 'not booted by ostree'],
    [
      'a host of bootc without ostree',
      { ...plain, isBootedByOstree: false, bootc: { isOfImage: false, obstacle: 'composefs' } },
      'bootc: composefs',
    ],
    ['packages layered by an rpm-ostree that is gone', { ...plain, bootc: changed }, 'changed by rpm-ostree'],
    [
      'a host that ostree booted and does not have',
      { ...plain, hasOstree: false },
      'ostree is not installed',
    ],
  ])('touches nothing on %s', (_name, found, why) => {
    expect(chooseBackend(found)).toEqual({ kind: 'none', why: expect.stringContaining(why) });
  });

  it('takes rpm-ostree for packages, wherever it is', () => {
    const forPackages = { forPackages: true };
    expect(chooseBackend({ ...plain, bootc, hasRpmOstree: true }, forPackages)).toMatchObject({
      name: 'rpm-ostree',
    });
    expect(chooseBackend({ ...plain, bootc }, forPackages)).toMatchObject({ name: 'bootc' });
    expect(
      chooseBackend({ ...plain, bootc, hasRpmOstree: true }, { ...forPackages, requested: 'bootc' }),
    ).toMatchObject({ name: 'bootc' });
  });

  it('does as the admin says, or nothing', () => {
    const both = { ...plain, bootc, hasRpmOstree: true };
    expect(chooseBackend(both, { requested: 'rpm-ostree' })).toEqual({ kind: 'found', name: 'rpm-ostree' });
    expect(chooseBackend(both, { requested: 'ostree' })).toEqual({ kind: 'found', name: 'ostree' });
    expect(chooseBackend(plain, { requested: 'bootc' })).toEqual({
      kind: 'none',
      why: 'bootc is not installed',
    });
    expect(chooseBackend({ ...plain, bootc: changed }, { requested: 'bootc' })).toEqual({
      kind: 'none',
      why: 'bootc: changed by rpm-ostree',
    });
  });
});
