import { entriesAt, nodeAt, type TreeNode } from './file-tree.ts';

/** systemd's units in an image; names in order. */
export interface Units {
  /** All that have a file, or a link that is not a mask. */
  readonly present: readonly string[];
  /**
   * Those that another unit wants, requires or upholds by a link, which `systemctl enable` or the vendor made; without
   * links that are left over of a unit that is not there any more.
   */
  readonly enabled: readonly string[];
  /** Those that can't start. */
  readonly masked: readonly string[];
}

/** The later one outranks the earlier one (systemd.unit(5), "System Unit Search Path"). */
const PLACES = ['/usr/lib/systemd/system', '/etc/systemd/system'];
const UNIT = /^[^/]+\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;
const DEPENDENCIES = /\.(wants|requires|upholds)$/;

type Root = Extract<TreeNode, { readonly kind: 'directory' }>;

/** @returns the units that a tree has. */
export function unitsOfTree(root: Root): Units {
  const units = new Map<string, 'present' | 'masked'>();
  for (const place of PLACES) {
    for (const [name, node] of entriesAt(root, place)) {
      if (UNIT.test(name)) units.set(name, isMask(node) ? 'masked' : 'present');
    }
  }
  const those = (state: 'present' | 'masked') =>
    [...units]
      .filter(([, is]) => is === state)
      .map(([name]) => name)
      .sort();
  const enabled = new Set(PLACES.flatMap((place) => enabledIn(root, place, units)));
  return { present: those('present'), enabled: [...enabled].sort(), masked: those('masked') };
}

/** systemd looks for a unit by the name of the link, or by that of its template; the link leads to other places. */
function enabledIn(root: Root, place: string, units: ReadonlyMap<string, unknown>): readonly string[] {
  return entriesAt(root, place)
    .filter(([name]) => DEPENDENCIES.test(name))
    .flatMap(([name]) => {
      const isThere = (wanted: string) =>
        units.has(wanted) ||
        units.has(templateOf(wanted)) ||
        nodeAt(root, `${place}/${name}/${wanted}`) !== undefined;
      return entriesAt(root, `${place}/${name}`).flatMap(([wanted, link]) =>
        UNIT.test(wanted) && !isMask(link) && isThere(wanted) ? [wanted] : [],
      );
    });
}

/** @returns `getty@.service` for `getty@tty1.service`; the name itself where it is no instance. */
function templateOf(unit: string): string {
  const [at, type] = [unit.indexOf('@'), unit.lastIndexOf('.')];
  return at < 0 || type < at ? unit : `${unit.slice(0, at)}@${unit.slice(type)}`;
}

function isMask(node: TreeNode): boolean {
  return node.kind === 'link' && node.target === '/dev/null';
}
