import { posix } from 'node:path';
import { alsoOf, installTargets, linkedName, whyUnreadable } from './install-targets.ts';
import { parseUnitName, templateOf } from './unit-name.ts';
import {
  ETC_UNITS,
  type FoundUnit,
  findUnit,
  followLinks,
  type UnitFile,
  type UnitTree,
} from './unit-tree.ts';

type AliasUnit = Extract<FoundUnit, { kind: 'alias' }>;

/** Something that systemctl refuses to do for a unit, and does the rest. */
export interface UnitRefusal {
  /** The unit whose enablement was asked for. */
  readonly unit: string;
  /** As a clause after the unit's name. */
  readonly why: string;
}

/**
 * A tree as `systemctl --root enable` and `disable` leave it, one command after the other, in memory (systemctl(1);
 * systemd.unit(5), "[Install] Section Options"; src/shared/install.c). Links of /etc/systemd/system alone change.
 */
export class Enablement implements UnitTree {
  readonly #tree: UnitTree;
  /** Links that were made, and `undefined` for those that were removed. */
  readonly #changed = new Map<string, string | undefined>();
  readonly #isFixed: (path: string) => boolean;
  readonly #made = new Set<string>();
  readonly refusals: UnitRefusal[] = [];

  /**
   * @param isFixed whether a path is not to be touched. @param without links of the tree that are taken for absent.
   */
  constructor(tree: UnitTree, isFixed: (path: string) => boolean, without: Iterable<string> = []) {
    this.#tree = tree;
    this.#isFixed = isFixed;
    for (const path of without) this.#changed.set(path, undefined);
  }

  entry(path: string): UnitFile | undefined {
    if (!this.#changed.has(path)) return this.#tree.entry(path);
    const target = this.#changed.get(path);
    return target === undefined ? undefined : { kind: 'link', target };
  }

  list(directory: string): readonly string[] {
    return this.#tree.list(directory);
  }

  get links(): ReadonlyMap<string, string> {
    const links = new Map(this.#tree.links);
    for (const [path, target] of this.#changed) {
      if (target === undefined) links.delete(path);
      else links.set(path, target);
    }
    return links;
  }

  /** Links that were made and are still there, also those that were there before. */
  get made(): ReadonlyMap<string, string> {
    const { links } = this;
    return new Map(
      [...this.#made].flatMap((path) => {
        const target = links.get(path);
        return target === undefined ? [] : [[path, target] as const];
      }),
    );
  }

  /** `systemctl enable NAME`. */
  enable(name: string): void {
    const first = this.#resolve(name);
    if (first.kind !== 'unit') {
      this.#refuse(name, whyNotEnabled(first));
      return;
    }
    const pending = new Set([first.name]);
    for (const each of pending) {
      const unit = each === first.name ? first : this.#find(each);
      if (unit.kind === 'alias' && !isEtcUnit(unit.path)) pending.add(unit.of);
      // A unit of Also= that is missing, masked or an alias in /etc is skipped.
      if (unit.kind !== 'unit') continue;
      for (const also of namesOf(unit)) pending.add(also);
      this.#install(name, unit);
    }
  }

  /**
   * `systemctl disable NAME`: every link is removed that has the unit's name or leads to it, no matter who made it, and
   * for a template those of its instances.
   */
  disable(name: string): void {
    const names = new Set([name]);
    const gone = new Set<string>();
    for (const each of names) {
      const unit = this.#find(each);
      if (unit.kind === 'alias') names.add(unit.of);
      if (unit.kind === 'unit') for (const also of namesOf(unit)) names.add(also);
      // A name that stands for nothing may still have links, and so may an alias of nothing, which is one itself.
      const isOfOther = unit.kind === 'alias' && ['unit', 'masked'].includes(this.#endOf(unit).kind);
      if (!isOfOther && unit.kind !== 'masked') gone.add(each);
    }
    // A link may lead through another one that is removed.
    for (let found = this.#linksOf(gone); found.length > 0; found = this.#linksOf(gone)) {
      for (const path of found) this.#changed.set(path, undefined);
    }
  }

  #find(name: string): FoundUnit {
    const found = findUnit(this, name);
    const why = found.kind === 'unit' ? whyUnreadable(found) : undefined;
    return why === undefined ? found : { kind: 'invalid', why };
  }

  #linksOf(names: ReadonlySet<string>): string[] {
    return [...this.links.keys()].filter((path) => {
      const base = posix.basename(path);
      if (parseUnitName(base) === undefined || this.#isFixed(path)) return false;
      const template = templateOf(base) ?? base;
      return [base, template, posix.basename(followLinks(this, path).path)].some((each) => names.has(each));
    });
  }

  /** Follows aliases, but those in /etc, which systemctl does not enable. */
  #resolve(name: string): FoundUnit {
    const found = this.#find(name);
    if (found.kind !== 'alias') return found;
    if (!isEtcUnit(found.path)) return this.#endOf(found, ({ path }) => !isEtcUnit(path));
    const why = `is an alias in ${ETC_UNITS}, which systemctl does not enable; enable ${found.of}`;
    return { kind: 'invalid', why };
  }

  /** Follows aliases, as long as they may be followed. */
  #endOf(alias: AliasUnit, mayFollow: (alias: AliasUnit) => boolean = () => true): FoundUnit {
    const seen = new Set<string>();
    let found: FoundUnit = alias;
    while (found.kind === 'alias' && mayFollow(found) && !seen.has(found.of)) {
      seen.add(found.of);
      found = this.#find(found.of);
    }
    return found.kind === 'alias' ? { kind: 'invalid', why: whyNotEnabled(found) } : found;
  }

  #install(asked: string, unit: Extract<FoundUnit, { kind: 'unit' }>): void {
    const { targets, refused } = installTargets(unit, this.#whyNotDefault(unit));
    for (const why of refused) this.#refuse(asked, why);
    for (const { setting, place } of targets) {
      const path = `${ETC_UNITS}/${place}`;
      const there = this.#made.has(path) ? this.entry(path) : undefined;
      if (this.#isFixed(path)) {
        this.#refuse(asked, `${setting} requires the link ${path}, and the config has that path itself`);
      } else if (setting.startsWith('Alias=') && there?.kind === 'link' && there.target !== unit.path) {
        this.#refuse(asked, `${setting} requires the link ${path}, which leads to ${there.target} already`);
      } else {
        this.#changed.set(path, unit.path);
        this.#made.add(path);
      }
    }
  }

  /** @returns why the instance can't be enabled that a template's DefaultInstance= names. */
  #whyNotDefault(unit: Extract<FoundUnit, { kind: 'unit' }>): string | undefined {
    const name = linkedName(unit);
    const found = name === unit.name ? unit : findUnit(this, name);
    if (found.kind !== 'masked' && found.kind !== 'invalid') return undefined;
    return `${name}, its DefaultInstance=: ${whyNotEnabled(found)}`;
  }

  #refuse(unit: string, why: string): void {
    this.refusals.push({ unit, why });
  }
}

function namesOf(unit: Extract<FoundUnit, { kind: 'unit' }>): string[] {
  return alsoOf(unit).filter((name) => name !== undefined);
}

function isEtcUnit(path: string): boolean {
  return posix.dirname(path) === ETC_UNITS;
}

function whyNotEnabled(found: Exclude<FoundUnit, { kind: 'unit' }>): string {
  switch (found.kind) {
    case 'alias':
      return `is an alias of ${found.of}`;
    case 'masked':
      return 'is masked';
    case 'missing':
      return 'does not exist';
    case 'invalid':
      return found.why;
  }
}
