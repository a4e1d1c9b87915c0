import { describe, expect, test } from 'vitest';
import type { MachineConfigNodeSpec, UpdatePlan } from '../../api/machine-config-node.ts';
import { present } from '../../api/present.ts';
import { imageOf, observation, standard } from '../../test/fixtures/step-context.ts';
import type { Current, LayeredCurrent, StandardCurrent } from '../records/current.ts';
import {
  byReboot,
  deploymentChange,
  formatNodeTarget,
  isAt,
  isFor,
  leadsTo,
  reboots,
  type Target,
  targetOf,
} from './update.ts';

const { spec } = observation();
const stock = imageOf('0');
const layered: LayeredCurrent = {
  version: 1,
  mode: 'Layered',
  config: 'rendered-2',
  image: imageOf('2'),
  baseImage: stock,
};
const standardOn = (baseImage: string | undefined, more: Partial<StandardCurrent> = {}) => ({
  ...standard('rendered-2'),
  ...present({ baseImage }),
  ...more,
});
/** Of a config that names two, in one entry. */
const withArguments = (kernelArguments: string[]) => {
  const { rendered } = standard('rendered-2');
  return standardOn(stock, {
    kernelArguments,
    rendered: { ...rendered, spec: { ...rendered.spec, kernelArguments: ['a=1 b'] } },
  });
};
const toImage: Target = { mode: 'Layered', config: 'rendered-2', image: imageOf('2') };
const toConfig: Target = { mode: 'Standard', config: 'rendered-2' };
const toStock: Target = { ...toConfig, osImage: stock };

test.each<[string, Partial<MachineConfigNodeSpec>, Target]>([
  ['a config', {}, toConfig],
  ['a config on an OS image', { osImage: stock }, toStock],
  ['a layered image', { configImage: { desiredImage: imageOf('2') } }, toImage],
  [
    'a layered image, whatever the stock image',
    { configImage: { desiredImage: imageOf('2') }, osImage: stock },
    toImage,
  ],
])('a spec that names %s', (_name, more, expected) => {
  expect(targetOf({ ...spec, ...more })).toEqual(expected);
});

test.each<[string, Target, Current | undefined, boolean]>([
  ['a fresh node', toConfig, undefined, false],
  ['the image', toImage, layered, true],
  ['another image', toImage, { ...layered, image: imageOf('3') }, false],
  ['another config in that image', toImage, { ...layered, config: 'rendered-1' }, false],
  ['the config without its image', toImage, standardOn(undefined), false],
  ['the config in an image', toConfig, layered, false],
  ['the config', toConfig, standardOn(stock), true],
  ['another config', toConfig, { ...standardOn(stock), config: 'rendered-1' }, false],
  ['the config on its OS image', toStock, standardOn(stock), true],
  ['the config on another OS image', toStock, standardOn(imageOf('9')), false],
  ['the config on an unknown OS image', toStock, standardOn(undefined), false],
  ['the config with its kernel arguments', toConfig, withArguments(['a=1', 'b']), true],
  ['the config with another kernel argument', toConfig, withArguments(['a=1', 'b', 'left=1']), false],
  ['the config without a kernel argument', toStock, withArguments(['a=1']), false],
  ['the config where any OS image will do', { ...toConfig, osImage: '' }, standardOn(imageOf('9')), true],
])('a node that runs %s', (_name, target, current, expected) => {
  expect(isAt(target, current)).toBe(expected);
});

test.each([
  ['its config and image', { config: 'rendered-2', image: imageOf('2') }, toImage, true],
  ['another image', { config: 'rendered-2', image: imageOf('3') }, toImage, false],
  ['its config and no image', { config: 'rendered-2' }, toImage, false],
  ['another config', { config: 'rendered-1', image: imageOf('2') }, toImage, false],
  ['its config in standard mode', { config: 'rendered-2' }, toConfig, true],
  ['an image, of a target in standard mode', { config: 'rendered-2', image: imageOf('2') }, toConfig, false],
])('a grant for %s', (_name, given, target, expected) => {
  expect(isFor(given, target)).toBe(expected);
});

test('a target is formatted by its mode', () => {
  expect(formatNodeTarget(toImage)).toBe(`rendered-2 in ${imageOf('2')}`);
  expect(formatNodeTarget(toStock)).toBe('rendered-2 in standard mode');
});

const plan = (more: Partial<UpdatePlan> = {}): UpdatePlan => ({
  config: 'rendered-2',
  staged: true,
  actions: [],
  causes: [],
  source: 'test',
  ...more,
});

test.each<[string, UpdatePlan, Current, Target, boolean]>([
  ['an image leads there', plan({ image: imageOf('2') }), layered, toImage, true],
  [
    'an image leads to no other',
    plan({ image: imageOf('2') }),
    layered,
    { ...toImage, image: imageOf('3') },
    false,
  ],
  ['a config leads there', plan(), standardOn(stock), toConfig, true],
  ['a config leads to its OS image', plan(), standardOn(stock), toStock, true],
  ['a config leads to no other OS image', plan(), standardOn(imageOf('9')), toStock, false],
  [
    'a config leads to no other config',
    plan(),
    standardOn(stock),
    { ...toConfig, config: 'rendered-3' },
    false,
  ],
  ['a config leads to no image', plan(), standardOn(stock), toImage, false],
  [
    'what ends in another mode does not lead there',
    plan({ image: imageOf('2') }),
    standardOn(stock),
    toImage,
    false,
  ],
])('%s', (_name, given, next, target, expected) => {
  expect(leadsTo({ plan: given, next }, target)).toBe(expected);
});

