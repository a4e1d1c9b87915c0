import { describe, expect, it } from 'vitest';
import type { Node } from '../api/kubernetes.ts';
import { poolOfNode, selectedConfigs } from './pools.ts';
import { registriesMachineConfig } from './registries/machine-config.ts';
import { renderPool } from './render.ts';
import { machineConfig, pool } from './testdata/build.ts';

const role = (name: string) => `node-role.kubernetes.io/${name}`;

function node(...labels: string[]): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', labels: Object.fromEntries(labels.map((label) => [label, ''])) },
  };
}

const imageConfig = {
  apiVersion: 'config.openshift.io/v1',
  kind: 'Image',
  metadata: { name: 'cluster' },
  spec: { registrySources: { insecureRegistries: ['registry.test:5000'] } },
};

function roled(name: string) {
  return pool(name, { nodeSelector: { matchLabels: { [role(name)]: '' } } });
}

describe('MachineConfigs of a pool', () => {
  const configs = [machineConfig('w', undefined), machineConfig('i', undefined, {}, 'infra')];
  const key = 'machineconfiguration.openshift.io/role';

  it('are those that its selector matches', () => {
    const machineConfigSelector = {
      matchExpressions: [{ key, operator: 'In' as const, values: ['worker', 'infra'] }],
    };
    expect(selectedConfigs(pool('infra', { machineConfigSelector }), configs)).toEqual(configs);
    expect(
      selectedConfigs(
        pool('worker', { machineConfigSelector: { matchLabels: { [key]: 'worker' } } }),
        configs,
      ),
    ).toEqual([configs[0]]);
  });

  it('are none where there is no selector, or an empty one', () => {
    expect(selectedConfigs(pool('x'), configs)).toEqual([]);
    expect(selectedConfigs(pool('x', { machineConfigSelector: {} }), configs)).toEqual([]);
  });

  it.each([
    { key, operator: 'NotIn' as const, values: ['infra'] },
    { key, operator: 'DoesNotExist' as const },
    { key: 'example.org/excluded', operator: 'DoesNotExist' as const },
  ])('are never rendered configs: $operator $key matches what has no labels', (expression) => {
    const selecting = pool('x', { machineConfigSelector: { matchExpressions: [expression] } });
    const plain = machineConfig('plain', undefined);
    const unlabelled = { ...plain, metadata: { name: 'rendered-by-hand' } };
    const rendering = renderPool({ pool: pool('x'), configs: [plain], controllerVersion: '1' });
    if (!rendering.ok) throw new Error('it can be rendered');
    const { rendered } = rendering;
    // A backup or an export may have no owners.
    const { ownerReferences: _owners, ...metadata } = rendered.metadata;
    // MCO names them so, too; by its owner it is one under any name.
    const renamed = { ...rendered, metadata: { ...rendered.metadata, name: 'copy' } };
    const all = [unlabelled, rendered, { ...rendered, metadata }, renamed];
    expect(selectedConfigs(selecting, all)).toEqual([unlabelled]);
  });

  it('are what is generated for its role, too', () => {
    const generated = registriesMachineConfig('worker', {
      icsp: [],
      idms: [],
      itms: [],
      controllerVersion: '1',
      image: imageConfig,
    });
    if (!generated.ok || generated.machineConfig === undefined) throw new Error('there are settings');
    const worker = pool('worker', { machineConfigSelector: { matchLabels: { [key]: 'worker' } } });
    expect(selectedConfigs(worker, [generated.machineConfig])).toEqual([generated.machineConfig]);
  });
});

describe('the pool of a node', () => {
  const pools = ['master', 'worker', 'infra', 'storage'].map(roled);

  it.each([
    [['worker'], 'worker'],
    [['infra'], 'infra'],
    [['worker', 'infra'], 'infra'],
    [['master', 'worker'], 'master'],
    [['master', 'worker', 'infra'], 'master'],
    [[], undefined],
  ])('with the roles %j is %s', (roles, name) => {
    const result = poolOfNode(node(...roles.map(role)), pools);
    expect(result).toMatchObject({ ok: true });
    expect(result.ok && result.pool?.metadata.name).toBe(name);
  });

  it('is an error when two custom pools select it', () => {
    expect(poolOfNode(node(role('storage'), role('infra')), pools)).toMatchObject({
      ok: false,
      problem: 'node n1 belongs to 2 custom pools (infra, storage); expected at most one',
    });
  });

  it('may be selected by any label', () => {
    const gpu = pool('gpu', {
      nodeSelector: { matchExpressions: [{ key: 'example.org/gpu', operator: 'Exists' }] },
    });
    expect(poolOfNode(node('example.org/gpu', role('worker')), [...pools, gpu])).toEqual({
      ok: true,
      pool: gpu,
    });
  });

  it('is none for a pool without a selector and for a Windows node', () => {
    expect(poolOfNode(node(role('worker')), [pool('worker', { nodeSelector: {} })])).toEqual({ ok: true });
    const windows = node(role('worker'));
    const labels = { ...windows.metadata.labels, 'kubernetes.io/os': 'windows' };
    expect(poolOfNode({ ...windows, metadata: { name: 'w', labels } }, pools)).toEqual({ ok: true });
  });
});
