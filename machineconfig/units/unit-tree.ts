import { posix } from 'node:path';
import { by } from '../../api/order.ts';
import { type InstallSection, readInstallSection } from './install-section.ts';
import { instanceOf, isAliasOf, mayBeTemplate, parseUnitName, templateOf } from './unit-name.ts';

/** Where systemctl writes what it changes. */
export const ETC_UNITS = '/etc/systemd/system';

/** systemd.unit(5), "Unit File Load Path", without what a running system alone has. */
export const UNIT_DIRECTORIES = [
  ETC_UNITS,
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
] as const;

/** What lies at one path, as far as systemctl asks. */
export type UnitFile =
  | { readonly kind: 'file'; readonly text: string }
  | { readonly kind: 'link'; readonly target: string }
  /** A directory or what else is neither of both. */
  | { readonly kind: 'other' };

/** What is known of a tree's units: values that somebody else has read. */
export interface UnitTree {
  /** @returns what lies at a path, its last component not followed. */
  entry(path: string): UnitFile | undefined;
  /** @returns the names in a directory. */
  list(directory: string): readonly string[];
  /** Every symbolic link at or below /etc/systemd/system. */
  readonly links: ReadonlyMap<string, string>;
}

/** A tree of which nothing is known: the builder's, which doesn't download its base. */
export const unknownTree: UnitTree = { entry: () => undefined, list: () => [], links: new Map() };

/** A unit as systemctl finds it by a name. */
export type FoundUnit =
  | {
      readonly kind: 'unit';
      readonly name: string;
      readonly path: string;
      readonly install: InstallSection;
    }
  /** A link to a unit of another name. */
  | { readonly kind: 'alias'; readonly path: string; readonly of: string }
  | { readonly kind: 'masked' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid'; readonly why: string };

/** As path_resolution(7). */
const MAX_LINKS = 40;

/**
 * @returns what a name stands for (src/shared/install.c, `unit_file_search`): an instance without a file is its
 * template's.
 */
export function findUnit(tree: UnitTree, name: string): FoundUnit {
  const parsed = parseUnitName(name);
  if (parsed === undefined) return { kind: 'invalid', why: `${name} is not a unit name` };
  if (parsed.kind !== 'plain' && !mayBeTemplate(parsed.type)) {
    return { kind: 'invalid', why: `units of type ${parsed.type} have no templates` };
  }
  const template = parsed.kind === 'instance' ? templateOf(name) : undefined;
  for (const file of template === undefined ? [name] : [name, template]) {
    for (const directory of UNIT_DIRECTORIES) {
      const found = unitAt(tree, name, `${directory}/${file}`);
      if (found !== undefined) return found;
    }
  }
  return { kind: 'missing' };
}

function unitAt(tree: UnitTree, name: string, path: string): FoundUnit | undefined {
  const first = tree.entry(path);
  if (first === undefined) return undefined;
  if (first.kind === 'other')
    return { kind: 'invalid', why: `${path} is neither a file nor a symbolic link` };
  const { path: end, entry } = followLinks(tree, path);
  if (end === '/dev/null' || (entry?.kind === 'file' && entry.text === '')) return { kind: 'masked' };
  if (first.kind === 'link') {
    const other = aliased(name, posix.basename(path), posix.basename(end));
    if (other === undefined)
      return { kind: 'invalid', why: `${path} is a link to ${end}, which is no unit of its kind` };
    if (other !== name && posix.basename(end) !== posix.basename(path))
      return { kind: 'alias', path, of: other };
  }
  if (entry === undefined) return { kind: 'missing' };
  if (entry.kind !== 'file') return { kind: 'invalid', why: `${end} is not a file` };
  return {
    kind: 'unit',
    name,
    path: end,
    install: readInstallSection([entry.text, ...dropinsOf(tree, name)]),
  };
}

/**
 * @returns the name that a unit's link leads to; undefined for a link that systemd refuses
 * (`unit_validate_alias_symlink_or_warn`).
 */
function aliased(name: string, link: string, target: string): string | undefined {
  const [unit, from, to] = [name, link, target].map(parseUnitName);
  if (unit === undefined || from === undefined || to === undefined) return undefined;
  if (link !== target && !isAliasOf(from, to)) return undefined;
  return unit.kind === 'instance' && to.kind === 'template' ? instanceOf(target, unit.instance) : target;
}

/** @returns where the links of a path end, and what is there: nothing behind one that dangles or goes round. */
export function followLinks(
  tree: UnitTree,
  from: string,
): { readonly path: string; readonly entry: UnitFile | undefined } {
  let path = from;
  for (let links = 0; links < MAX_LINKS; links += 1) {
    const entry = tree.entry(path);
    if (entry?.kind !== 'link') return { path, entry };
    path = posix.resolve(posix.dirname(path), entry.target);
  }
  return { path, entry: undefined };
}

/**
 * Drop-ins are read after the unit, by their names: of several with one name the first directory's (systemd.unit(5),
 * "Drop-in Files"). Those of an instance's template count too.
 */
function dropinsOf(tree: UnitTree, name: string): string[] {
  const template = templateOf(name);
  const names = template === undefined || template === name ? [name] : [name, template];
  const places = new Map<string, string>();
  for (const unit of names) {
    for (const directory of UNIT_DIRECTORIES) {
      for (const file of tree.list(`${directory}/${unit}.d`)) {
        if (file.endsWith('.conf') && !places.has(file)) places.set(file, `${directory}/${unit}.d/${file}`);
      }
    }
  }
  const sorted = [...places].sort(by(([file]) => file));
  return sorted.flatMap(([, path]) => {
    const { entry } = followLinks(tree, path);
    return entry?.kind === 'file' ? [entry.text] : [];
  });
}
