import { expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { ObjectChange } from '../../cluster/informer.ts';
import { aMachineConfigNode } from '../../test/fixtures/objects.ts';
import { NodesWithPinnedImages } from './keeping-nodes.ts';

const sets = [{ name: 'till', generation: 1 }];
const keeper = (name: string) => aMachineConfigNode(name, { pinnedImages: { sets } });

/** @param changes that a watch has shown. */
function after(...changes: readonly ObjectChange<MachineConfigNode>[]) {
  const shown = new Map<string, MachineConfigNode>();
  let handle: (change: ObjectChange<MachineConfigNode>) => void = () => undefined;
  const nodes = new NodesWithPinnedImages({
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
  return (...names: readonly string[]) => nodes.among(names).map(({ metadata }) => metadata.name);
}

it('has the nodes of a pool that have to keep images', () => {
  const among = after(
    { type: 'ADDED', object: keeper('a') },
    { type: 'ADDED', object: aMachineConfigNode('b') },
    { type: 'ADDED', object: keeper('of-another-pool') },
  );
  expect(among('a', 'b', 'new')).toEqual(['a']);
});

it.each<[string, ObjectChange<MachineConfigNode>, string[]]>([
  ['comes to keep images', { type: 'MODIFIED', object: keeper('b') }, ['a', 'b']],
  ['need not any more', { type: 'MODIFIED', object: aMachineConfigNode('a') }, []],
  ['is deleted', { type: 'DELETED', object: keeper('a') }, []],
])('follows a node that %s', (_what, change, names) => {
  const among = after({ type: 'ADDED', object: keeper('a') }, change);
  expect(among('a', 'b')).toEqual(names);
});
