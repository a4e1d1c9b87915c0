import { expect, test } from 'vitest';
import { type RootToBoot, rootObstacle } from './bootable-root.ts';
import { parseRootConfiguration } from './prepare-root.ts';

const FILE = '/usr/lib/ostree/prepare-root.conf';
const configured = (text: string, file = FILE) => ({ configurations: [parseRootConfiguration(file, text)] });
const composefs = (value: string, more = '') => configured(`[composefs]\nenabled = ${value}\n${more}`);
const argument = (value: string) => `ostree.prepare-root.composefs=${value}`;
const next = (...kernelArguments: readonly string[]) => ({ kernelArguments });
const running = (root: RootToBoot['running']['root'], ...kernelArguments: readonly string[]) => ({
  running: { root, kernelArguments, verity: root === 'signed composefs' },
});
const NO_COMPOSEFS = { makesComposefs: false };
const VERITY = { running: { root: 'composefs', kernelArguments: ['rw'], verity: true } } as const;
const TRANSIENT = '[root]\ntransient = true\n';

test.each<[string, Partial<RootToBoot>, string | undefined]>([
  ['of which nothing is said', {}, undefined],
  ['that is a composefs', composefs('yes'), undefined],
  ['with fs-verity', { ...composefs('verity'), ...VERITY }, undefined],
  [
    'with fs-verity, which the host does not have',
    { ...composefs('verity'), ...running('composefs') },
    `${FILE} demands fs-verity (composefs.enabled = verity)`,
  ],
  [
    'with fs-verity, which an argument overrides',
    { ...composefs('verity'), ...next(argument('0')) },
    undefined,
  ],
  ['whose image demands a signature', composefs('signed'), `${FILE} demands a signed composefs`],
  [
    'whose host demands a signature',
    configured('[composefs]\nenabled = signed\n', 'the host’s /etc/ostree/prepare-root.conf'),
    'the host’s /etc/ostree/prepare-root.conf demands a signed composefs',
  ],
  [
    'whose kernel arguments demand a signature',
    next('rw', argument('signed')),
    `the kernel argument ${argument('signed')} demands a signed composefs`,
  ],
  [
    'whose host has booted with that argument',
    { ...next(argument('signed')), ...running('signed composefs', argument('signed')) },
    `the kernel argument ${argument('signed')} demands`,
  ],
  [
    'whose first argument of two demands a signature',
    next(argument('signed'), argument('0')),
    'demands a signed composefs',
  ],
  ['whose second argument of two demands one', next(argument('0'), argument('signed')), undefined],
  [
    'whose image demands one, which an argument overrides',
    { ...composefs('signed'), ...next(argument('yes')), ...VERITY },
    undefined,
  ],
  [
    'whose image demands one, of which an argument leaves fs-verity',
    { ...composefs('signed'), ...next(argument('yes')) },
    `${FILE} demands fs-verity (composefs.enabled = signed)`,
  ],
  [
    'whose argument no ostree takes',
    { ...composefs('signed'), ...next(argument('verity')) },
    `the kernel argument ${argument('verity')} has a value that ostree-prepare-root does not take there`,
  ],
  [
    'whose argument the host has booted with',
    { ...next(argument('verity')), ...running('composefs', argument('verity')) },
    undefined,
  ],
  [
    'after a signed one',
    { ...composefs('yes'), ...running('signed composefs') },
    'the running root is a signed composefs (/run/ostree-booted), so its initramfs demands',
  ],
  [
    'after a signed one, without a signature by an argument',
    { ...running('signed composefs'), ...next(argument('yes')) },
    undefined,
  ],
  [
    'that runs, and is signed',
    { ...composefs('signed'), ...running('signed composefs'), isBooted: true },
    undefined,
  ],
  [
    'that runs, with an argument that demands a signature now',
    { ...running('composefs'), ...next(argument('signed')), isBooted: true },
    `the kernel argument ${argument('signed')} demands`,
  ],
  ['whose /etc is transient', composefs('yes', '[etc]\ntransient = true\n'), `${FILE} makes /etc transient`],
  ['that is transient', composefs('yes', TRANSIENT), undefined],
  ['that is transient, and perhaps a composefs', composefs('maybe', TRANSIENT), undefined],
  [
    'that is transient without a composefs',
    configured(TRANSIENT),
    `${FILE} makes / transient (root.transient) without a composefs`,
  ],
  [
    'that is to be a composefs, which the host makes none of',
    { ...composefs('true'), ...NO_COMPOSEFS },
    `${FILE} demands a composefs (composefs.enabled = true)`,
  ],
  [
    'that an argument makes a composefs, which the host makes none of',
    { ...composefs('no'), ...next(argument('1')), ...NO_COMPOSEFS },
    `the kernel argument ${argument('1')} demands a composefs, which`,
  ],
  [
    'that may be a composefs, where the host makes none',
    { ...composefs('maybe'), ...NO_COMPOSEFS },
    undefined,
  ],
  [
    'that is to be a composefs, which an argument overrides',
    { ...composefs('yes'), ...next(argument('maybe')), ...NO_COMPOSEFS },
    undefined,
  ],
  [
    'that runs, without the composefs that it could have been',
    { ...composefs('yes'), ...NO_COMPOSEFS, isBooted: true },
    undefined,
  ],
  [
    'that is transient, and perhaps a composefs, which the host makes none of',
    { ...composefs('maybe', TRANSIENT), ...NO_COMPOSEFS },
    `${FILE} makes / transient (root.transient) without a composefs, which ostree-prepare-root refuses, so it would not boot; expected a persistent /`,
  ],
  [
    'that is transient, whose composefs an argument takes away',
    { ...composefs('yes', TRANSIENT), ...next(argument('0')) },
    `${FILE} makes / transient`,
  ],
])('a root %s', (_name, given, expected) => {
  const root = { configurations: [], kernelArguments: ['rw'], isBooted: false, makesComposefs: true };
  const why = rootObstacle({ ...root, ...running('none', 'rw'), ...given });
  if (expected === undefined) expect(why).toBeUndefined();
  else {
    expect(why).toContain(expected);
    expect(why).toMatch(/; expected .+/);
  }
});
