import { describe, expect, it } from 'vitest';
import { UNREPORTED_STATUS } from '../../api/object.ts';
import { aMachineConfigNode, condition, image, LONG_AGO, REBOOT } from '../../test/fixtures/objects.ts';
import { progressOf } from './progress.ts';

const CONFIG = 'rendered-worker-1';
const updated = { configVersion: { current: CONFIG, desired: CONFIG }, conditions: [condition('Updated')] };
const { spec } = aMachineConfigNode('n');
const layered = aMachineConfigNode('n', { configImage: { desiredImage: image('1') } }).spec;

describe('progress', () => {
  const planned = {
    plan: { config: CONFIG, staged: true, actions: [...REBOOT], causes: [], source: 'label' },
  };

  it.each([
    ['nothing said', spec, undefined, 'preparing'],
    ['runs it', spec, updated, 'updated'],
    ['runs it, not verified yet', spec, { ...updated, conditions: [] }, 'preparing'],
    [
      'runs another config',
      spec,
      { ...updated, configVersion: { current: 'x', desired: CONFIG } },
      'preparing',
    ],
    ['runs the config, not the image', layered, updated, 'preparing'],
    [
      'runs the image',
      layered,
      { ...updated, mode: 'Layered', configImage: { currentImage: image('1') } },
      'updated',
    ],
    [
      'runs an image in place of standard mode',
      spec,
      { ...updated, mode: 'Layered', configImage: { currentImage: image('1') } },
      'preparing',
    ],
    ['has it staged', spec, planned, 'staged'],
    ['has it half staged', spec, { plan: { ...planned.plan, staged: false } }, 'preparing'],
    ['has another config staged', spec, { plan: { ...planned.plan, config: 'x' } }, 'preparing'],
    ['has the config staged without the image', layered, planned, 'preparing'],
    ['failed', spec, { ...planned, conditions: [condition('NodeDegraded', 'True', 'no space')] }, 'degraded'],
  ] as const)('%s', (_what, desired, status, kind) => {
    expect(progressOf(desired, status as Parameters<typeof progressOf>[1]).kind).toBe(kind);
  });

  it('says what staging waits for', () => {
    expect(
      progressOf(spec, { conditions: [condition('UpdatePrepared', 'False', 'registry is down')] }),
    ).toEqual({
      kind: 'preparing',
      why: 'registry is down',
    });
  });

  it.each([
    ['nothing', undefined],
    ['what the API server fills in', UNREPORTED_STATUS],
  ])('is silent where the status is %s', (_what, status) => {
    expect(progressOf(spec, status)).toEqual({
      kind: 'preparing',
      why: 'the daemon has not reported yet',
      stalled: 'silent',
    });
  });

  it('has no reason before an update has started', () => {
    const notYet = {
      ...condition('UpdatePrepared', 'False', 'No update is at this stage'),
      reason: 'NotYet',
    };
    expect(progressOf(spec, { conditions: [notYet] })).toEqual({ kind: 'preparing' });
  });

  it.each([
    ['PrepareRefused', 'of this target', CONFIG, { stalled: 'refused' }],
    ['PrepareRefused', 'of the one before', 'rendered-worker-0', {}],
    ['PrepareFailed', 'of this target', CONFIG, { stalled: 'failed' }],
    ['Preparing', 'of this target', CONFIG, {}],
  ])('%s %s', (reason, _what, desired, more) => {
    const prepared = { ...condition('UpdatePrepared', 'False', 'usbguard'), reason };
    expect(progressOf(spec, { configVersion: { current: '', desired }, conditions: [prepared] })).toEqual({
      kind: 'preparing',
      why: 'usbguard',
      ...more,
    });
  });
});

it('a failure of an earlier target is distinguished from one of this', () => {
  const record = {
    config: 'rendered-worker-0',
    actions: [],
    causes: [],
    source: '',
    startedAt: LONG_AGO,
    finishedAt: LONG_AGO,
    bootIDBefore: '',
    bootIDAfter: '',
    result: 'Failed' as const,
  };
  const failed = (lastUpdate: object) =>
    progressOf(spec, {
      conditions: [condition('NodeDegraded', 'True', 'no space')],
      lastUpdate: { ...record, ...lastUpdate },
    });
  expect(failed({})).toMatchObject({ kind: 'degraded', ofAnother: true });
  expect(failed({ config: CONFIG })).toHaveProperty('ofAnother', undefined);
  expect(failed({ result: 'Succeeded' })).toHaveProperty('ofAnother', undefined);
});
