import { describe, expect, it } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import { defaultPolicySettings, effectivePolicies } from '../../disruption/effective-policies.ts';
import { formatEffects } from './mirror-effects.ts';
import { formatPredicted, type PredictedTransition, predictForNodes } from './predicted-transitions.ts';

const restart = { type: 'Restart' as const, restart: { serviceName: 'chronyd.service' } };
const policies = effectivePolicies(
  { files: [{ path: '/etc/chrony.conf', actions: [restart] }] },
  defaultPolicySettings,
);

function rendered(name: string, files: Readonly<Record<string, string>>): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: {
      config: {
        ignition: { version: '3.5.0' },
        storage: {
          files: Object.entries(files).map(([path, text]) => ({
            path,
            mode: 420,
            contents: { source: `data:,${text}` },
          })),
        },
      },
    },
  };
}

const configs = new Map(
  [
    rendered('a', { '/etc/chrony.conf': '1' }),
    rendered('b', { '/etc/chrony.conf': '1', '/etc/unknown': '1' }),
    rendered('c', { '/etc/chrony.conf': '2' }),
  ].map((config) => [config.metadata.name, config]),
);
const to = configs.get('c') ?? rendered('c', {});
const look = (...running: (string | undefined)[]) =>
  predictForNodes({ running, configs: (name) => configs.get(name), to, policies });

describe('what a rendering will ask', () => {
  it('is recorded for each config that nodes run, most nodes first', () => {
    const predicted = look('b', 'a', 'a', undefined, 'gone', 'c');
    expect(
      predicted.map(({ from, nodes, actions }) => [from, nodes, actions.map(({ type }) => type)]),
    ).toEqual([
      ['a', 2, ['Restart']],
      ['b', 1, ['Reboot']],
      ['c', 1, []],
    ]);
  });

  it('is written with the summary first', () => {
    const text = formatPredicted(look('a', 'a', 'b'));
    expect(text).toMatch(
      /^\{"summary":"2 nodes: Restart\(chronyd\.service\); 1 node: Reboot","transitions":\[/,
    );
    expect(text).toContain('"rule":"policy for /etc/chrony.conf"');
    expect(formatPredicted([])).toContain('no node runs anything yet');
  });

  it('leaves out causes where they are too many, and then transitions', () => {
    const cause = {
      subject: '/etc/x',
      kind: 'file',
      change: 'changed',
      rule: 'r'.repeat(200),
      actions: [],
    } as const;
    const one = (from: string): PredictedTransition => ({
      from,
      nodes: 1,
      actions: [],
      causes: Array(100).fill(cause),
    });
    const without = formatPredicted([one('a')]);
    expect(without).not.toContain('rrr');
    expect(without).toContain('"from":"a"');
    const many = formatPredicted(Array.from({ length: 2000 }, (_, i) => one(`rendered-${i}`)));
    expect(many.length).toBeLessThanOrEqual(16 * 1024);
    expect(many).not.toContain('transitions');
  });
});

it('effects of a mirror object are kept by pool', () => {
  const effect = { config: 'rendered-x', actions: [{ type: 'Drain' as const }], rule: 'r' };
  const one = formatEffects(undefined, 'worker', effect);
  const two = formatEffects(one, 'infra', { ...effect, actions: [] });
  expect(JSON.parse(two)).toMatchObject({
    summary: 'infra: None; worker: Drain',
    pools: { infra: { actions: 'None' }, worker: { actions: 'Drain' } },
  });
  expect(formatEffects('no json', 'worker', effect)).toBe(one);
});

it('nothing is predicted for a rendering that can not be read', () => {
  const broken = rendered('d', {});
  const predicted = predictForNodes({
    running: ['a'],
    configs: (name) => configs.get(name),
    to: { ...broken, spec: { config: { ignition: { version: '99.0.0' } } } },
    policies,
  });
  expect(predicted).toEqual([]);
});
