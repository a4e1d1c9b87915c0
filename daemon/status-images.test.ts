import { describe, expect, test } from 'vitest';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../api/machine-config-node.ts';
import { present } from '../api/present.ts';
import { image, later, noon, object, report } from '../test/fixtures/node-report.ts';
import { statusOf } from './status.ts';
import type { NodeReport } from './steps/phase.ts';

describe('images in the status', () => {
  const onStock = { version: 1, mode: 'Standard', config: 'rendered-1' } as NodeReport['current'];
  const { configImage: _image, ...withoutImage } = object().spec;
  test.each<[string, MachineConfigNode['spec'], Partial<NodeReport>, MachineConfigNodeStatus['configImage']]>(
    [
      [
        'runs one and is to run another',
        object().spec,
        {},
        { currentImage: image('1'), desiredImage: image('2') },
      ],
      ['runs one and is to leave it', withoutImage, {}, { currentImage: image('1') }],
      ['is to run one', object().spec, { current: onStock }, { desiredImage: image('2') }],
      ['has nothing to do with one', withoutImage, { current: onStock }, undefined],
    ],
  )('of a node that %s', (_what, spec, more, expected) => {
    const status = statusOf({ ...object(), spec }, report({ kind: 'updated' }, more), noon);
    expect(status.configImage).toEqual(expected);
    expect('configImage' in status).toBe(expected !== undefined);
  });

  test('name a base only where it is known, once the node has a config', () => {
    expect(statusOf(object(), report({ kind: 'updated' }, { current: onStock }), noon)).not.toHaveProperty(
      'baseImage',
    );
  });
});

describe('what the host does with unsigned images', () => {
  const policyOf = (imagePolicy: NodeReport['imagePolicy'], before?: MachineConfigNodeStatus) =>
    statusOf(object(before), report({ kind: 'updated' }, { imagePolicy }), later).conditions?.find(
      ({ type }) => type === 'SignaturePolicyApplied',
    );
  const applied = { kind: 'applied', repositories: ['r.io/os'] } as const;

  test('is reported once it matters, and that it no longer does', () => {
    expect(policyOf({ kind: 'not-required' })).toBeUndefined();
    expect(policyOf(undefined)).toBeUndefined();
    const status = statusOf(object(), report({ kind: 'updated' }, { imagePolicy: applied }), later);
    expect(policyOf(applied)).toMatchObject({
      status: 'True',
      message: "The host's tools take only signed images from r.io/os",
    });
    expect(policyOf({ kind: 'not-required' }, status)).toMatchObject({
      status: 'False',
      reason: 'NotRequired',
    });
  });

  test('is no failure of the node', () => {
    const imagePolicy = { kind: 'incomplete', reason: 'KeptAsItIs', why: 'an entry says so' } as const;
    expect(policyOf(imagePolicy)).toMatchObject({
      status: 'False',
      reason: 'KeptAsItIs',
      message: 'Shale alone verifies images: an entry says so',
    });
  });
});

describe('certificates that the operator names', () => {
  const [ca, secret] = ['sha256:ca', 'uid-1'];
  const asked = (certificates: MachineConfigNode['spec']['certificates']): MachineConfigNode => ({
    ...object(),
    spec: { ...object().spec, ...present({ certificates }) },
  });
  const withheld = (reason: 'OwnedByMachineConfig', why: string) => ({
    reason,
    why,
    version: ca,
    under: '',
    isDue: false,
  });
  test.each<[string, MachineConfigNode['spec']['certificates'], Partial<NodeReport>, object | undefined]>([
    ['none', undefined, { certificates: { registryCAs: ca } }, undefined],
    [
      'and the node has',
      { registryCAs: ca, pullSecret: secret },
      { certificates: { registryCAs: ca, pullSecret: secret } },
      { status: 'True', reason: 'Applied', message: 'Applied registryCAs, pullSecret' },
    ],
    [
      'of which the node has another version',
      { registryCAs: ca, pullSecret: secret },
      { certificates: { registryCAs: 'sha256:former', pullSecret: secret } },
      { status: 'False', reason: 'Applying', message: 'Applying registryCAs' },
    ],
    [
      'and that something keeps from the node',
      { registryCAs: ca },
      { withheld: new Map([['registryCAs', withheld('OwnedByMachineConfig', 'a config has the file')]]) },
      { status: 'False', reason: 'OwnedByMachineConfig', message: 'a config has the file' },
    ],
    [
      'of which something keeps two from the node',
      { registryCAs: ca, kubeletCA: ca, pullSecret: secret },
      {
        certificates: { kubeletCA: ca },
        withheld: new Map([
          ['registryCAs', withheld('OwnedByMachineConfig', 'a config has the file')],
          ['kubeletCA', withheld('OwnedByMachineConfig', 'is there by now')],
          ['pullSecret', withheld('OwnedByMachineConfig', 'a config has that, too')],
        ]),
      },
      {
        status: 'False',
        reason: 'OwnedByMachineConfig',
        message: 'a config has the file; a config has that, too',
      },
    ],
  ])('%s', (_name, certificates, more, expected) => {
    const { conditions = [] } = statusOf(asked(certificates), report({ kind: 'updated' }, more), noon);
    const found = conditions.find(({ type }) => type === 'CertificatesApplied');
    if (expected === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(expected);
    expect(conditions.find(({ type }) => type === 'NodeDegraded')?.status ?? 'False').toBe('False');
  });
});
