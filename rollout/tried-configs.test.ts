import { expect, it } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import type { Change } from '../cluster/informer.ts';
import { TriedConfigs } from './tried-configs.ts';

const config = (name: string, isTried: boolean): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name, annotations: isTried ? { [annotations.try]: '{}' } : {} },
  spec: {},
});

/** @param changes that a watch has shown. */
function after(...changes: readonly Change<MachineConfig>[]) {
  const shown = new Map<string, MachineConfig>();
  let handle: (change: Change<MachineConfig>) => void = () => undefined;
  const configs = new TriedConfigs({
    get: (name) => shown.get(name),
    onChange: (handler) => {
      handle = handler;
    },
  });
  for (const change of changes) {
    const { name } = change.object.metadata;
    if (change.type === 'DELETED') shown.delete(name);
    else shown.set(name, change.object);
    handle(change);
  }
  return { shown, names: () => configs.list().map(({ metadata }) => metadata.name) };
}

it.each<[string, Change<MachineConfig>, string[]]>([
  ['comes to be tried', { type: 'MODIFIED', object: config('b', true) }, ['a', 'b']],
  ['is confirmed', { type: 'MODIFIED', object: config('a', false) }, []],
  ['is deleted', { type: 'DELETED', object: config('a', true) }, []],
])('follows a MachineConfig that %s', (_what, change, names) => {
  const { names: tried } = after(
    { type: 'ADDED', object: config('a', true) },
    { type: 'ADDED', object: config('b', false) },
    change,
  );
  expect(tried()).toEqual(names);
});

it('has none that the operator has written back, before the watch shows it', () => {
  const { shown, names } = after({ type: 'ADDED', object: config('a', true) });
  shown.set('a', config('a', false));
  expect(names()).toEqual([]);
});
