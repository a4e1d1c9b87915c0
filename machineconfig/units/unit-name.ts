/** What systemd tells of a unit by its name alone (systemd.unit(5), "Description"). */
export interface UnitName {
  readonly kind: 'plain' | 'instance' | 'template';
  /** Before the `@`, or all but the suffix where there is none. */
  readonly prefix: string;
  /** Between `@` and suffix; empty for a template. */
  readonly instance: string;
  /** The suffix, without its dot. */
  readonly type: string;
}

const TYPES = /^(?:service|socket|target|device|mount|automount|swap|timer|path|slice|scope)$/;
const NAME = /^(?<stem>[A-Za-z0-9:_.\\@-]+)\.(?<type>[a-z]+)$/;
const NAME_MAX = 255;

/** @returns the parts of a unit's name; undefined for what is no name of a unit. */
export function parseUnitName(text: string): UnitName | undefined {
  const { stem = '', type = '' } = NAME.exec(text)?.groups ?? {};
  const at = stem.indexOf('@');
  if (!TYPES.test(type) || text.length > NAME_MAX || at === 0) return undefined;
  if (at < 0) return { kind: 'plain', prefix: stem, instance: '', type };
  const instance = stem.slice(at + 1);
  return { kind: instance === '' ? 'template' : 'instance', prefix: stem.slice(0, at), instance, type };
}

/** @returns `getty@.service` for `getty@tty1.service`; undefined for a plain unit and for what is no unit. */
export function templateOf(text: string): string | undefined {
  const name = parseUnitName(text);
  return name === undefined || name.kind === 'plain' ? undefined : `${name.prefix}@.${name.type}`;
}

/** @returns `getty@tty1.service` for `getty@.service` or an instance of it. */
export function instanceOf(template: string, instance: string): string | undefined {
  const name = parseUnitName(template);
  if (name === undefined || name.kind === 'plain') return undefined;
  const text = `${name.prefix}@${instance}.${name.type}`;
  return parseUnitName(text)?.kind === 'instance' ? text : undefined;
}

/** Types whose units may have aliases (systemd.unit(5), Alias=). */
function mayHaveAlias(type: string): boolean {
  return /^(?:service|socket|target|device|timer|path)$/.test(type);
}

/** Types that templates can be made of (systemd: `unit_type_may_template`). */
export function mayBeTemplate(type: string): boolean {
  return /^(?:service|socket|target|timer|path)$/.test(type);
}

/**
 * Whether systemd lets a name be an alias of a unit: one type, one kind of name, and an instance only of its template
 * or with the same instance (systemd.unit(5), Alias=).
 */
export function isAliasOf(alias: UnitName, unit: UnitName): boolean {
  if (!mayHaveAlias(alias.type) || alias.type !== unit.type) return false;
  if (alias.kind !== 'plain' && !mayBeTemplate(alias.type)) return false;
  if (alias.kind === 'instance' && unit.kind === 'template') return true;
  return alias.kind === unit.kind && (unit.kind !== 'instance' || alias.instance === unit.instance);
}

/**
 * Replaces the specifiers of [Install] that a unit's name and systemd's own user decide (systemd.unit(5),
 * "Specifiers").
 *
 * @returns undefined where one is of the host that systemctl runs on (%H, %m, %v and others): an image is for many, and
 *   systemctl in a build would put in the name of the build's machine.
 */
export function expandSpecifiers(
  text: string,
  { prefix, instance }: UnitName,
  name: string,
): string | undefined {
  const isPlain = !name.includes('@');
  const values: Readonly<Record<string, string>> = {
    '%': '%',
    i: instance,
    j: prefix.slice(prefix.lastIndexOf('-') + 1),
    n: name,
    N: isPlain ? prefix : `${prefix}@${instance}`,
    p: prefix,
    u: 'root',
    U: '0',
    g: 'root',
    G: '0',
  };
  let isKnown = true;
  const expanded = text.replaceAll(/%(.)/g, (specifier, letter: string) => {
    if (values[letter] === undefined) isKnown = false;
    return values[letter] ?? specifier;
  });
  return isKnown ? expanded : undefined;
}
