import { useMemo, useState } from 'preact/hooks';
import { nodeStateNames } from '../../../api/node-state.ts';
import { plural } from '../../../api/plural.ts';
import { byNaturalOrder, type NodeRow, type PageView, type Table } from '../../model/view.ts';
import { formatState, withShortHashes } from '../words.ts';
import type { CellSelection } from './cell-grid.tsx';

/** Rows that are drawn at first, and with each further step: users search a table of thousands. */
const STEP = 100;

/** Every node as a row, nodes that need attention first; for users who prefer a table to cells. */
export function NodeTable({ nodes, selected, onSelect }: Pick<PageView, 'nodes'> & CellSelection) {
  const [search, setSearch] = useState('');
  const [shown, setShown] = useState(STEP);
  const matching = useMemo(() => find(nodes, search), [nodes, search]);
  return (
    <div class="node-table">
      <p>
        <label for="search">Find by name, pool or state</label>{' '}
        <input
          id="search"
          type="search"
          value={search}
          onInput={({ currentTarget }) => {
            setSearch(currentTarget.value);
            setShown(STEP);
          }}
        />{' '}
        <span class="quiet" role="status">
          {plural(matching.length, 'node')}
        </span>
      </p>
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Pool</th>
              <th scope="col">State</th>
              <th scope="col">Ready</th>
              <th scope="col">Runs</th>
              <th scope="col">Remarks</th>
            </tr>
          </thead>
          <tbody>
            {matching.slice(0, shown).map(([name, node]) => (
              <Row key={name} name={name} node={node} selected={name === selected} onSelect={onSelect} />
            ))}
          </tbody>
        </table>
      </div>
      {matching.length > shown ? (
        <button type="button" onClick={() => setShown(shown + STEP)}>
          Show {Math.min(STEP, matching.length - shown)} more
        </button>
      ) : null}
    </div>
  );
}

interface RowProps extends Pick<CellSelection, 'onSelect'> {
  readonly name: string;
  readonly node: NodeRow;
  readonly selected: boolean;
}

function Row({ name, node, selected, onSelect }: RowProps) {
  return (
    <tr class={selected ? 'selected' : ''}>
      <th scope="row">
        <button type="button" class="link" onClick={() => onSelect(name)}>
          {name}
        </button>
      </th>
      <td>{node.pool}</td>
      <td>
        <span class={`cell sample ${node.state}`} aria-hidden="true" /> {formatState(node)}
      </td>
      <td>{node.ready ? 'yes' : 'no'}</td>
      <td>
        <code title={node.config.current}>{withShortHashes(node.config.current ?? '')}</code>
      </td>
      <td>{remarksOf(node)}</td>
    </tr>
  );
}

/** What a node does or waits for names its obstacle, too. */
function remarksOf({ state, what = '', obstacle }: NodeRow): string {
  const more = state === 'staged' || obstacle === what ? undefined : obstacle;
  return [withShortHashes(what), more].filter(Boolean).join('; ');
}

function find(nodes: Table<NodeRow>, search: string): readonly (readonly [string, NodeRow])[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = new Map(nodeStateNames.map((state, index) => [state, index]));
  return Object.entries(nodes)
    .filter(([name, node]) => {
      const text = `${name} ${node.pool} ${formatState(node)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .toSorted(
      ([a, one], [b, other]) =>
        (rank.get(one.state) ?? 0) - (rank.get(other.state) ?? 0) || byNaturalOrder(a, b),
    );
}