test('a reboot among other actions is one', () => {
  expect(reboots({ plan: plan({ actions: [{ type: 'Drain' }, { type: 'Reboot' }] }) })).toBe(true);
  expect(reboots({ plan: plan({ actions: [{ type: 'Drain' }, { type: 'DaemonReload' }] }) })).toBe(false);
  expect(reboots({ plan: plan() })).toBe(false);
});

test('an update by way of a reboot says why, and is the same update otherwise', () => {
  const update = { plan: plan({ actions: [{ type: 'DaemonReload' }] }), next: layered };
  expect(byReboot(update, 'no such unit')).toEqual({
    plan: plan({
      actions: [{ type: 'Reboot' }],
      source: 'could not be applied live: no such unit',
      liveFailure: 'no such unit',
    }),
    next: layered,
  });
  expect(byReboot(update, 'x'.repeat(2_000)).plan.liveFailure).toHaveLength(1_024);
});

describe('the deployment that an update needs', () => {
  const none = { installed: [], removed: [] };
  const htop = { installed: ['htop'], removed: [] };
  const withRepository = (packages: typeof htop): Current => ({
    ...standardOn(stock, { packages }),
    rendered: {
      ...standard('rendered-2').rendered,
      spec: { baseOSExtensionsContainerImage: imageOf('e') },
    },
  });

  test.each<[string, Current | undefined, string | undefined, Current]>([
    ['files alone', standardOn(stock), stock, standardOn(stock)],
    [
      'files alone on a node whose image is not known',
      standardOn(undefined),
      undefined,
      standardOn(undefined),
    ],
    ['the first files', undefined, stock, standardOn(stock)],
    [
      'the same kernel arguments',
      standardOn(stock, { kernelArguments: ['a'] }),
      stock,
      standardOn(stock, { kernelArguments: ['a'] }),
    ],
    [
      'the same packages',
      standardOn(stock, { packages: htop }),
      stock,
      standardOn(stock, { packages: htop }),
    ],
  ])('is the booted one for %s', (_name, current, booted, next) => {
    expect(deploymentChange(current, booted, next)).toBeUndefined();
  });

  test.each<[string, Current | undefined, Current, object]>([
    [
      'of the layered image',
      undefined,
      layered,
      { image: imageOf('2'), extraPackages: { remove: none, add: none } },
    ],
    [
      'of the layered image, without what standard mode had added',
      standardOn(stock, { kernelArguments: ['a'], packages: htop }),
      layered,
      {
        image: imageOf('2'),
        extraKernelArguments: { remove: ['a'], add: [] },
        extraPackages: { remove: htop, add: none },
      },
    ],
    [
      'with other kernel arguments',
      standardOn(stock, { kernelArguments: ['a'] }),
      standardOn(stock, { kernelArguments: ['b'] }),
      { image: stock, extraKernelArguments: { remove: ['a'], add: ['b'] } },
    ],
    ['of another OS image', standardOn(stock), standardOn(imageOf('9')), { image: imageOf('9') }],
    ['of another OS image than was booted', undefined, standardOn(imageOf('9')), { image: imageOf('9') }],
    [
      'of the stock image, on the way out of layering',
      layered,
      standardOn(stock),
      { image: stock, extraKernelArguments: { remove: [], add: [] } },
    ],
    [
      'with packages from the repositories of the host',
      standardOn(stock),
      standardOn(stock, { packages: htop }),
      { extraPackages: { remove: none, add: htop } },
    ],
    [
      'with packages from the image of the config',
      standardOn(stock),
      withRepository(htop),
      { extraPackages: { remove: none, add: htop, repository: imageOf('e') } },
    ],
    [
      'without packages, for which no repository is needed',
      standardOn(stock, { packages: htop }),
      withRepository({ installed: [], removed: [] }),
      { extraPackages: { remove: htop, add: none } },
    ],
  ])('is one %s', (_name, current, next, expected) => {
    const change = deploymentChange(current, stock, next);
    expect(change).toMatchObject(expected);
    if ('extraPackages' in expected) expect(change?.extraPackages).toEqual(expected.extraPackages);
  });

  test('can not be chosen where no OS image is known', () => {
    const next = standardOn(undefined, { kernelArguments: ['b'] });
    expect(() => deploymentChange(undefined, undefined, next)).toThrow(/rendered-2: .*expected spec.osImage/);
  });

  test('is of no image that is named by a tag', () => {
    const next = standardOn('registry.example.com/os/stock:latest');
    expect(() => deploymentChange(standardOn(stock), stock, next)).toThrow();
  });
});
