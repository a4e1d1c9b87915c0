import { describe, expect, it } from 'vitest';
import { changePackages, noPackages, osPackages } from './os-packages.ts';

describe('osPackages', () => {
  it('names the packages of extensions, each once, in an order of their own', () => {
    expect(osPackages({ extensions: ['usbguard', 'kerberos', 'usbguard'], kernelType: 'default' })).toEqual({
      installed: ['krb5-workstation', 'libkadm5', 'usbguard'],
      removed: [],
    });
  });

  it.each([
    ['realtime', 'kernel-rt-core'],
    ['64k-pages', 'kernel-64k-core'],
  ] as const)('puts kernel %s in the place of the image’s', (kernelType, expected) => {
    const { installed, removed } = osPackages({ extensions: ['sysstat'], kernelType });
    expect(installed).toContain(expected);
    expect(installed).toContain('sysstat');
    expect(removed).toContain('kernel-core');
  });
});

describe('changePackages', () => {
  it('keeps packages that the admin installed or removed', () => {
    const present = { installed: ['htop', 'usbguard'], removed: ['firefox'] };
    const remove = osPackages({ extensions: ['usbguard'], kernelType: 'default' });
    const add = osPackages({ extensions: ['sysstat'], kernelType: 'default' });
    expect(changePackages(present, { remove, add })).toEqual({
      installed: ['htop', 'sysstat'],
      removed: ['firefox'],
    });
  });

  it('restores the original packages when the config is reverted', () => {
    const present = { installed: ['htop'], removed: [] };
    const add = osPackages({ extensions: ['ipsec'], kernelType: 'realtime' });
    const there = changePackages(present, { remove: noPackages, add });
    expect(changePackages(there, { remove: add, add: noPackages })).toEqual(present);
  });
});
