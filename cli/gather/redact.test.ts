import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { redact } from './redact.ts';

const CANARY = 'hunter2hunter2';

function object(kind: string, more: object): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind,
    metadata: {
      name: 'a',
      annotations: {
        'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({ data: CANARY }),
        'shale.dev/no-reboot': '*',
      },
    },
    ...more,
  };
}

const file = (contents: object) => ({ path: '/etc/pull-secret', mode: 384, contents });

test.each<[string, object]>([
  ['Secret', { type: 'Opaque', data: { 'cosign.key': CANARY }, stringData: { more: CANARY } }],
  [
    'MachineConfig',
    {
      spec: {
        kernelArguments: ['quiet'],
        config: {
          passwd: { users: [{ name: 'core', passwordHash: CANARY }] },
          storage: {
            files: [
              file({ source: `data:,${CANARY}` }),
              file({ source: 'https://a', httpHeaders: [{ name: 'Authorization', value: CANARY }] }),
              { path: '/etc/b', append: [{ source: `data:,${CANARY}` }] },
            ],
          },
          systemd: {
            units: [{ name: 'a.service', contents: CANARY, dropins: [{ name: 'b.conf', contents: CANARY }] }],
          },
        },
      },
    },
  ],
  ['Pod', { spec: { containers: [{ name: 'a', env: [{ name: 'HTTPS_PROXY', value: CANARY }] }] } }],
  [
    'Deployment',
    { spec: { template: { spec: { containers: [{ name: 'a', env: [{ name: 'X', value: CANARY }] }] } } } },
  ],
])('nothing secret of a %s remains', (kind, more) => {
  const text = JSON.stringify(redact(object(kind, more)));
  expect(text).not.toContain(CANARY);
  expect(text).toContain('shale.dev/no-reboot');
});

test('paths, units and kernel arguments of a MachineConfig remain', () => {
  const config = { storage: { files: [file({ source: 'data:,abc' })] } };
  expect(redact(object('MachineConfig', { spec: { kernelArguments: ['quiet'], config } }))).toMatchObject({
    spec: {
      kernelArguments: ['quiet'],
      config: {
        storage: {
          files: [{ path: '/etc/pull-secret', mode: 384, contents: { source: '(omitted: 9 characters)' } }],
        },
      },
    },
  });
});

test('the keys of a Secret and the lengths of its values remain', () => {
  expect(redact(object('Secret', { data: { 'cosign.key': 'abc' } }))).toMatchObject({
    data: { 'cosign.key': '(omitted: 3 characters)' },
  });
});

test('what shale try restores is the whole MachineConfig, with its secrets', () => {
  const tried = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: '99-a', annotations: { 'shale.dev/try': CANARY, owner: 'net' } },
  };
  expect(redact(tried).metadata.annotations).toEqual({ owner: 'net' });
});
