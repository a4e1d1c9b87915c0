import { Component, type TargetedEvent, type TargetedKeyboardEvent, type TargetedPointerEvent } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { NodeRow } from '../../model/view.ts';
import { formatNodeLine, formatState, marksOf } from '../words.ts';

/** A node of a pool, with its name. */
export type Member = readonly [name: string, node: NodeRow];

export type CellSize = 'named' | 'large' | 'small' | 'tiny';

/** The selected node, if it is among those that are shown. */
export interface CellSelection {
  readonly selected: string | undefined;
  readonly onSelect: (name: string) => void;
}

interface CellGridProps extends CellSelection {
  readonly pool: string;
  readonly members: readonly Member[];
  readonly size: CellSize;
}

/** Cells in a block: a change of one node draws one block. */
const BLOCK = 20;

/**
 * A pool's nodes as cells. Tab reaches one cell (roving tabindex); arrow keys, Home and End move within the grid and
 * select, as in a list box.
 */
export function CellGrid({ pool, members, size, selected, onSelect }: CellGridProps) {
  const grid = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<string>();
  const blocks = useMemo(() => inBlocks(members), [members]);
  const current = selected ?? members[0]?.[0];

  const onKeyDown = (event: TargetedKeyboardEvent<HTMLDivElement>) => {
    const from = members.findIndex(([name]) => name === current);
    const to = destination(event.key, from, members.length, columnsOf(event.currentTarget));
    const name = to === undefined ? undefined : members[to]?.[0];
    if (name === undefined) return;
    event.preventDefault();
    onSelect(name);
    cellOf(event.currentTarget, name)?.focus();
  };
  const choose = (event: TargetedEvent<HTMLDivElement>) => {
    const name = nameAt(event);
    if (name !== undefined) onSelect(name);
  };
  const hover = (event: TargetedPointerEvent<HTMLDivElement>) => setHovered(nameAt(event));

  const node = hovered === undefined ? undefined : members.find(([name]) => name === hovered);
  return (
    <>
      <div
        ref={grid}
        class={`cells ${size}`}
        role="listbox"
        aria-label={`Nodes: ${pool}`}
        aria-orientation="horizontal"
        onKeyDown={onKeyDown}
        onClick={choose}
        onPointerOver={hover}
        onPointerLeave={() => setHovered(undefined)}
      >
        {blocks.map((block, index) => (
          <CellBlock
            // A block is a position in the grid, independent of its nodes.
            key={index}
            members={block}
            named={size === 'named'}
            current={block.some(([name]) => name === current) ? current : undefined}
            selected={block.some(([name]) => name === selected)}
          />
        ))}
      </div>
      {size === 'named' ? null : (
        <p class="hovered" aria-hidden="true">
          {node === undefined ? null : <span>{formatNodeLine(...node)}</span>}
        </p>
      )}
    </>
  );
}

interface CellBlockProps {
  readonly members: readonly Member[];
  readonly named: boolean;
  /** The cell of this block that Tab reaches. */
  readonly current: string | undefined;
  /** Whether that cell is selected. */
  readonly selected: boolean;
}

/**
 * A block of cells. It is drawn again only when one of its rows is another object: unchanged rows are the same objects.
 */
class CellBlock extends Component<CellBlockProps> {
  override shouldComponentUpdate(next: CellBlockProps): boolean {
    const { members, named, current, selected } = this.props;
    return (
      named !== next.named ||
      current !== next.current ||
      selected !== next.selected ||
      members.length !== next.members.length ||
      members.some(([name, node], index) => {
        const other = next.members[index];
        return other === undefined || other[0] !== name || other[1] !== node;
      })
    );
  }

  override render({ members, named, current, selected }: CellBlockProps) {
    return (
      <div class="block" role="presentation">
        {members.map(([name, node]) => (
          <div
            key={name}
            class={`cell ${figureOf(node)}`}
            role="option"
            data-node={name}
            tabIndex={name === current ? 0 : -1}
            aria-selected={selected && name === current}
            aria-label={formatNodeLine(name, node)}
          >
            {named ? (
              <>
                <i class={`cell sample ${figureOf(node)}`} />
                <b>{name}</b>
                <span>{shortState(node)}</span>
              </>
            ) : null}
          </div>
        ))}
      </div>
    );
  }
}

function figureOf(node: NodeRow): string {
  return [node.state, ...marksOf(node)].join(' ');
}

/** The state, short enough for a cell with a name. */
function shortState(node: NodeRow): string {
  const { state, obstacle, blockedBy } = node;
  if (blockedBy !== undefined) return 'drain waits';
  if (obstacle !== undefined && state !== 'updated') return 'skipped';
  const words = node.nextBoot === true ? 'next reboot' : formatState(node);
  return marksOf(node).includes('not-ready') ? `${words}, not ready` : words;
}

function inBlocks(members: readonly Member[]): readonly (readonly Member[])[] {
  return Array.from({ length: Math.ceil(members.length / BLOCK) }, (_, index) =>
    members.slice(index * BLOCK, (index + 1) * BLOCK),
  );
}

/** @returns the cell that a key moves to; undefined for other keys. */
function destination(key: string, from: number, length: number, columns: number): number | undefined {
  const to: Readonly<Record<string, number>> = {
    ArrowRight: from + 1,
    ArrowLeft: from - 1,
    ArrowDown: from + columns,
    ArrowUp: from - columns,
    Home: 0,
    End: length - 1,
    PageDown: Math.min(from + 10 * columns, length - 1),
    PageUp: Math.max(from - 10 * columns, 0),
    Enter: from,
    ' ': from,
  };
  const index = to[key];
  return index === undefined || index < 0 || index >= length ? undefined : index;
}

function columnsOf(grid: HTMLElement): number {
  return getComputedStyle(grid).gridTemplateColumns.split(' ').length;
}

function cellOf(grid: HTMLElement, name: string): HTMLElement | null {
  return grid.querySelector<HTMLElement>(`[data-node="${CSS.escape(name)}"]`);
}

function nameAt(event: Event): string | undefined {
  if (!(event.target instanceof Element)) return undefined;
  return event.target.closest<HTMLElement>('[data-node]')?.dataset['node'];
}
