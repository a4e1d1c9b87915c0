import { useMemo, useRef, useState } from 'preact/hooks';
import { plural } from '../../../api/plural.ts';
import { byNaturalOrder, type NodeRow, type PageView, type PoolRow, type Table } from '../../model/view.ts';
import type { CellSelection, CellSize, Member } from './cell-grid.tsx';
import { Legend } from './legend.tsx';
import { NodeDetail } from './node-detail.tsx';
import { NodeTable } from './node-table.tsx';
import { PoolSection } from './pool-section.tsx';

type NodesProps = Pick<PageView, 'pools' | 'nodes' | 'plans' | 'leases'> & CellSelection;

/** Pools with cells for their nodes, or a table of all nodes; and the details of the selected node. */
export function NodesSection({ pools, nodes, plans, leases, selected, onSelect }: NodesProps) {
  const [asTable, setAsTable] = useState(false);
  const names = useSortedNames(nodes);
  const members = useMemo(() => byPool(pools, nodes, names), [pools, nodes, names]);
  const size = cellSize(Object.keys(nodes).length);
  const node = selected === undefined ? undefined : nodes[selected];
  return (
    <section id="nodes" aria-labelledby="nodes-title">
      <div class="title-row">
        <h2 id="nodes-title">Nodes</h2>
        <fieldset class="switch">
          <legend class="visually-hidden">View</legend>
          <label>
            <input type="radio" name="how" checked={!asTable} onChange={() => setAsTable(false)} /> Cells
          </label>
          <label>
            <input type="radio" name="how" checked={asTable} onChange={() => setAsTable(true)} /> Table
          </label>
        </fieldset>
        {members.size < 2 ? null : <Totals members={members} selected={selected} />}
      </div>
      <div class="nodes-and-detail">
        {asTable ? (
          <NodeTable nodes={nodes} selected={selected} onSelect={onSelect} />
        ) : (
          <div class="pools">
            {[...members].map(([name, own]) => (
              <PoolSection
                key={name}
                name={name}
                pool={pools[name]}
                members={own}
                size={size}
                selected={node?.pool === name ? selected : undefined}
                plans={plans}
                onSelect={onSelect}
              />
            ))}
            {members.size === 0 ? <p class="quiet">There are no pools and no nodes.</p> : null}
          </div>
        )}
        <NodeDetail
          name={selected}
          node={node}
          plans={plans}
          lease={selected === undefined ? undefined : leases[selected]}
        />
      </div>
    </section>
  );
}

type MembersByPool = ReadonlyMap<string, readonly Member[]>;

/** The nodes of all pools by state and mark. */
function Totals({
  members,
  selected,
}: Pick<CellSelection, 'selected'> & { readonly members: MembersByPool }) {
  const all = [...members.values()].flat();
  const pools = [...members.keys()].filter(Boolean).length;
  return (
    <div class="totals">
      <span class="quiet">
        {plural(all.length, 'node')} in {plural(pools, 'pool')}
      </span>
      <Legend members={all} selected={selected} />
    </div>
  );
}

/** Names in natural order; sorted again only when they change. */
function useSortedNames(nodes: Table<NodeRow>): readonly string[] {
  const known = useRef<{ readonly given: readonly string[]; readonly sorted: readonly string[] }>({
    given: [],
    sorted: [],
  });
  const given = Object.keys(nodes);
  const { given: before } = known.current;
  if (given.length !== before.length || given.some((name, index) => name !== before[index])) {
    known.current = { given, sorted: given.toSorted(byNaturalOrder) };
  }
  return known.current.sorted;
}

/** Every pool, including empty ones; nodes without a pool come last. */
function byPool(pools: Table<PoolRow>, nodes: Table<NodeRow>, names: readonly string[]): MembersByPool {
  const members = new Map<string, Member[]>(Object.keys(pools).map((name) => [name, []]));
  for (const name of names) {
    const node = nodes[name];
    if (node === undefined) continue;
    const known = members.get(node.pool);
    if (known === undefined) members.set(node.pool, [[name, node]]);
    else known.push([name, node]);
  }
  return new Map(
    [...members].toSorted(([a], [b]) => Number(a === '') - Number(b === '') || byNaturalOrder(a, b)),
  );
}

/** Chosen so that every node of the cluster is visible at once. */
function cellSize(nodes: number): CellSize {
  if (nodes <= 60) return 'named';
  if (nodes <= 600) return 'large';
  return nodes <= 2_000 ? 'small' : 'tiny';
}
